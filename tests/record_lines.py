"""Lines of a run, as the harness records them."""


def line(**fields):
    found = {
        "experiment": "compare",
        "set": "indoor",
        "method": "tm-batch",
        "faithful": True,
        "task": "regression",
        "degree": 3,
        "columns": 520,
    }
    found |= {
        "rows": 19_937,
        "test_rows": 11_114,
        "major_name": "max_iter",
        "major": 10,
        "trial": 0,
        "status": "ok",
        "reason": "",
    }
    found |= {"error": 0.5, "seconds": 1.0, "profile": "quick"} | fields
    found.setdefault(
        "key",
        "/".join(
            str(found.get(name))
            for name in ("experiment", "set", "method", "major", "rows", "param_rank", "trial")
        ),
    )
    return found


def some_lines():
    """Indoor is the paper's; on the relative of Slice the only rival of TM-Batch timed out. A bit of every
    experiment.
    """
    shared = {
        "limit_seconds": 60.0,
        "when": "2026-01-01T10:10:00+00:00",
        "elapsed": 600.0,
        "machine": "two cores",
        "versions": "numpy 2",
    }
    found = [line(method="krr", major_name=None, major=None, error=0.25, seconds=50.0)]
    found += [
        line(trial=trial, error=error, seconds=0.32, param_rank=4, parameters=1040)
        for trial, error in enumerate((0.29, 0.31))
    ]
    found += [line(method="apple", major_name="expansion", major=0.5, error=0.4, seconds=0.1)]
    relative = {"set": "slice_first_rows", "faithful": False, "degree": 5}
    found += [
        line(**relative, method="krr", major=None, error=0.1, seconds=10.0),
        line(**relative, error=0.2, seconds=1.0),
    ]
    found += [line(**relative, method="apple", status="timeout", reason="over 60 s | <b>", error=None)]
    found += [
        line(experiment="select", param_alpha=alpha, error=alpha, folds=5, key=f"select {alpha}")
        for alpha in (0.1, 0.2)
    ]
    found += [line(**relative, experiment="rank", param_rank=rank, error=0.3 / rank) for rank in (1, 2)]
    found += [
        line(experiment="scaling", set="ebay_like", faithful=False, rows=rows, seconds=rows / 100)
        for rows in (100, 200)
    ]
    found += [
        line(experiment="bound", rows=rows, bound=9 / rows, train_risk=0.1, test_risk=0.1 + 1 / rows)
        for rows in (100, 400)
    ]
    found += [line(experiment="starts", trial=trial, error=0.1 + trial / 100) for trial in range(3)]
    found += [
        {
            "key": "load",
            "experiment": "load",
            "set": "gisette",
            "status": "skipped",
            "reason": "no <network> & no file",
        }
    ]
    return [shared | fields for fields in found]
