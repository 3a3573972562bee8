"""Lines of a run whose verdicts are known by hand, and the verdict on one claim."""

from __future__ import annotations

from typing import Any

from tensormachines.experiments.report import judge
from tensormachines.experiments.report.claims import Claim

METHODS = ("krr", "tm-batch", "tm-sfo", "craftmaps", "basis-learner", "apple")
Line = dict[str, Any]


def fit(
    name: str,
    method: str,
    error: float,
    seconds: float = 1.0,
    major: float | None = 10,
    trial: int = 0,
    **others: Any,
) -> Line:
    line = {
        "experiment": "compare",
        "set": name,
        "method": method,
        "major": None if method == "krr" else major,
        "trial": trial,
    }
    line |= {
        "error": error,
        "seconds": seconds,
        "rows": 1000,
        "columns": 10,
        "test_rows": 100,
        "task": "regression",
        "degree": 3,
    }
    line |= {"parameters": 100, "param_rank": 3, "status": "ok", "reason": "", "faithful": True, **others}
    key = "/".join(
        str(line[field]) for field in ("experiment", "set", "method", "major", "rows", "param_rank", "trial")
    )
    return {"key": key, **line}


def about(lines: list[Line], start: str) -> Claim:
    (found,) = [claim for claim in judge(lines) if claim.statement.startswith(start)]
    return found


def compared(
    errors: dict[str, tuple[float, ...]], seconds: dict[str, tuple[float, ...]] | None = None
) -> list[Line]:
    """Fits of each method to the sets a, b, c ...; an error for each."""
    times = seconds or {}
    return [
        fit("abcdefgh"[k], method, error, times.get(method, (1.0,) * len(of_sets))[k])
        for method, of_sets in errors.items()
        for k, error in enumerate(of_sets)
    ]


def scaled(method: str, seconds_power: float, errors: dict[int, float]) -> list[Line]:
    return [
        fit(
            "ebay_like",
            method,
            error,
            1e-5 * rows**seconds_power,
            rows=rows,
            experiment="scaling",
            trial=trial,
        )
        for rows, error in errors.items()
        for trial in range(2)
    ]


def ranked(name: str, method: str, errors: list[float]) -> list[Line]:
    return [
        fit(name, method, error, experiment="rank", param_rank=rank)
        for rank, error in enumerate(errors, start=1)
    ]


def bounded(power: float, gap_power: float, sign: float = 1.0) -> list[Line]:
    rows = (1000, 4000, 16_000, 64_000)
    gaps = [sign * 30 * n**gap_power for n in rows]
    risks = [{"train_risk": 0.3, "test_risk": 0.3 + gap} for gap in gaps]
    return [
        fit("forest", "tm-batch", 0.2, rows=n, experiment="bound", bound=1e9 * n**power, **risk)
        for n, risk in zip(rows, risks, strict=True)
    ]
