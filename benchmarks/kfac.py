"""How soon does "kfac" get as low as 300 iterations of L-BFGS, in passes over the rows and in CPU seconds?

    TENSORMACHINES_DATA=folder python benchmarks/kfac.py [--sets california adult] [--bases standard sphere]
                                                         [--seeds 0 1 2] [--final]

Both begin at the same start, on one thread, float32, and run one after the other, set by set. A pass is one
evaluation of the objective on all rows; minibatches count by their rows. The seconds include what the solvers
do besides the objective, and the samples that the curvature is made of. Prints medians over the seeds, and
geometric means over the sets. With --final: what both reach in the end, at the default tol and max_iter."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

from timing import one_thread

one_thread()

import numpy as np

import sets
from problems import Counted, in_memory, pose, start
from records import head, print_facts, row
from tensormachines._fit.minibatch_start import descend_by_minibatches, minibatches
from tensormachines._fit.problem import Problem
from tensormachines._fit.settings import DEFAULT_TOL
from tensormachines._fit.solver_table import PAIRS_WITH_CURVATURE, SOLVERS
from tensormachines._fit.solvers.lbfgs import lbfgs
from tensormachines._fit.solvers.protocol import Iterate, Solution, minimise

# degree, rank, alpha
CASES = {
    "california": (3, 5, 1e-5),
    "kin40k": (4, 5, 1e-6),
    "protein": (4, 5, 1e-5),
    "cod_rna": (4, 3, 1e-5),
    "forest_50k": (4, 5, 1e-5),
    "forest": (4, 5, 1e-5),
    "indoor": (3, 5, 1e-5),
    "adult": (3, 4, 1e-4),
    "house_8L": (3, 5, 1e-4),
    "census_house_16H": (2, 5, 1e-4),
    "spambase": (3, 5, 1e-4),
    "year_msd_subset": (2, 5, 1e-4),
    "buzz_sample": (3, 5, 1e-4),
    "slice_first_rows": (5, 3, 1e-5),
    "letter": (3, 3, 1e-5),
}


def load(name: str) -> sets.Data:
    return sets.load("forest", small=True) if name == "forest_50k" else sets.load(name)


@dataclass
class Run:
    """A solver that is watched: passes, CPU seconds and objective at every iteration."""

    problem: Problem
    alpha: float
    seed: int
    max_iter: int
    tol: float

    def solve(self, kfac: bool, target: float = -np.inf) -> Solution:
        self.points: list[tuple[float, float, float]] = []
        objective = Counted(self.problem.objective(self.alpha, 1))
        params, warming = start(self.problem, self.seed), None
        began = time.process_time()
        options = {}
        if kfac:
            parts = minibatches(self.problem.blocks, self.problem.layout.n_features)
            if parts is not None:
                warming = Counted(replace(objective.objective, blocks=parts, alpha=0.0))
                params = descend_by_minibatches(warming, params, self.seed)  # type: ignore[arg-type]
                objective.passes = warming.passes
            options = {"history": PAIRS_WITH_CURVATURE, "curvature": self.problem.curvature(self.alpha)}

        def watch(solver: int, iterate: Iterate) -> bool:
            self.points.append((objective.passes, time.process_time() - began, iterate.value))
            return iterate.value <= target

        solver = lbfgs(params, max_iter=self.max_iter, tol=self.tol, **options)  # type: ignore[arg-type]
        (solution,) = minimise(objective, [solver], watch)
        return solution

    def reaches(self, target: float) -> tuple[float, float]:
        return next(
            ((passes, seconds) for passes, seconds, value in self.points if value <= target), (np.inf, np.inf)
        )


def speeds(problem: Problem, alpha: float, seed: int) -> list[float]:
    """Return passes and seconds of L-BFGS, and those of kfac."""
    plain, ours = (Run(problem, alpha, seed, max_iter=most, tol=0) for most in (300, 600))
    target = plain.solve(kfac=False).value
    ours.solve(kfac=True, target=target)
    return [*plain.reaches(target), *ours.reaches(target)]


def final_values(problem: Problem, alpha: float, seed: int) -> list[float]:
    run = Run(problem, alpha, seed, SOLVERS["kfac"].max_iter, DEFAULT_TOL)
    return [run.solve(kfac).value for kfac in (False, True)]


def measured(name: str, basis: str, seeds: list[int], final: bool) -> np.ndarray:
    """Return the figures of every seed: (seeds, 4), or (seeds, 2) of the final values."""
    data, (degree, rank, alpha) = load(name), CASES[name]
    table = in_memory(data)
    return np.array(
        [
            (final_values if final else speeds)(
                pose(table, data.n_classes, degree, rank, basis=basis, seed=seed), alpha, seed
            )
            for seed in seeds
        ]
    )


def print_speeds(basis: str, names: list[str], seeds: list[int]) -> None:
    columns = ["L-BFGS passes", "s", "kfac passes", "s", "fewer passes", "less CPU", "reached"]
    print("\n" + head([basis, *columns]))
    ratios = []
    for name in names:
        runs = measured(name, basis, seeds, final=False)
        median = np.median(runs, axis=0)
        ratios.append(np.median(runs[:, :2] / runs[:, 2:], axis=0))
        cells = [f"{median[0]:.0f}", f"{median[1]:.2f}", f"{median[2]:.0f}", f"{median[3]:.3f}"]
        cells += [f"{ratio:.1f}" for ratio in ratios[-1]]
        print(row([name, *cells, f"{np.isfinite(runs[:, 2]).sum()} of {len(seeds)}"]), flush=True)
    mean = np.exp(np.log(ratios).mean(axis=0))
    print(row(["geometric mean", "", "", "", "", *(f"**{value:.1f}**" for value in mean), ""]), flush=True)


def print_final(basis: str, names: list[str], seeds: list[int]) -> None:
    print("\n" + head([basis, "L-BFGS: mean objective", "worst", "kfac: mean objective", "worst"]))
    for name in names:
        values = measured(name, basis, seeds, final=True)
        cells = np.column_stack([values.mean(axis=0), values.max(axis=0)]).ravel()
        print(row([name, *(f"{value:.5g}" for value in cells)]), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--bases", nargs="+", choices=("standard", "sphere"), default=("standard", "sphere"))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--final", action="store_true", help="what both reach in the end, not how soon")
    arguments = parser.parse_args()
    for each in arguments.bases:
        (print_final if arguments.final else print_speeds)(each, arguments.sets, arguments.seeds)
    print_facts(arguments.seeds)
