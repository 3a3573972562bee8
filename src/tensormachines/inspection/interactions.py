"""The largest interactions of a Tensor Machine, found without computing all of them.

Pairs. The coefficient of x_i x_j is the dot product of row i of one matrix and row j of another, both
(variables, K) with K of the order of the rank. So it is at most the product of the norms of these rows.
Variables are sorted by their norms, and blocks of rows are multiplied until no product of norms can exceed
what has been found. The search is exact; it takes O(variables^2 K) at worst, and much less if few variables
matter.

Larger sets. Given all but two variables of a set, the coefficient is again that of a pair, so the search is
over the given variables, best first. The coefficient of a set of p variables is a sum of permanents of p x p
matrices of factors, one for each product, and

    |permanent of rows a_i| <= p! / p^(p/2) prod_i |a_i|        (Carlen, Lieb & Loss 2006)

bounds all sets that begin with the same variables. The search ends when no remaining set can exceed what was
found, or after max_steps."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from .forms import Forms, forms_of
from .monomials import Monomial, coefficients, product_coefficients
from .ranked import Ranked

ENTRIES_AT_ONCE = 1 << 20
ROWS_AT_ONCE = 128
ROUNDING = 1 + 1e-9  # compensates for rounding errors of bounds


class Interactions(Ranked):
    """Coefficients by set of variables, largest first.

    Attributes
    ----------
    complete : bool
        Whether the search has proven that no other set has a larger coefficient.
    bound : float
        Upper bound on the absolute coefficients of all other sets.
    """

    def __init__(self, entries: dict[Monomial, float], of_what: str, complete: bool, bound: float):
        guarantee = "none is larger" if complete else f"not proven: others may reach {bound:.3g}"
        super().__init__(entries, f"largest interactions of {of_what} ({guarantee})")
        self.complete = complete
        self.bound = bound


def top_interactions(
    model: Any,
    k: int = 10,
    order: int = 2,
    *,
    output: Any = None,
    units: str = "basis",
    max_steps: int = 1000,
) -> Interactions:
    """Return the k largest absolute coefficients of products of ``order`` variables of different columns.

    For pairs the result is exact. For more variables it is exact if `complete` is True; otherwise the search
    ended after max_steps, and `bound` is an upper bound on the coefficients that it has not seen. Each step
    is a search for pairs, given the other variables.

    Parameters
    ----------
    model : fitted Tensor Machine
    k : int
    order : int
        From 2 to the degree of the model.
    output
        As in `polynomial`.
    units : {"basis", "original"}
        With "basis" and basis="standard", coefficients are comparable, because all columns have the same
        standard deviation. In original units, the coefficient of a column in metres is a thousand times that
        of the same column in millimetres.
    max_steps : int
        Maximum number of steps in the search for sets of more than two variables.

    Returns
    -------
    Interactions
        Fewer than k entries if fewer coefficients differ from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import top_interactions
    >>> X = np.random.default_rng(0).normal(size=(300, 50))
    >>> y = X[:, 3] * X[:, 17] + 2 * X[:, 8] * X[:, 40] * X[:, 41]
    >>> model = TensorMachineRegressor(degree=3, rank=2, basis=None, solver="lbfgs", random_state=1).fit(X, y)
    >>> found = top_interactions(model, 1, order=3)
    >>> list(found), found.complete
    ([('x8', 'x40', 'x41')], True)
    """
    forms = forms_of(model, output, units)
    if not 2 <= order <= forms.degree:
        raise ValueError(f"order must be from 2 to the degree of the model, {forms.degree}, got {order!r}.")
    if k < 1 or max_steps < 1:
        raise ValueError(f"k and max_steps must be 1 or more, got k={k!r} and max_steps={max_steps!r}.")
    balanced = replace(forms, terms=tuple(_balanced(offsets, factors) for offsets, factors in forms.terms))
    best = _Best(k)
    left = np.inf
    if order == 2:
        _search_pairs(balanced, (), np.arange(len(forms.names)), best)
        left = 0.0
    else:
        left = _search_sets(balanced, order, best, max_steps)
    found = coefficients(forms, [tuple(sorted(key)) for _, key in sorted(best.heap, reverse=True)])
    ranked = sorted(found.items(), key=lambda entry: -abs(entry[1]))
    named = {tuple(forms.names[v] for v in key): value for key, value in ranked}
    return Interactions(named, forms.of_what, left <= best.least, max(left, best.least))


@dataclass
class _Best:
    """The k largest sizes so far, with their sets; a new size must exceed ``least``."""

    k: int

    def __post_init__(self) -> None:
        self.heap: list[tuple[float, tuple[int, ...]]] = []

    @property
    def least(self) -> float:
        return self.heap[0][0] if len(self.heap) == self.k else 0.0

    def offer(self, size: float, key: tuple[int, ...]) -> None:
        if size > self.least:
            (heapq.heappushpop if len(self.heap) == self.k else heapq.heappush)(self.heap, (size, key))


def _balanced(offsets: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same products with forms of equal norms, for tight bounds, and without zero terms."""
    norms = np.linalg.norm(factors, axis=2)
    alive = (norms > 0).all(axis=1) | ((norms > 0) | (offsets != 0)).all(axis=1)
    offsets, factors, norms = offsets[alive], factors[alive], norms[alive]
    norms = np.where(norms > 0, norms, 1.0)
    scale = np.exp(np.log(norms).mean(axis=1, keepdims=True)) / norms
    return offsets * scale, factors * scale[:, :, None]


# ---- pairs


def _search_pairs(forms: Forms, given: tuple[int, ...], allowed: np.ndarray, best: _Best) -> None:
    """Offer all promising pairs of allowed variables, joined with the given ones, to ``best``."""
    one, other = _pair_factors(forms, given, allowed)
    rows, columns = np.hstack([one, other]), np.hstack([other, one])
    norms = np.linalg.norm(rows, axis=1)
    order = np.argsort(-norms, kind="stable")
    rows, columns, norms, allowed = rows[order], columns[order], norms[order], allowed[order]
    groups = forms.groups[allowed]
    at_once = int(np.clip(ENTRIES_AT_ONCE // max(1, len(allowed)), 1, ROWS_AT_ONCE))
    for start in range(0, len(allowed), at_once):
        reach = int(np.count_nonzero(norms[start] * norms * ROUNDING > best.least))
        if reach <= start + 1:
            return
        stop = min(start + at_once, reach)
        sizes = np.abs(rows[start:stop] @ columns[start:reach].T)
        sizes[groups[start:stop, None] == groups[None, start:reach]] = 0.0
        sizes[np.arange(start, stop)[:, None] >= np.arange(start, reach)[None]] = 0.0  # each pair once
        candidates = np.flatnonzero(sizes > best.least)
        if len(candidates) > best.k:
            candidates = candidates[np.argpartition(-sizes.ravel()[candidates], best.k)[: best.k]]
        for place in candidates.tolist():
            i, j = divmod(place, reach - start)
            best.offer(float(sizes[i, j]), (*given, int(allowed[start + i]), int(allowed[start + j])))


def _pair_factors(forms: Forms, given: tuple[int, ...], allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return matrices a and b (allowed, K): the coefficient of x_i x_j and the given variables is
    <a_i, b_j> + <b_i, a_j>.
    """
    one, other = [np.zeros((len(allowed), 0))], [np.zeros((len(allowed), 0))]
    sets = np.array([given], dtype=np.intp).reshape(1, len(given))
    for offsets, factors in forms.terms:
        p = offsets.shape[1]
        for a, b in combinations(range(p), 2):
            rest = [j for j in range(p) if j not in (a, b)]
            if len(rest) < len(given):
                continue
            weight = product_coefficients(offsets[:, rest], factors[:, rest], sets, [1] * len(given))[0]
            present = weight != 0
            share = np.sqrt(np.abs(weight[present]))[:, None]
            one.append((np.sign(weight[present])[:, None] * share * factors[present, a][:, allowed]).T)
            other.append((share * factors[present, b][:, allowed]).T)
    return np.hstack(one), np.hstack(other)


# ---- larger sets


def _search_sets(forms: Forms, order: int, best: _Best, max_steps: int) -> float:
    """Search best first over all but two variables of the sets.

    Return an upper bound on the sets that were not visited; 0 if all were visited.
    """
    sizes = _sizes(forms, order)  # (variables, products)
    sequence = np.argsort(-(sizes**order).sum(axis=1), kind="stable")
    sizes = sizes[sequence]
    # The largest size of the variables from here on; 0 after the last.
    largest = np.vstack([np.maximum.accumulate(sizes[::-1])[::-1], np.zeros((1, sizes.shape[1]))])
    constant = factorial(order) / order ** (order / 2) * ROUNDING
    waiting: list[tuple[float, tuple[int, ...]]] = [(-np.inf, ())]
    steps = 0
    while waiting and -waiting[0][0] > best.least and steps < max_steps:
        _, places = heapq.heappop(waiting)
        if len(places) == order - 2:
            _search_pairs(
                forms,
                tuple(sequence[list(places)].tolist()),
                _after(forms, sequence, places),
                best,
            )
            steps += 1
            continue
        first = places[-1] + 1 if places else 0
        product = sizes[list(places)].prod(axis=0)
        bounds = constant * (product * sizes[first:] * largest[first + 1 :] ** (order - len(places) - 1)).sum(
            axis=1
        )
        taken = forms.groups[sequence[list(places)]]
        worth = (bounds > best.least) & ~np.isin(forms.groups[sequence[first:]], taken)
        for place in np.flatnonzero(worth).tolist():
            heapq.heappush(waiting, (-float(bounds[place]), (*places, first + place)))
    return -waiting[0][0] if waiting else 0.0


def _sizes(forms: Forms, order: int) -> np.ndarray:
    """Return (variables, products): norms of the entries of each variable in every choice of ``order``
    factors of a term. The product of the offsets of the other factors is spread over these norms.
    """
    return np.vstack([np.zeros((0, len(forms.names))), *_sizes_of_terms(forms, order)]).T


def _sizes_of_terms(forms: Forms, order: int) -> Iterator[np.ndarray]:
    for offsets, factors in forms.terms:
        p = offsets.shape[1]
        for chosen in combinations(range(p), order):
            weight = np.abs(offsets[:, [j for j in range(p) if j not in chosen]].prod(axis=1))
            yield weight[weight > 0, None] ** (1 / order) * np.linalg.norm(
                factors[weight > 0][:, list(chosen)], axis=1
            )


def _after(forms: Forms, sequence: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    """Return the variables after these places of the sequence that belong to other columns."""
    later = sequence[places[-1] + 1 :]
    return later[~np.isin(forms.groups[later], forms.groups[sequence[list(places)]])]
