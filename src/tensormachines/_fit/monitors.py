"""What happens between iterations: progress lines, early stopping, callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from .._model.objective import Objective
from .problem import Problem
from .solvers.protocol import Iterate, Solution, State, best_of


class EarlyStopping:
    """Stops a solver whose loss on held-out rows has not reached a new minimum for ``patience`` iterations,
    and keeps its best iterate.
    """

    def __init__(self, problem: Problem, patience: int, threads: int):
        assert problem.held_out is not None
        self.held_out = Objective(problem.held_out, problem.layout, problem.loss, 0.0, threads)
        self.patience = patience
        self.best: dict[int, tuple[float, Iterate]] = {}  # by solver

    def __call__(self, solver: int, iterate: Iterate) -> bool:
        loss = float(self.held_out.mean_loss(iterate.params[None])[0])
        if solver not in self.best or loss < self.best[solver][0]:
            self.best[solver] = (loss if np.isfinite(loss) else np.inf, iterate)
        return iterate.iteration - self.best[solver][1].iteration >= self.patience

    def state(self, solver: int) -> State:
        """What a checkpoint keeps."""
        if solver not in self.best:
            return {}
        loss, iterate = self.best[solver]
        return {
            "loss": loss,
            "iteration": iterate.iteration,
            "params": iterate.params,
            "value": iterate.value,
        }

    def restore(self, solver: int, state: State) -> None:
        if state:
            self.best[solver] = (
                state["loss"],
                Iterate(state["iteration"], state["params"], state["value"], np.nan, lambda: {}),
            )

    def best_solver(self, solvers: Iterable[int]) -> int:
        return min(
            (solver for solver in solvers if solver in self.best), key=lambda solver: self.best[solver][0]
        )

    def best_of(self, solutions: Sequence[Solution], solvers: Sequence[int]) -> Solution:
        """Of some solvers, the iterate with the lowest held-out loss; where there was no iteration at all,
        the best start.
        """
        if not any(solver in self.best for solver in solvers):
            return best_of([solutions[solver] for solver in solvers])
        number = self.best_solver(solvers)
        iterate = self.best[number][1]
        return replace(
            solutions[number], params=iterate.params, value=iterate.value, n_iter=iterate.iteration
        )


class Deadline:
    """Stops every solver at a time of time.monotonic()."""

    def __init__(self, deadline: float):
        self.deadline = deadline

    def __call__(self, solver: int, iterate: Iterate) -> bool:
        return time.monotonic() >= self.deadline


class ProgressLines:
    """Prints the first iterations, then ever fewer: 1, 2, ..., 10, 20, ..., 100, 200, ..."""

    def __init__(self, verbose: int, name: str, n_solvers: int):
        self.verbose = verbose
        self.name = name
        self.n_solvers = n_solvers
        self.began = time.perf_counter()

    def __call__(self, solver: int, iterate: Iterate) -> bool:
        every = 1 if self.verbose > 1 else 10 ** max(len(str(iterate.iteration)) - 1, 0)
        if self.verbose and iterate.iteration % every == 0:
            start = f" start {solver + 1}/{self.n_solvers}" if self.n_solvers > 1 else ""
            seconds = time.perf_counter() - self.began
            print(
                f"[{self.name}]{start} iteration {iterate.iteration}: objective {iterate.value:.6g}, "
                f"largest gradient {iterate.gradient_norm:.2g}, {seconds:.1f} s",
                flush=True,
            )
        return False


class Furthest:
    """Passes on to ``report`` each iteration number once, whichever solver gets there first; once that wants
    to stop, all stop.
    """

    def __init__(self, report: Callable[[Iterate], bool]):
        self.report = report
        self.reached = 0
        self.stopped = False

    def __call__(self, solver: int, iterate: Iterate) -> bool:
        if iterate.iteration > self.reached:
            self.reached = iterate.iteration
            self.stopped = self.report(iterate) or self.stopped
        return self.stopped
