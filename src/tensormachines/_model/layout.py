"""The place of each number of a Tensor Machine in its flat parameter vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

MOST_INT32 = 2**31 - 1  # compiled code counts degrees, ranks and outputs in int32
MOST_BYTES = 2**63 - 1


def _shown(count: int) -> str:
    """Return a count for an error message: in a damaged file it may have thousands of digits."""
    return f"{count:,}" if count < 10**21 else "more than 10^21"


@dataclass(frozen=True)
class Layout:
    """The shape of one model, and the views of its flat vector.

        f_k(x) = bias_k + <linear_k, x> + sum over p = 2..degree, i = 1..rank of  prod_{j=1..p} <v_kpij, x>

    With ``shared`` factors, all outputs share one set of terms, with separate weights for each output:

        f_k(x) = bias_k + <linear_k, x> + sum over p, i of  weight_kpi prod_{j=1..p} <v_pij, x>

    ``params`` is a vector of ``size`` numbers: the ``head``, which is the biases (n_outputs) and the weights
    (n_outputs, n_terms) if factors are shared, then the factors (n_features, n_columns), so that all numbers
    that multiply one feature are contiguous. The columns are the linear parts of the outputs, then the sets
    of terms: degree by degree the factors j = 1..p, ``rank`` of each. Arrays called params may hold several
    models, one per row."""

    code: ClassVar[int] = 0  # of the compiled kernel

    n_features: int
    degree: int
    rank: int
    n_outputs: int = 1
    shared: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit into memory, or that compiled code cannot count."""
        for name in ("degree", "rank", "n_outputs"):
            if getattr(self, name) > MOST_INT32:
                raise ValueError(f"{name} must be at most {MOST_INT32:,}, got {_shown(getattr(self, name))}.")
        if 8 * self.size > MOST_BYTES:
            raise ValueError(
                f"A model of degree {self.degree:,} and rank {self.rank:,} for {_shown(self.n_features)} "
                f"features has {_shown(self.size)} parameters, more than any memory holds. Use a smaller "
                "degree or rank."
            )

    def factors_in_term(self, p: int) -> int:
        return p

    @property
    def n_sets(self) -> int:
        """Return the number of sets of terms: one per output, or a single shared one."""
        return 1 if self.shared else self.n_outputs

    @property
    def n_terms(self) -> int:
        """Return the number of terms (products of two or more factors) in a set."""
        return (self.degree - 1) * self.rank

    @property
    def set_columns(self) -> int:
        return self.rank * (self.degree * (self.degree + 1) // 2 - 1)

    @property
    def n_columns(self) -> int:
        return self.n_outputs + self.n_sets * self.set_columns

    @property
    def head(self) -> int:
        return self.n_outputs * (1 + self.n_terms if self.shared else 1)

    @property
    def size(self) -> int:
        return self.head + self.n_features * self.n_columns

    def degrees(self) -> Iterator[tuple[int, slice]]:
        """Yield each degree p from 2 on and its columns in a set, (factors_in_term(p), rank) if reshaped."""
        start = 0
        for p in range(2, self.degree + 1):
            stop = start + self.factors_in_term(p) * self.rank
            yield p, slice(start, stop)
            start = stop

    # ---- views of params

    def bias(self, params: np.ndarray) -> np.ndarray:
        """Return a view of shape (..., n_outputs)."""
        return params[..., : self.n_outputs]

    def weights(self, params: np.ndarray) -> np.ndarray:
        """Return a view of shape (..., n_outputs, degree - 1, rank), with no output if nothing is shared."""
        shape = self.n_outputs if self.shared else 0, self.degree - 1, self.rank
        return params[..., self.n_outputs : self.head].reshape(*params.shape[:-1], *shape)

    def factors(self, params: np.ndarray) -> np.ndarray:
        """Return a view of shape (..., n_features, n_columns)."""
        return params[..., self.head :].reshape(*params.shape[:-1], self.n_features, self.n_columns)

    def linear(self, params: np.ndarray) -> np.ndarray:
        """Return a view of shape (..., n_features, n_outputs)."""
        return self.factors(params)[..., : self.n_outputs]

    def terms(self, params: np.ndarray) -> np.ndarray:
        """Return a view of shape (..., n_features, n_sets, set_columns)."""
        return self.by_set(self.factors(params))

    def by_set(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns of (..., n_columns) that belong to terms, as a view of (..., n_sets,
        set_columns)."""
        return columns[..., self.n_outputs :].reshape(*columns.shape[:-1], self.n_sets, self.set_columns)

    def factors_by_degree(self, params: np.ndarray) -> dict[int, np.ndarray]:
        """Return the factors of one model: {p: (n_sets, rank, p, n_features)}."""
        terms, shape = self.terms(params), (self.n_features, self.n_sets, -1, self.rank)
        return {p: terms[:, :, columns].reshape(shape).transpose(1, 3, 2, 0) for p, columns in self.degrees()}

    def factors_of_output(self, params: np.ndarray, k: int) -> np.ndarray:
        """Return the linear part and the terms of output k of one model, (n_features, 1 + set_columns).

        Shared terms are multiplied by the weights of the output, in their first factors."""
        terms = self.terms(params)[:, 0 if self.shared else k]
        factors = np.concatenate([self.linear(params)[:, k, None], terms], axis=1)
        if self.shared:
            for (_, columns), weights in zip(self.degrees(), self.weights(params)[k], strict=True):
                factors[:, 1:][:, columns][:, : self.rank] *= weights
        return factors

    # ---- models of other shapes

    def terms_before(self, rank: int) -> np.ndarray:
        """Return the indices of the params of the model with only the first ``rank`` terms of each degree."""
        places = np.arange(self.size)
        terms, kept = self.terms(places), [np.empty((self.n_features, self.n_sets, 0), dtype=np.intp)]
        for p, columns in self.degrees():
            some = terms[:, :, columns].reshape(self.n_features, self.n_sets, -1, self.rank)[..., :rank]
            kept.append(some.reshape(self.n_features, self.n_sets, self.factors_in_term(p) * rank))
        of_sets = np.concatenate(kept, axis=2).reshape(self.n_features, -1)
        factors = np.concatenate([self.linear(places), of_sets], axis=1)
        weights = self.weights(places)[..., :rank]
        return np.concatenate([self.bias(places), weights.ravel(), factors.ravel()])

    def with_rank(self, rank: int) -> Self:
        return replace(self, rank=rank) if rank else replace(self, degree=1, rank=1)

    def scale_outputs(self, params: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return one model with its outputs multiplied by ``scale`` > 0 (n_outputs).

        The weights of shared terms are multiplied; otherwise the factors of a term share the scale
        equally."""
        scaled = params.copy()
        self.bias(scaled)[...] *= scale
        self.linear(scaled)[...] *= scale
        if self.shared:
            self.weights(scaled)[...] *= scale[:, None, None]
            return scaled
        for p, columns in self.degrees():
            self.terms(scaled)[:, :, columns] *= (scale ** (1.0 / p))[:, None]
        return scaled


@dataclass(frozen=True)
class AnovaLayout(Layout):
    """A factorization machine: a term has one factor and is a sum over sets of p different features,

        f_k(x) = bias_k + <linear_k, x>
            + sum over p = 2..degree, i = 1..rank of  sum over t1 < ... < tp of  prod_{t=t1..tp} v_kpi[t] x_t

    As in a product, multiplying the factor by c multiplies the term by c^p."""

    code: ClassVar[int] = 1

    def factors_in_term(self, p: int) -> int:
        return 1

    @property
    def set_columns(self) -> int:
        return self.rank * (self.degree - 1)

    def factors_by_degree(self, params: np.ndarray) -> dict[int, np.ndarray]:
        """Return the factors of one model: {p: (n_sets, rank, n_features)}."""
        terms = self.terms(params)
        return {p: terms[:, :, columns].transpose(1, 2, 0) for p, columns in self.degrees()}


Model = tuple[Layout, np.ndarray]  # a layout, and the params of one model


def side_by_side(models: Sequence[Model]) -> Model:
    """Return a model that joins the outputs of several models with one output each, in the same basis.

    The models may differ in degree and rank; terms that a model lacks are 0."""
    first = models[0][0]
    shape = {"degree": max(own.degree for own, _ in models), "rank": max(own.rank for own, _ in models)}
    layout = replace(first, n_outputs=len(models), shared=False, **shape)
    joined = np.zeros(layout.size, dtype=np.result_type(*[params for _, params in models]))
    terms = layout.terms(joined)
    for k, (own, params) in enumerate(models):
        layout.bias(joined)[k] = own.bias(params)[0]
        layout.linear(joined)[:, k] = own.linear(params)[:, 0]
        for (p, columns), (_, of_own) in zip(layout.degrees(), own.degrees(), strict=False):
            shape_of_terms = (layout.n_features, layout.factors_in_term(p), -1)
            found = own.terms(params)[:, 0, of_own].reshape(shape_of_terms)
            terms[:, k, columns].reshape(shape_of_terms)[..., : own.rank] = found
    return layout, joined


def one_of_several(model: Model, output: int) -> Model:
    """Return a model of one output of a model without shared factors."""
    layout, params = model
    own = replace(layout, n_outputs=1)
    found = np.empty(own.size, dtype=params.dtype)
    own.bias(found)[0] = layout.bias(params)[output]
    own.linear(found)[:, 0] = layout.linear(params)[:, output]
    own.terms(found)[:, 0] = layout.terms(params)[:, output]
    return own, found


def weighted_sum(models: Sequence[Model], weights: Sequence[float]) -> Model:
    """Return a model whose outputs are the weighted sum of the outputs of several models, with weights > 0.

    The models may differ in degree and rank. The rank of the result is the sum of their ranks; linear models
    count 0."""
    first = models[0][0]
    rank = sum(layout.rank for layout, _ in models if layout.degree > 1)
    layout = replace(first, degree=max(each.degree for each, _ in models), rank=rank or first.rank)
    total = np.zeros(layout.size, dtype=np.result_type(*[params for _, params in models]))
    of_terms, of_weights = layout.terms(total), layout.weights(total)
    begin = 0
    for (own, params), weight in zip(models, weights, strict=True):
        scaled = own.scale_outputs(params, np.full(own.n_outputs, weight, dtype=total.dtype))
        layout.bias(total)[...] += own.bias(scaled)
        layout.linear(total)[...] += own.linear(scaled)
        if own.degree == 1:
            continue
        ranks = slice(begin, begin + own.rank)
        begin = ranks.stop
        of_weights[:, : own.degree - 1, ranks] = own.weights(scaled)
        for (p, columns), (_, of_own) in zip(layout.degrees(), own.degrees(), strict=False):
            shape = (layout.n_features, layout.n_sets, layout.factors_in_term(p), -1)
            found = own.terms(scaled)[:, :, of_own].reshape(shape)
            of_terms[:, :, columns].reshape(shape)[..., ranks] = found
    return layout, total
