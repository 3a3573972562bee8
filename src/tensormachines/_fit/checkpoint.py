"""Files from which an interrupted fit goes on.

A checkpoint holds what makes a fit the same fit (its settings, a checksum of its data), the random numbers
with which it began, and the state of each of its solvers. It is an .npz archive without pickles: loading one
runs no code. It is replaced as a whole or not at all."""

from __future__ import annotations

import io
import json
import os
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .solvers.protocol import Iterate, Outcome, Solution, Solver, State

FORMAT = 1
SECONDS_BETWEEN = 120.0


class Checkpoint:
    """The checkpoint of one fit, read from ``path`` if there is one, and written there every ``every``
    iterations, or every two minutes.
    """

    def __init__(self, path: str | os.PathLike[str], every: int | None):
        self.path = Path(path)
        self.every = every
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint={str(path)!r}: there is no folder {str(self.path.parent)!r}.")
        self.facts, self.states = _read(self.path) if self.path.exists() else ({}, {})
        self.identity: dict[str, Any] = {}
        self.random: State = {}
        self.extra: Callable[[int], State] = (
            lambda solver: {}
        )  # what else has to be kept with the state of a solver
        self.written = time.monotonic()

    def random_state(self, fresh: np.random.RandomState) -> np.random.RandomState:
        """The one with which the fit began; ``fresh`` if it begins now."""
        if self.facts:
            kind, _, position, has_gauss, gauss = self.facts["random"]
            fresh = np.random.RandomState()
            fresh.set_state((kind, self.states["random"]["keys"], position, has_gauss, gauss))
        kind, keys, position, has_gauss, gauss = fresh.get_state()
        self.random = {"facts": [kind, None, position, has_gauss, gauss], "keys": keys}
        return fresh

    def identify(self, identity: dict[str, Any]) -> None:
        """Refuse to go on with another fit than the one that is to be done."""
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
                f"{str(self.path)!r} is the checkpoint of another fit: {was}. Fit as before to go on, or delete the file or choose another "
                "to begin anew."
            )

    def kept_extra(self, solver: int) -> State:
        return self.states.get(f"{solver} extra", {})

    def solver(self, number: int, make: Callable[..., Solver]) -> Solver:
        """The solver that ``make`` gives, from its start or from the state that was kept; its end is kept,
        too.
        """
        kept = self.states.get(str(number))
        if kept is not None and "outcome" in kept:
            solution = Solution(
                kept["params"], kept["value"], kept["n_iter"], kept["n_evaluations"], Outcome[kept["outcome"]]
            )
        else:
            solution = yield from make(resume=kept)
        self._keep(number, {**vars(solution), "outcome": solution.outcome.name})
        return solution

    def _keep(self, solver: int, state: State) -> None:
        self.states[str(solver)] = state
        self.states[f"{solver} extra"] = self.extra(solver)

    def watch(self, solver: int, iterate: Iterate) -> bool:
        """Keep the state when it is time to.

        Solvers run one after the other: those before have ended, those after not begun.
        """
        due = (
            iterate.iteration % self.every == 0
            if self.every
            else time.monotonic() - self.written > SECONDS_BETWEEN
        )
        if due:
            self._keep(solver, iterate.state())
            self.write()
        return False

    def write(self) -> None:
        """All or nothing: the new file is complete before it takes the name of the old one."""
        facts: dict[str, Any] = {
            "format": FORMAT,
            "identity": self.identity,
            "random": self.random["facts"],
            "states": {},
        }
        arrays = {"random/keys": self.random["keys"]}
        for number, state in self.states.items():
            if number != "random":
                arrays.update(
                    {
                        f"{number}/{name}": value
                        for name, value in state.items()
                        if isinstance(value, np.ndarray)
                    }
                )
                facts["states"][number] = {
                    name: value for name, value in state.items() if not isinstance(value, np.ndarray)
                }
        content = io.BytesIO()
        np.savez(
            content,
            facts=np.frombuffer(json.dumps(facts, default=np.generic.item).encode(), dtype=np.uint8),
            **arrays,
        )
        self.written = time.monotonic()
        unfinished = self.path.with_name(self.path.name + ".unfinished")
        try:
            with open(unfinished, "wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, self.path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            warnings.warn(
                f"The checkpoint {str(self.path)!r} could not be written: {error}. The fit goes on.",
                RuntimeWarning,
                stacklevel=2,
            )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, State]]:
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no archive")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(arrays.pop("facts").tobytes())
        if facts["format"] != FORMAT:
            raise ValueError(f"its format is {facts['format']}, this version reads {FORMAT}")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{str(path)!r} is no checkpoint that can be read: {error}. Delete it or choose another file."
        ) from error
    states: dict[str, State] = {number: dict(state) for number, state in facts.pop("states").items()}
    for name, array in arrays.items():
        number, _, key = name.partition("/")
        states.setdefault(number, {})[key] = array
    return facts, states
