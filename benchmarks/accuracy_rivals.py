"""The rivals of accuracy.py that are linear in fixed features: columns, monomials, Nystroem's, a kernel's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

from accuracy_search import Fitted, Params, Rival, SkipError, Trial
from default_rivals import linear_features
from measures import error_of, loss_of, pickled_bytes
from sets import Sample

MOST_NUMBERS = 2e8  # float64, of a matrix of features
SPEED = 1.5e10  # operations a second; fits that cannot be stopped and would take too long are refused


class LinearRival(Rival):
    """Ridge or logistic regression of standardised columns and one-hot categories."""

    n_candidates = 20

    def candidates(self) -> Iterator[Params]:
        yield {"strength": 1.0}
        for _ in range(self.n_candidates - 1):
            yield {"strength": self.log_uniform(1e-4, 1e4)}

    def features(self, params: Params) -> list[Any]:
        return [linear_features(self.data.train.X)]

    def model(self, params: Params) -> Any:
        """Return a pipeline. `strength` is C of LogisticRegression, 1 / alpha of Ridge; both default to 1."""
        C = params["strength"]
        last = LogisticRegression(C=C, max_iter=200) if self.data.n_classes else Ridge(alpha=1 / C)
        return make_pipeline(*self.features(params), last)

    def trial(self, params: Params, seconds: float) -> Trial:
        learn, held_out = self.parts
        model = self.model(params).fit(learn.X, learn.y)
        return Trial(params, loss_of(self.outputs(model, held_out.X), held_out.y, self.data.n_classes))

    def refit(self, trial: Trial, seconds: float) -> Fitted:
        model = self.model(trial.params).fit(self.data.train.X, self.data.train.y)
        return Fitted(partial(self.outputs, model), pickled_bytes(model), width=self.width(trial.params))

    def width(self, params: Params) -> int:
        return 0

    def seconds(self, width: int) -> float:
        """Return a guess at the time of one fit with so many features."""
        rows = len(self.data.train.y)
        if self.data.n_classes:
            return 200 * 6 * rows * width * max(1, self.data.n_classes - 1) / SPEED
        return 2 * rows * width * min(rows, width) / SPEED

    def scaling(self, params: Params) -> Any:
        if params["scaling"] == "quantiles":
            return QuantileTransformer(output_distribution="normal", random_state=self.seed)
        return StandardScaler()

    def numbers_only(self) -> None:
        if self.data.categories:
            raise SkipError("takes numbers only; one-hot columns of this many levels would be too wide")


class PolynomialRival(LinearRival):
    """All monomials up to a degree, standardised again, then linear."""

    n_candidates = 40

    def width(self, params: Params) -> int:
        return math.comb(self.data.train.X.shape[1] + params["degree"], params["degree"]) - 1

    def degrees(self) -> list[int]:
        rows = len(self.data.train.y)
        widths = {degree: self.width({"degree": degree}) for degree in (2, 3)}
        affordable = [
            d
            for d, width in widths.items()
            if rows * width <= MOST_NUMBERS and self.seconds(width) < self.budget / 3
        ]
        if not affordable:
            raise SkipError(
                f"{widths[2]:,} monomials of degree 2 for {rows:,} rows are too many for the budget"
            )
        return affordable

    def candidates(self) -> Iterator[Params]:
        self.numbers_only()
        degrees = self.degrees()
        yield {"degree": 2, "strength": 1.0, "scaling": "standard"}
        for _ in range(self.n_candidates - 1):
            yield {
                "degree": self.choice(*degrees),
                "strength": self.log_uniform(1e-5, 1e2),
                "scaling": self.choice("standard", "quantiles"),
            }

    def features(self, params: Params) -> list[Any]:
        # Monomials are nearly collinear: in float32 the normal equations would be too coarse.
        expand = PolynomialFeatures(params["degree"], include_bias=False)
        return [FunctionTransformer(np.float64), self.scaling(params), expand, StandardScaler()]


class NystroemRival(LinearRival):
    """Nystroem's features of the RBF kernel, then linear."""

    n_candidates = 60

    def width(self, params: Params) -> int:
        return int(params["components"])

    def candidates(self) -> Iterator[Params]:
        self.numbers_only()
        rows, columns = self.data.train.X.shape
        most = int(min(2000, rows * 0.8, MOST_NUMBERS / rows))
        while self.seconds(most) > self.budget / 5 and most > 100:
            most = most * 4 // 5
        yield {"components": min(100, most), "gamma": 1 / columns, "strength": 1.0, "scaling": "standard"}
        for _ in range(self.n_candidates - 1):
            yield {
                "components": self.log_integer(min(most, 200), most),
                "gamma": self.log_uniform(0.02, 3) / columns,
                "strength": self.log_uniform(1e-2, 1e5),
                "scaling": self.choice("standard", "quantiles"),
            }

    def features(self, params: Params) -> list[Any]:
        features = Nystroem(gamma=params["gamma"], n_components=params["components"], random_state=self.seed)
        return [FunctionTransformer(np.float64), self.scaling(params), features]


class KernelRidgeRival(LinearRival):
    """Exact kernel ridge regression with the RBF kernel, on as many random rows as the budget allows.

    Classes are targets of -1 and +1, one for each class."""

    n_candidates = 60

    def candidates(self) -> Iterator[Params]:
        self.numbers_only()
        columns = self.data.train.X.shape[1]
        yield {"alpha": 1.0, "gamma": 1 / columns, "scaling": "standard"}
        for _ in range(self.n_candidates - 1):
            yield {
                "alpha": self.log_uniform(1e-5, 3),
                "gamma": self.log_uniform(0.02, 3) / columns,
                "scaling": self.choice("standard", "quantiles"),
            }

    def rows_for(self, seconds: float) -> int:
        return int(min(14_000, (3 * SPEED * seconds) ** (1 / 3)))

    def model(self, params: Params) -> Any:
        last = KernelRidge(alpha=params["alpha"], kernel="rbf", gamma=params["gamma"])
        return make_pipeline(FunctionTransformer(np.float64), self.scaling(params), last)

    def fit(self, params: Params, sample: Sample, seconds: float) -> tuple[Any, float, int]:
        """Return the model, the mean of the targets, and the number of rows.

        Targets are centred: the kernel has no intercept."""
        rows = self.rows_for(seconds)
        if rows < len(sample.y):
            sample = sample.rows(np.random.default_rng(self.seed).choice(len(sample.y), rows, replace=False))
        targets: np.ndarray = sample.y
        if self.data.n_classes == 2:
            targets = 2.0 * sample.y - 1
        elif self.data.n_classes:
            targets = 2.0 * np.eye(self.data.n_classes)[sample.y] - 1
        mean = float(targets.mean())
        return self.model(params).fit(sample.X, targets - mean), mean, len(sample.y)

    def trial(self, params: Params, seconds: float) -> Trial:
        learn, held_out = self.parts
        model, mean, _ = self.fit(params, learn, self.budget / 20)
        some = held_out.first(5000)
        outputs = model.predict(some.X) + mean
        if not self.data.n_classes:
            return Trial(params, loss_of(outputs, some.y, 0))
        return Trial(params, error_of(outputs, some.y, self.data.n_classes, threshold=0.0))

    def refit(self, trial: Trial, seconds: float) -> Fitted:
        model, mean, rows = self.fit(trial.params, self.data.train, max(seconds, self.budget / 4))
        trial.params["rows"] = rows
        size = pickled_bytes(model, mean)
        return Fitted(
            lambda X: model.predict(X) + mean, size, has_probabilities=not self.data.n_classes, width=rows
        )
