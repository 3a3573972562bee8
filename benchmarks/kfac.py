"""How soon "kfac" gets as low as 300 iterations of L-BFGS, in passes over the rows and in CPU seconds.

    TENSORMACHINES_DATA=... python benchmarks/kfac.py [--sets california,adult] [--bases standard,sphere]
    [--seeds 0,1,2,3,4]

Both begin at the same start, on one thread, float32, and run one after the other, set by set. A pass is one
evaluation of the objective on all rows; minibatches count by their rows. What the solvers do beside the
objective is in the seconds, as are the samples that the curvature is made of. Prints a line a run, a table of
medians over the seeds, and geometric means over the sets; then what both reach in the end, at the default tol
and max_iter, over the seeds."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from tensormachines._data.table import TableInMemory, ValidationRows
from tensormachines._fit.problem import Bases, Problem, Target
from tensormachines._fit.solvers.lbfgs import lbfgs
from tensormachines._fit.solvers.protocol import Iterate, Solution, Solver, minimise
from tensormachines._fit.warm_up import warm_up
from tensormachines._model.layout import Layout
from tensormachines._model.objective import Objective
from tensormachines.estimators.polynomial_model import DEFAULT_MAX_ITER, DEFAULT_TOL, KFAC_PAIRS


@dataclass(frozen=True)
class Case:
    file: str
    degree: int
    rank: int
    alpha: float
    classes: int = 0


CASES = {
    "california": Case("california", 3, 5, 1e-5),
    "kin40k": Case("kin40k", 4, 5, 1e-6),
    "protein": Case("protein", 4, 5, 1e-5),
    "cod_rna": Case("cod_rna", 4, 3, 1e-5, 2),
    "forest 50,000": Case("forest", 4, 5, 1e-5, 2),
    "forest": Case("forest", 4, 5, 1e-5, 2),
    "indoor": Case("indoor", 3, 5, 1e-5),
    "adult": Case("adult", 3, 4, 1e-4, 2),
    "house_8L": Case("house_8L", 3, 5, 1e-4),
    "census_house_16H": Case("census_house_16H", 2, 5, 1e-4),
    "spambase": Case("spambase", 3, 5, 1e-4, 2),
    "year (subset)": Case("year_msd_subset", 2, 5, 1e-4),
    "buzz (sample)": Case("buzz_sample", 3, 5, 1e-4),
    "slice (first rows)": Case("slice_first_rows", 5, 3, 1e-5),
    "letter": Case("letter", 3, 3, 1e-5, 26),
}


def load(name: str) -> TableInMemory:
    case = CASES[name]
    data = np.load(Path(os.environ["TENSORMACHINES_DATA"]) / f"{case.file}.npz")
    rows = data["paper_small_train_idx"] if name == "forest 50,000" else slice(None)
    X, y = data["X_train"][rows].astype(np.float32), data["y_train"][rows]
    numbers = np.unique(y, return_inverse=True)[1] if case.classes else y
    return TableInMemory(X, numbers.astype(np.float64).reshape(len(y), -1), None)


def pose(case: Case, table: TableInMemory, basis: str, seed: int) -> tuple[Problem, Objective, np.ndarray]:
    target = Target(True, np.arange(case.classes)) if case.classes else Target()
    layout = partial(Layout, degree=case.degree, rank=case.rank)
    problem = Problem(
        table, target, ValidationRows(), bases=Bases(basis, basis), layout=layout, parts=None, seed=seed
    )
    return (
        problem,
        problem.objective(case.alpha, 1),
        problem.random_start("auto", np.random.RandomState(seed)),
    )


class Counted:
    """An objective that counts the rows that it sees."""

    def __init__(self, objective: Objective, passes: list[float]):
        self.objective = objective
        self.blocks = objective.blocks
        self.passes = passes

    def __call__(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.passes[0] += len(params)
        return self.objective(params)

    def partial(
        self, params: np.ndarray, part: int, likely_next: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        self.passes[0] += len(params) * self.blocks.weights[part] / self.blocks.weights.sum()
        return self.objective.partial(params, part, likely_next)


class Run:
    """Passes, CPU seconds and objective at every iteration."""

    def __init__(
        self, problem: Problem, objective: Objective, start: np.ndarray, seed: int, **settings: float
    ):
        self.problem, self.objective, self.start, self.seed = problem, objective, start, seed
        self.settings = settings
        self.passes = [0.0]
        self.points: list[tuple[float, float, float]] = []

    def solve(self, kfac: bool, target: float = -np.inf) -> Solution:
        self.began = time.process_time()

        def watch(solver: int, iterate: Iterate) -> bool:
            self.points.append((self.passes[0], time.process_time() - self.began, iterate.value))
            return iterate.value <= target

        solver = self._kfac() if kfac else lbfgs(self.start, **self.settings)  # type: ignore[arg-type]
        (solution,) = minimise(Counted(self.objective, self.passes), [solver], watch)
        return solution

    def _kfac(self) -> Solver:
        minibatches, start = self.problem.minibatches(), self.start
        if minibatches is not None:
            parts = Counted(replace(self.objective, blocks=minibatches, alpha=0.0), self.passes)
            start = warm_up(parts, start, self.seed)  # type: ignore[arg-type]
        curvature = self.problem.curvature(self.objective.alpha)
        return lbfgs(start, history=KFAC_PAIRS, curvature=curvature, **self.settings)  # type: ignore[arg-type]

    def reaches(self, target: float) -> tuple[float, float]:
        return next(
            ((passes, seconds) for passes, seconds, value in self.points if value <= target), (np.inf, np.inf)
        )


def compare(problem: Problem, objective: Objective, start: np.ndarray, seed: int) -> np.ndarray:
    """Passes and seconds of L-BFGS, and those of kfac."""
    plain = Run(problem, objective, start, seed, max_iter=300, tol=0)
    target = plain.solve(kfac=False).value
    ours = Run(problem, objective, start, seed, max_iter=600, tol=0)
    ours.solve(kfac=True, target=target)
    return np.array([*plain.reaches(target), *ours.reaches(target)])


def final_values(problem: Problem, objective: Objective, start: np.ndarray, seed: int) -> list[float]:
    runs = [
        Run(problem, objective, start, seed, max_iter=DEFAULT_MAX_ITER["kfac"], tol=DEFAULT_TOL)
        for _ in range(2)
    ]
    return [run.solve(kfac).value for run, kfac in zip(runs, (False, True), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(name.replace(",", "") for name in CASES))
    parser.add_argument("--bases", default="standard,sphere")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument(
        "--final", action="store_true", help="what both reach in the end, instead of how soon"
    )
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    names = [name for name in CASES if name.replace(",", "") in options.sets.split(",")]
    for basis in options.bases.split(","):
        print_final(basis, names, seeds) if options.final else print_speed(basis, names, seeds)


def print_speed(basis: str, names: list[str], seeds: list[int]) -> None:
    print(
        f"\n| {basis} | L-BFGS passes | s | kfac passes | s | fewer passes | less CPU | reached |\n|---|---|---|---|---|---|---|---|"
    )
    ratios = []
    for name in names:
        table = load(name)
        runs = np.array([compare(*pose(CASES[name], table, basis, seed), seed) for seed in seeds])
        median = np.median(runs, axis=0)
        ratios.append(np.median(runs[:, :2] / runs[:, 2:], axis=0))
        reached = f"{np.isfinite(runs[:, 2]).sum()} of {len(seeds)}"
        cells = [
            f"{median[0]:.0f}",
            f"{median[1]:.2f}",
            f"{median[2]:.0f}",
            f"{median[3]:.3f}",
            f"{ratios[-1][0]:.1f}",
            f"{ratios[-1][1]:.1f}",
        ]
        print(f"| {name} | {' | '.join(cells)} | {reached} |", flush=True)
    mean = np.exp(np.log(ratios).mean(axis=0))
    print(f"| geometric mean | | | | | **{mean[0]:.1f}** | **{mean[1]:.1f}** | |", flush=True)


def print_final(basis: str, names: list[str], seeds: list[int]) -> None:
    print(
        f"\n| {basis} | L-BFGS: mean objective | worst | kfac: mean objective | worst |\n|---|---|---|---|---|"
    )
    for name in names:
        table = load(name)
        values = np.array([final_values(*pose(CASES[name], table, basis, seed), seed) for seed in seeds])
        mean, worst = values.mean(axis=0), values.max(axis=0)
        print(f"| {name} | {mean[0]:.5g} | {worst[0]:.5g} | {mean[1]:.5g} | {worst[1]:.5g} |", flush=True)


if __name__ == "__main__":
    main()
