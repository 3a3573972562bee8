"""Random search under a budget of CPU seconds, the same for every rival of accuracy.py.

A fifth of the training rows is held out; below 1,000 rows each fifth in turn, since one would say little. The
first candidate has the library's defaults, the others are drawn at random; the search ends when two thirds of
the budget are used. The best candidate is then fitted to all training rows. Candidates are compared by
squared error or log-loss on the held-out rows. Each gets a quarter of the search at most. Where the clock
rather than early stopping ended the best one, the search ends sooner and leaves the rest to the last fit."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FrameType
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from sets import Data, Sample

SEARCH_SHARE = 2 / 3
Params = dict[str, Any]


def budget_seconds(data: Data, least: float = 3.0) -> float:
    """Return 60 CPU seconds, less for small sets: 60 sqrt(rows x columns / 3e6), and at least ``least``."""
    rows, columns = data.train.X.shape
    return max(least, 60 * math.sqrt(min(1.0, rows * columns / 3e6)))


class SkipError(Exception):
    """A method that does not apply to a set; the message says why."""


class OutOfTimeError(Exception):
    """A fit that did not end within its CPU seconds."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError after so many CPU seconds, as soon as control is back in Python."""
    over = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal over
        over = True
        raise OutOfTimeError(f"stopped after {seconds:.1f} CPU seconds")

    previous = signal.signal(signal.SIGPROF, stop)
    # Every half second again, since some libraries swallow the first exception.
    signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.01), 0.5)
    try:
        yield
    except Exception as error:
        if over:  # compiled code may have turned it into an error of its own
            raise OutOfTimeError(f"stopped after {seconds:.1f} CPU seconds") from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


@dataclass
class Fitted:
    """A fitted model as it is measured.

    predict : X -> values, probabilities (of class 1 if there are two), or scores
    """

    predict: Callable[[Any], np.ndarray]
    n_bytes: int  # of the smallest representation that predicts
    has_probabilities: bool = True
    width: int = 0  # numbers a row that predicting makes: bounds the rows of a call


@dataclass
class Trial:
    """A candidate, its loss on held-out rows, and for boosting the number of rounds at which that was least.

    reach : how many times these rounds the last fit may take: 1 if early stopping ended the trial, more if
        the clock did
    """

    params: Params
    loss: float
    rounds: int = 0
    reach: int = 1
    seconds: float = 0.0  # CPU time for each fold

    @property
    def most_rounds(self) -> int:
        return self.reach * self.rounds


@dataclass
class Rival:
    """A method as the search needs it.

    One object serves one set and seed, so it may keep what its candidates share.
    """

    data: Data
    seed: int
    budget: float
    fold: int = 0
    hurried: bool = False  # the clock ended the defaults long before they were at their best
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    @cached_property
    def parts(self) -> tuple[Sample, Sample]:
        """Rows that candidates learn from, and rows held out."""
        Folds = StratifiedKFold if self.data.n_classes else KFold
        y = self.data.train.y
        learn, held_out = list(Folds(5, shuffle=True, random_state=self.seed).split(y, y))[self.fold]
        return self.data.train.rows(learn), self.data.train.rows(held_out)

    def candidates(self) -> Iterator[Params]:
        raise NotImplementedError

    def trial(self, params: Params, seconds: float) -> Trial:
        raise NotImplementedError

    def refit(self, trial: Trial, seconds: float) -> Fitted:
        raise NotImplementedError

    def outputs(self, model: Any, X: Any) -> np.ndarray:
        """Return the values, or the probabilities, that a model with scikit-learn's methods predicts."""
        return model.predict_proba(X) if self.data.n_classes else model.predict(X)

    def log_uniform(self, low: float, high: float) -> float:
        return float(f"{math.exp(self.rng.uniform(math.log(low), math.log(high))):.3g}")

    def log_integer(self, low: int, high: int) -> int:
        return round(self.log_uniform(low, high))

    def uniform(self, low: float, high: float) -> float:
        return round(float(self.rng.uniform(low, high)), 3)

    def choice(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]


def search(rival: Rival) -> tuple[Fitted, Trial, int, float]:
    """Return the refitted best candidate, its trial, how many were tried, and the seconds of the refit."""
    began = time.process_time()
    limit = SEARCH_SHARE * rival.budget
    folds = [rival] if len(rival.data.train.y) >= 1000 else [replace(rival, fold=fold) for fold in range(5)]
    best, tried = None, 0
    for params in rival.candidates():
        left = limit - (time.process_time() - began)
        if best is not None and left < {1: 0.03, 2: 0.25}.get(best.reach, 0.5) * limit:
            break
        seconds, before = min(left, limit / 4), time.process_time()
        try:
            with cpu_limit(rival.budget if best is None else 1.5 * left):
                trial = mean_of([each.trial(dict(params), seconds / len(folds)) for each in folds])
        except OutOfTimeError:
            continue
        finally:
            tried += 1
        trial.seconds = (time.process_time() - before) / len(folds)
        if best is None:
            rival.hurried = trial.reach > 2
        if best is None or trial.loss < best.loss:
            best = trial
    if best is None:
        raise OutOfTimeError(f"none of {tried} candidates ended within {rival.budget:.1f} CPU seconds")
    before = time.process_time()
    with cpu_limit(4 * rival.budget):
        fitted = rival.refit(best, rival.budget - (before - began))
    return fitted, best, tried, time.process_time() - before


def mean_of(trials: list[Trial]) -> Trial:
    """Return one trial for a candidate on several folds, with the mean loss and the median of the rounds.

    The mean of the rounds would be useless: a fold that is separated perfectly would go on for ever."""
    if len(trials) == 1:
        return trials[0]
    rounds = int(np.median([trial.rounds for trial in trials]))
    loss = float(np.mean([trial.loss for trial in trials]))
    return Trial(trials[0].params, loss, rounds)
