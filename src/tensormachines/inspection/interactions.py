"""The largest interactions of a Tensor Machine, without looking at all there could be.

Pairs. The coefficient of x_i x_j is the product of row i of a matrix with row j of another, both (variables,
K) with K of the order of the rank: it is at most the product of their norms. With variables in the order of
these norms, blocks of rows are multiplied until no product of norms can reach what has been found: exact, in
O(variables^2 K) at worst and much less where few variables matter.

Beyond. Given all but two variables of a set, its coefficient is again one of pairs: so the search is over the
others, best first. The coefficient of a set S of p variables is a sum of permanents of p x p matrices of
factors, one for each product, and

    |permanent of rows a_i| <= p! / p^(p/2) prod_i |a_i|        (Carlen, Lieb & Loss 2006)

bounds all sets that begin with the same variables. The search ends when nothing left can be larger than what
was found, or after max_steps."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from .forms import Forms, forms
from .monomials import Monomial, coefficients, product_coefficients
from .ranked import Ranked

ENTRIES_AT_ONCE = 1 << 20
ROWS_AT_ONCE = 128
ROUNDING = 1 + 1e-9  # of bounds


class Interactions(Ranked):
    """Coefficients by set of variables, the largest first.

    Attributes
    ----------
    complete : bool
        Whether it is certain that no other set has a larger coefficient.
    bound : float
        No set that is not here has a larger one, in size.
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
    """The k largest coefficients, in size, of products of ``order`` variables of different columns.

    For pairs the answer is exact. For more variables it is, too, if `complete` is True: otherwise the search
    has ended after max_steps, and `bound` tells how large a coefficient may be that it has not seen. Each
    step is a search for pairs, given the other variables.

    Parameters
    ----------
    model : fitted Tensor Machine
    k : int
    order : int
        From 2 to the degree of the model.
    output
        As in `polynomial`.
    units : {"basis", "original"}
        With "basis" and basis="standard" coefficients can be compared: the columns have the same deviation.
        In original units the coefficient of a column in metres is a thousand times that of the same in
        millimetres.
    max_steps : int
        Of the search beyond pairs.

    Returns
    -------
    Interactions
        Fewer than k where fewer are not 0.

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
    of_variables = forms(model, output, units)
    if not 2 <= order <= of_variables.degree:
        raise ValueError(
            f"order must be from 2 to the degree of the model, {of_variables.degree}, got {order!r}."
        )
    if k < 1 or max_steps < 1:
        raise ValueError(f"k and max_steps must be 1 or more, got k={k!r} and max_steps={max_steps!r}.")
    balanced = replace(
        of_variables, terms=tuple(_balanced(offsets, factors) for offsets, factors in of_variables.terms)
    )
    best = _Best(k)
    left = np.inf
    if order == 2:
        _search_pairs(balanced, (), np.arange(len(of_variables.names)), best)
        left = 0.0
    else:
        left = _search_sets(balanced, order, best, max_steps)
    found = coefficients(of_variables, [tuple(sorted(key)) for _, key in sorted(best.heap, reverse=True)])
    ranked = sorted(found.items(), key=lambda entry: -abs(entry[1]))
    named = {tuple(of_variables.names[v] for v in key): value for key, value in ranked}
    return Interactions(named, of_variables.of_what, left <= best.least, max(left, best.least))


@dataclass
class _Best:
    """The k largest sizes so far, with what they belong to; ``least`` is what another has to exceed."""

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
    """The same products with forms of equal norms, which makes bounds tight; terms that are 0 are left out."""
    norms = np.linalg.norm(factors, axis=2)
    alive = (norms > 0).all(axis=1) | ((norms > 0) | (offsets != 0)).all(axis=1)
    offsets, factors, norms = offsets[alive], factors[alive], norms[alive]
    norms = np.where(norms > 0, norms, 1.0)
    scale = np.exp(np.log(norms).mean(axis=1, keepdims=True)) / norms
    return offsets * scale, factors * scale[:, :, None]


# ---- pairs


def _search_pairs(of_variables: Forms, given: tuple[int, ...], allowed: np.ndarray, best: _Best) -> None:
    """Offer all pairs of allowed variables that can be among the best, together with the given ones."""
    one, other = _pair_factors(of_variables, given, allowed)
    rows, columns = np.hstack([one, other]), np.hstack([other, one])
    norms = np.linalg.norm(rows, axis=1)
    order = np.argsort(-norms, kind="stable")
    rows, columns, norms, allowed = rows[order], columns[order], norms[order], allowed[order]
    groups = of_variables.groups[allowed]
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


def _pair_factors(
    of_variables: Forms, given: tuple[int, ...], allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Matrices (allowed, K): with a, b their rows i and j, the coefficient of x_i x_j and the given ones is
    <a_i, b_j> + <b_i, a_j>.
    """
    one, other = [np.zeros((len(allowed), 0))], [np.zeros((len(allowed), 0))]
    sets = np.array([given], dtype=np.intp).reshape(1, len(given))
    for offsets, factors in of_variables.terms:
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


# ---- beyond pairs


def _search_sets(of_variables: Forms, order: int, best: _Best, max_steps: int) -> float:
    """Best first over all but two variables of the sets.

    What no set that was not looked at exceeds; 0 if all were.
    """
    sizes = _sizes(of_variables, order)  # (variables, products)
    sequence = np.argsort(-(sizes**order).sum(axis=1), kind="stable")
    sizes = sizes[sequence]
    # Of the variables from here on, and none after the last.
    largest = np.vstack([np.maximum.accumulate(sizes[::-1])[::-1], np.zeros((1, sizes.shape[1]))])
    constant = factorial(order) / order ** (order / 2) * ROUNDING
    waiting: list[tuple[float, tuple[int, ...]]] = [(-np.inf, ())]
    steps = 0
    while waiting and -waiting[0][0] > best.least and steps < max_steps:
        _, places = heapq.heappop(waiting)
        if len(places) == order - 2:
            _search_pairs(
                of_variables,
                tuple(sequence[list(places)].tolist()),
                _after(of_variables, sequence, places),
                best,
            )
            steps += 1
            continue
        first = places[-1] + 1 if places else 0
        product = sizes[list(places)].prod(axis=0)
        bounds = constant * (product * sizes[first:] * largest[first + 1 :] ** (order - len(places) - 1)).sum(
            axis=1
        )
        taken = of_variables.groups[sequence[list(places)]]
        worth = (bounds > best.least) & ~np.isin(of_variables.groups[sequence[first:]], taken)
        for place in np.flatnonzero(worth).tolist():
            heapq.heappush(waiting, (-float(bounds[place]), (*places, first + place)))
    return -waiting[0][0] if waiting else 0.0


def _sizes(of_variables: Forms, order: int) -> np.ndarray:
    """(variables, products): norms of what a variable has in the factors of each choice of ``order`` factors
    of a term, the others being at their offsets, whose product is shared out."""
    return np.vstack([np.zeros((0, len(of_variables.names))), *_sizes_of_terms(of_variables, order)]).T


def _sizes_of_terms(of_variables: Forms, order: int) -> Iterator[np.ndarray]:
    for offsets, factors in of_variables.terms:
        p = offsets.shape[1]
        for chosen in combinations(range(p), order):
            weight = np.abs(offsets[:, [j for j in range(p) if j not in chosen]].prod(axis=1))
            yield weight[weight > 0, None] ** (1 / order) * np.linalg.norm(
                factors[weight > 0][:, list(chosen)], axis=1
            )


def _after(of_variables: Forms, sequence: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    """The variables after those in the sequence, of other columns."""
    later = sequence[places[-1] + 1 :]
    return later[~np.isin(of_variables.groups[later], of_variables.groups[sequence[list(places)]])]
