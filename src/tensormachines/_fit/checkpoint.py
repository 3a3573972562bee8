"""Checkpoints: files from which an interrupted fit continues.

A checkpoint holds the identity of a fit (its settings, a checksum of its data), the random state with which
it began, and the state of each of its solvers. It is an .npz archive without pickles: loading one runs no
code. It is replaced as a whole or not at all.
"""

from __future__ import annotations

import json
import os
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._data.atomic_file import complete_or_not
from .monitors import EarlyStopping, Recorder
from .solvers.protocol import Iterate, Outcome, Solution, Solver, State

FORMAT = 3
SECONDS_BETWEEN = 120.0


class Checkpoint:
    """The checkpoint of one fit, read from ``path`` if it exists.

    It is written there every ``every`` iterations, or every two minutes.
    """

    def __init__(self, path: str | os.PathLike[str], every: int | None):
        self.path = Path(path)
        self.every = every
        if not self.path.parent.is_dir():
            raise ValueError(
                f"checkpoint={str(path)!r}: the folder {str(self.path.parent)!r} does not exist."
            )
        self.facts, self.states = _read(self.path) if self.path.exists() else ({}, {})
        self.identity: dict[str, Any] = {}
        self.random: State = {}
        self.monitors: Sequence[Recorder | EarlyStopping] = ()  # their state is kept with that of each solver
        self.written = time.monotonic()

    def random_state(self, fresh: np.random.RandomState) -> np.random.RandomState:
        """Return the random state with which the fit began; ``fresh`` if it begins now."""
        if self.facts:
            kind, _, position, has_gauss, gauss = self.facts["random"]
            fresh = np.random.RandomState()
            fresh.set_state((kind, self.states["random"]["keys"], position, has_gauss, gauss))
        kind, keys, position, has_gauss, gauss = fresh.get_state()
        self.random = {"facts": [kind, None, position, has_gauss, gauss], "keys": keys}
        return fresh

    def identify(self, identity: dict[str, Any]) -> None:
        """Refuse to continue another fit than the one with this identity."""
        self.identity = json.loads(json.dumps(identity))
        before = self.facts.get("identity", self.identity)
        different = sorted(
            name for name in {*before, *self.identity} if before.get(name) != self.identity.get(name)
        )
        if different:
            was = ", ".join(
                f"{name} was {before.get(name)}, is {self.identity.get(name)}" for name in different
            )
            raise ValueError(
                f"{str(self.path)!r} is the checkpoint of another fit: {was}. Fit with the old settings and "
                "data to continue; delete the file or choose another one to start anew."
            )

    def keep_with(self, monitors: Sequence[Recorder | EarlyStopping], n_solvers: int) -> None:
        """Keep the state of monitors too, and restore what was kept of it."""
        self.monitors = monitors
        for number in range(n_solvers):
            if kept := self.states.get(f"{number} extra"):
                for monitor in monitors:
                    monitor.restore(number, kept)

    def solver(self, number: int, make: Callable[..., Solver]) -> Solver:
        """Return the solver of ``make``, from its start or from its kept state; its solution is kept too."""
        kept = self.states.get(str(number))
        if kept is not None and "outcome" in kept:
            solution = Solution(
                kept["params"], kept["value"], kept["n_iter"], kept["n_evaluations"], Outcome[kept["outcome"]]
            )
        else:
            solution = yield from make(resume=kept)
        ended = {**vars(solution), "outcome": solution.outcome.name}
        del ended["curves"]  # a recorder keeps them
        self._keep(number, ended)
        return solution

    def _keep(self, solver: int, state: State) -> None:
        self.states[str(solver)] = state
        extra: State = {}
        for monitor in self.monitors:
            extra |= monitor.state(solver)
        self.states[f"{solver} extra"] = extra

    def watch(self, solver: int, iterate: Iterate) -> bool:
        """Write the state when it is due.

        Solvers run one after the other: those before have ended, those after have not begun.
        """
        if self.every:
            due = iterate.iteration % self.every == 0
        else:
            due = time.monotonic() - self.written > SECONDS_BETWEEN
        if due:
            self._keep(solver, iterate.state())
            self.write()
        return False

    def write(self) -> None:
        """Write the file atomically; if that fails, warn and let the fit continue."""
        facts: dict[str, Any] = {
            "format": FORMAT,
            "identity": self.identity,
            "random": self.random["facts"],
            "states": {},
        }
        arrays = {"random/keys": self.random["keys"]}
        for number, state in self.states.items():
            if number != "random":
                plain = facts["states"][number] = {}
                for name, value in state.items():
                    if isinstance(value, np.ndarray):
                        arrays[f"{number}/{name}"] = value
                    else:
                        plain[name] = value
        text = np.frombuffer(json.dumps(facts, default=np.generic.item).encode(), dtype=np.uint8)
        self.written = time.monotonic()
        try:
            with complete_or_not(self.path) as unfinished, open(unfinished, "wb") as file:
                np.savez(file, facts=text, **arrays)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            warnings.warn(
                f"The checkpoint {str(self.path)!r} could not be written: {error}. The fit goes on.",
                RuntimeWarning,
                stacklevel=2,
            )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, State]]:
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("not an archive")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(arrays.pop("facts").tobytes())
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}, but this version reads {FORMAT}")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{str(path)!r} cannot be read as a checkpoint: {error}. Delete it or choose another file."
        ) from error
    states: dict[str, State] = {number: dict(state) for number, state in facts.pop("states").items()}
    for name, array in arrays.items():
        number, _, key = name.partition("/")
        states.setdefault(number, {})[key] = array
    return facts, states
