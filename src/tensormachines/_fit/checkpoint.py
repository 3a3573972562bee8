"""Checkpoints: files from which an interrupted fit continues.

A checkpoint holds the identity of a fit (its settings, a checksum of its data), the random state with which
it began, and the state of each of its solvers. It is an .npz archive without pickles: loading it runs no
code, and every entry is checked before use. The file is replaced as a whole or not at all.
"""

from __future__ import annotations

import json
import os
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._data.atomic_file import complete_or_not
from .._data.files.damage import DAMAGED_ARCHIVE
from .monitors import EarlyStopping, Recorder
from .solvers.protocol import Iterate, Outcome, Solution, Solver, State
from .solvers.state import COUNT, VALUE, Array, Entry, Number, StateError, Text, check

FORMAT = 4
SECONDS_BETWEEN = 120.0
MERSENNE_WORDS = 624
RANDOM: dict[str, Entry] = {
    "keys": Array((MERSENNE_WORDS,), np.uint32),
    "position": Number(int, low=0, high=MERSENNE_WORDS),
    "has_gauss": Number(int, low=0, high=1),
    "gauss": VALUE,
}


class Checkpoint:
    """The checkpoint of one fit, read from ``path`` if it exists.

    The file is written every ``every`` iterations, or every two minutes.
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
        self.monitors: Sequence[Recorder | EarlyStopping] = ()  # their state is kept with each solver's state
        self.written = time.monotonic()

    def random_state(self, fresh: np.random.RandomState) -> np.random.RandomState:
        """Return the random state with which the fit began; ``fresh`` if it begins now."""
        if self.facts:
            with self._naming("random"):
                kept = self.states.get("random", {})
                check(kept, RANDOM)
                if not kept["keys"][1:].any():  # the generator would return zeros forever
                    raise StateError("keys", "has no bits")
            fresh = np.random.RandomState()
            fresh.set_state(("MT19937", *(kept[name] for name in RANDOM)))
        _, *parts = fresh.get_state()
        self.states["random"] = dict(zip(RANDOM, parts, strict=True))
        return fresh

    @contextmanager
    def _naming(self, state: str) -> Iterator[None]:
        """Turn an error about a wrong entry of a state into one that names the file."""
        try:
            yield
        except StateError as error:
            raise ValueError(
                f"{str(self.path)!r} is a damaged checkpoint: {state}/{error}. Delete it or choose another "
                "file."
            ) from error

    def identify(self, identity: dict[str, Any]) -> None:
        """Refuse to continue a fit with another identity."""
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

    def keep_with(self, monitors: Sequence[Recorder | EarlyStopping], starts: Sequence[np.ndarray]) -> None:
        """Also keep the state of monitors of solvers from these starts, and restore it if it was kept."""
        self.monitors = monitors
        numbers = range(len(starts))
        known = {"random", *(name for number in numbers for name in (f"{number}", f"{number} extra"))}
        for name in sorted({*self.states} - known):
            with self._naming(name):
                raise StateError("", "is not a part of this fit")
        for number, start in enumerate(starts):
            kept = self.states.get(f"{number} extra")
            if kept is not None:
                entries: dict[str, Entry] = {}
                for monitor in monitors:
                    entries |= monitor.entries(kept, start)
                with self._naming(f"{number} extra"):
                    check(kept, entries)
                for monitor in monitors:
                    monitor.restore(number, kept)

    def solver(self, number: int, make: Callable[..., Solver], start: np.ndarray) -> Solver:
        """Return the solver of ``make``, from ``start`` or from its kept state; keep its solution too."""
        kept = self.states.get(str(number))
        if kept is not None and "outcome" in kept:
            with self._naming(str(number)):
                check(kept, _solution(start))
            solution = Solution(
                kept["params"], kept["value"], kept["n_iter"], kept["n_evaluations"], Outcome[kept["outcome"]]
            )
        else:
            with self._naming(str(number)):
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

        Solvers run one after the other: earlier ones have ended, later ones have not begun.
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
        """Write the file atomically; if this fails, warn and let the fit continue."""
        facts: dict[str, Any] = {"format": FORMAT, "identity": self.identity, "states": {}}
        arrays: dict[str, Any] = {}
        for number, state in self.states.items():
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


def _solution(start: np.ndarray) -> dict[str, Entry]:
    return {
        "params": Array(start.shape, start.dtype, finite=False),
        "value": Number(float, nan=True),
        **{name: COUNT for name in ("n_iter", "n_evaluations")},
        "outcome": Text(Outcome.__getitem__),
    }


def _read(path: Path) -> tuple[dict[str, Any], dict[str, State]]:
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("not an archive")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.array(file[name], order="C") for name in file.files}
        facts = json.loads(arrays.pop("facts").tobytes())
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}, but this version reads {FORMAT}")
        if not isinstance(facts["identity"], dict):
            raise ValueError("it does not say to which fit it belongs")
        states: dict[str, State] = {number: dict(state) for number, state in facts["states"].items()}
    except DAMAGED_ARCHIVE as error:
        raise ValueError(
            f"{str(path)!r} cannot be read as a checkpoint: {error}. Delete it or choose another file."
        ) from error
    for name, array in arrays.items():
        number, _, key = name.partition("/")
        states.setdefault(number, {})[key] = array
    return facts, states
