"""Actions between iterations: loss curves, early stopping, progress lines and callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from .._model.objective import Objective
from .problem import Problem
from .solvers.protocol import Curves, Iterate, Solution, State, best_of
from .solvers.state import COUNT, VALUE, Array, Entry, length, like


class Recorder:
    """Add every iterate to the curves of its solver."""

    def __init__(self, problem: Problem, threads: int, n_solvers: int):
        held_out = problem.held_out
        self.loss = (
            None if held_out is None else Objective(held_out, problem.layout, problem.loss, 0.0, threads)
        )
        self.curves = [Curves() for _ in range(n_solvers)]

    def __call__(self, solver: int, iterate: Iterate) -> bool:
        self.add(self.curves[solver], iterate)
        return False

    def add(self, curves: Curves, iterate: Iterate) -> None:
        curves.values.append(iterate.value)
        if self.loss is not None:
            loss = float(self.loss.mean_loss(iterate.params[None])[0])
            curves.held_out.append(loss if np.isfinite(loss) else np.inf)

    def state(self, solver: int) -> State:
        """Return the state that a checkpoint keeps."""
        return {name: np.array(values) for name, values in vars(self.curves[solver]).items()}

    def entries(self, state: State, start: np.ndarray) -> dict[str, Entry]:
        """Return the allowed entries of a state."""
        n_iter = length(state.get("values"))
        return {
            "values": Array((n_iter,), finite=False),
            "held_out": Array((0 if self.loss is None else n_iter,), finite=False),
        }

    def restore(self, solver: int, state: State) -> None:
        for name, values in vars(self.curves[solver]).items():
            values[:] = state[name].tolist()


class EarlyStopping:
    """Stop a solver after ``patience`` iterations without a new minimum of the loss on held-out rows.

    The best iterate of each solver is kept. The loss is read from ``curves``, to which a `Recorder` has
    already added the iterate.
    """

    def __init__(self, curves: Sequence[Curves], patience: int):
        self.curves = curves
        self.patience = patience
        self.best: dict[int, tuple[float, Iterate]] = {}  # by solver

    def __call__(self, solver: int, iterate: Iterate) -> bool:
        loss = self.curves[solver].held_out[-1]
        if solver not in self.best or loss < self.best[solver][0]:
            self.best[solver] = (loss, iterate)
        return iterate.iteration - self.best[solver][1].iteration >= self.patience

    def state(self, solver: int) -> State:
        """Return the state that a checkpoint keeps."""
        if solver not in self.best:
            return {}
        loss, iterate = self.best[solver]
        return {
            "loss": loss,
            "iteration": iterate.iteration,
            "params": iterate.params,
            "value": iterate.value,
        }

    def entries(self, state: State, start: np.ndarray) -> dict[str, Entry]:
        """Return the allowed entries of a state: there are none before the first iteration."""
        if "loss" not in state:
            return {}
        return {"loss": VALUE, "iteration": COUNT, "params": like(start), "value": VALUE}

    def restore(self, solver: int, state: State) -> None:
        if "loss" in state:
            iterate = Iterate(state["iteration"], state["params"], state["value"], np.nan, lambda: {})
            self.best[solver] = (state["loss"], iterate)

    def best_solver(self, solvers: Iterable[int]) -> int:
        return min(
            (solver for solver in solvers if solver in self.best), key=lambda number: self.best[number][0]
        )

    def best_of(self, solutions: Sequence[Solution], solvers: Sequence[int]) -> Solution:
        """Return the iterate of some solvers with the lowest held-out loss, or the best start."""
        if not any(solver in self.best for solver in solvers):
            return best_of([solutions[solver] for solver in solvers])
        number = self.best_solver(solvers)
        iterate = self.best[number][1]
        return replace(
            solutions[number], params=iterate.params, value=iterate.value, n_iter=iterate.iteration
        )


class ProgressLines:
    """Print the first iterations, then ever fewer: 1, 2, ..., 10, 20, ..., 100, 200, ..."""

    def __init__(self, verbose: int, name: str, n_solvers: int):
        self.verbose = verbose
        self.name = name
        self.n_solvers = n_solvers
        self.began = time.perf_counter()

    def __call__(self, solver: int, iterate: Iterate) -> bool:
        every = 1 if self.verbose > 1 else 10 ** max(len(str(iterate.iteration)) - 1, 0)
        if iterate.iteration % every == 0:
            start = f" start {solver + 1}/{self.n_solvers}" if self.n_solvers > 1 else ""
            seconds = time.perf_counter() - self.began
            print(
                f"[{self.name}]{start} iteration {iterate.iteration}: objective {iterate.value:.6g}, "
                f"largest gradient {iterate.largest_gradient:.2g}, {seconds:.1f} s",
                flush=True,
            )
        return False


class Furthest:
    """Report each iteration number once, for the first solver there; stop all if ``report`` says so."""

    def __init__(self, report: Callable[[Iterate], bool]):
        self.report = report
        self.reached = 0
        self.stopped = False

    def __call__(self, solver: int, iterate: Iterate) -> bool:
        if iterate.iteration > self.reached:
            self.reached = iterate.iteration
            self.stopped = self.report(iterate) or self.stopped
        return self.stopped
