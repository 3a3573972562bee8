"""The polynomial of a fitted Tensor Machine, monomial by monomial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, combinations_with_replacement, permutations
from math import comb, factorial
from typing import Any

import numpy as np

from .forms import SPLINES, Forms, forms_of
from .ranked import Ranked, in_words, powers

MOST_TERMS = 10_000
MOST_ENTRIES = 10_000_000
ENTRIES_AT_ONCE = 1 << 20

Monomial = tuple[str, ...]


class Polynomial(Ranked):
    """Coefficients by monomial: ("a", "a", "b") is a^2 b, and () is the constant. The names in a key may come
    in any order, and a single name need not be a tuple.

    Attributes
    ----------
    names : tuple of str
        All variables, including those in no monomial here.
    of_what : str
        The kind of variables: columns of X in their own units, or columns of the basis of the model.
    """

    def __init__(self, entries: dict[Monomial, float], names: tuple[str, ...], of_what: str):
        super().__init__(entries, f"polynomial of {of_what}")
        self.names = names
        self.of_what = of_what
        self._places = {name: place for place, name in enumerate(names)}

    def __getitem__(self, key: str | Monomial) -> float:
        names = (key,) if isinstance(key, str) else key
        return self.entries[tuple(sorted(names, key=lambda name: self._places.get(name, -1)))]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of the monomials for values (rows, len(names)) of the variables; see `variables`."""
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise ValueError(
                f"values must be of shape (rows, {len(self.names)}), one column a name, got {values.shape}."
            )
        total = np.zeros(len(values))
        for monomial, coefficient in self.entries.items():
            total += coefficient * values[:, [self._places[name] for name in monomial]].prod(axis=1)
        return total

    def label(self, key: Monomial) -> str:
        factors = ((name if name.isidentifier() else f"[{name}]", power) for name, power in powers(key))
        return " ".join(name if power == 1 else f"{name}^{power}" for name, power in factors) or in_words(key)

    def formula(self, k: int | None = None, digits: int = 4) -> str:
        """Return the k largest monomials (by default all) as a line of text."""
        text = ""
        for monomial, coefficient in self.largest(k).items():
            sign = " - " if coefficient < 0 else " + "
            text += sign + " ".join(
                [f"{abs(coefficient):.{digits}g}", *([self.label(monomial)] if monomial else [])]
            )
        shown = text.removeprefix(" + ") if not text.startswith(" - ") else "-" + text.removeprefix(" - ")
        return (shown or "0") + (" + ..." if k is not None and k < len(self) else "")


def polynomial(
    model: Any,
    monomials: Iterable[Any] | None = None,
    *,
    degree: int | None = None,
    output: Any = None,
    units: str = "original",
    max_terms: int = MOST_TERMS,
) -> Polynomial:
    """Return the coefficients of given monomials, or of all up to a degree, exact up to float64 rounding.

    With basis=None or "standard" the variables are the columns of X in their own units. ("standard" shifts
    the columns, which adds to the lower degrees. If the mean of a column is many times its standard
    deviation, large monomials of opposite sign cancel and lose digits; units="basis" avoids this.) With
    "unit" and "sphere", the variables are the columns of the normalised rows. With "spline", they are the
    functions in basis_features_; `formula` and `distil` are then easier to read. `variables` returns the
    values of the variables.

    Parameters
    ----------
    model : fitted TensorMachineRegressor, TensorMachineClassifier or one of their searches
        For a classifier, the polynomial of decision_function.
    monomials : iterable of tuples, optional
        Tuples of names or numbers of variables: ("a", "a", "b") is a^2 b, () is the constant, and "a" is
        short for ("a",). The default is all monomials.
    degree : int, optional
        Maximum degree of all monomials; by default the degree of the model.
    output : optional
        Output to explain, if there are several: its number, the label of a class, or the level of a quantile.
    units : {"original", "basis"}
    max_terms : int
        Raise an error if there are more monomials.

    Returns
    -------
    Polynomial
        The given monomials, or by default all monomials with a non-zero coefficient.

    Notes
    -----
    A monomial costs O(rank * degree * 2^degree), regardless of the number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import polynomial
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = 1 + 2 * X[:, 0] - 3 * X[:, 1] * X[:, 2]
    >>> model = TensorMachineRegressor(
    ...     degree=2, rank=1, alpha=1e-9, basis=None, solver="lbfgs", random_state=0
    ... ).fit(X, y)
    >>> found = polynomial(model, [("x1", "x2"), "x0", ()])
    >>> round(found["x2", "x1"], 2), round(found["x0"], 2), round(found[()], 2)
    (-3.0, 2.0, 1.0)
    """
    forms = forms_of(model, output, units)
    if monomials is not None:
        asked = [monomial_numbers(forms, monomial) for monomial in monomials]
        _refuse_too_many(len(asked), max_terms, "Ask for fewer, or raise max_terms.")
        found = coefficients(forms, asked)
    else:
        found = {
            key: value for key, value in coefficients(forms, _all(forms, degree, max_terms)).items() if value
        }
    names = forms.names
    return Polynomial(
        {tuple(names[v] for v in key): value for key, value in found.items()}, names, forms.of_what
    )


def coefficient_tensor(
    model: Any, order: int, *, output: Any = None, units: str = "original", max_entries: int = MOST_ENTRIES
) -> np.ndarray:
    """Return the symmetric tensor T of the monomials of one degree p: their sum is the sum over all i1 .. ip
    of T[i1, ..., ip] x_i1 ... x_ip.

    So T[i, j] is half of the coefficient of x_i x_j, and T[i, i] the coefficient of x_i^2.

    Parameters
    ----------
    model : fitted Tensor Machine
    order : int
        p, from 1 to the degree of the model.
    output, units
        As in `polynomial`.
    max_entries : int
        Raise an error if the tensor has more entries.

    Returns
    -------
    ndarray of shape (variables,) * order
    """
    forms = forms_of(model, output, units)
    if not 1 <= order <= forms.degree:
        raise ValueError(f"order must be from 1 to the degree of the model, {forms.degree}, got {order!r}.")
    size = len(forms.names)
    if size**order > max_entries:
        raise ValueError(
            f"A tensor of order {order} of {size} variables has {size**order:,} entries, max_entries is "
            f"{max_entries:,}: use polynomial(model, monomials) for some, top_interactions for the largest."
        )
    total = np.zeros((size,) * order)
    if order == 1:
        total += forms.linear
    for offsets, factors in forms.terms:
        rank, p = offsets.shape
        for chosen in combinations(range(p), order):
            product = offsets[:, [j for j in range(p) if j not in chosen]].prod(axis=1)[:, None]
            for j in chosen[:-1]:
                product = (product[:, :, None] * factors[:, j, None, :]).reshape(rank, -1)
            total += (product.T @ factors[:, chosen[-1]]).reshape(total.shape)
    return sum(
        (total.transpose(axes) for axes in permutations(range(order))), np.zeros_like(total)
    ) / factorial(order)


def to_sympy(
    model: Any,
    *,
    expanded: bool = True,
    output: Any = None,
    units: str = "original",
    max_terms: int = 1000,
    degree: int | None = None,
) -> Any:
    """Return the model as a SymPy expression, with one symbol per variable, of the same name.

    Parameters
    ----------
    model : fitted Tensor Machine
    expanded : bool
        Whether to expand the few products of linear forms into a sum of monomials.
    output, units, max_terms, degree
        As in `polynomial`; max_terms and degree apply to expanded expressions.
    """
    try:
        import sympy
    except ImportError:
        raise ImportError('to_sympy needs SymPy: pip install "tensormachines[explain]".') from None
    if expanded:
        found = polynomial(model, degree=degree, output=output, units=units, max_terms=max_terms)
        of_name = {name: sympy.Symbol(name) for name in found.names}
        return sympy.Add(
            *(value * sympy.Mul(*(of_name[name] for name in monomial)) for monomial, value in found.items())
        )
    forms = forms_of(model, output, units)
    symbols = [sympy.Symbol(name) for name in forms.names]

    def form(offset: float, factor: np.ndarray) -> Any:
        return sympy.Add(
            float(offset), *(float(v) * symbol for v, symbol in zip(factor, symbols, strict=True) if v)
        )

    products = [
        sympy.Mul(*map(form, offset, factor))
        for offsets, factors in forms.terms
        for offset, factor in zip(offsets, factors, strict=True)
    ]
    return sympy.Add(form(forms.constant, forms.linear), *products)


# ---- coefficients


def coefficients(forms: Forms, monomials: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    """Return the coefficients of monomials, each given by the sorted indices of its variables.

    Monomials with the same exponents are computed together.
    """
    found = dict.fromkeys(monomials, 0.0)
    alike: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for monomial in found:
        alike.setdefault(_exponents(monomial), []).append(monomial)
    for exponents, keys in alike.items():
        sets = np.array([sorted(set(key)) for key in keys], dtype=np.intp).reshape(len(keys), len(exponents))
        values = np.zeros(len(keys))
        if not exponents:
            values += forms.constant
        if exponents == (1,):
            values += forms.linear[sets[:, 0]]
        for offsets, factors in forms.terms:
            if sum(exponents) <= offsets.shape[1]:
                values += product_coefficients(offsets, factors, sets, exponents).sum(axis=1)
        found.update(zip(keys, values.tolist(), strict=True))
    return found


def product_coefficients(
    offsets: np.ndarray, factors: np.ndarray, sets: np.ndarray, exponents: Sequence[int]
) -> np.ndarray:
    """Return (monomials, rank): the coefficient of prod_a x_{sets[., a]}^exponents[a] in each product of the
    forms offset_j + <factor_j, x>.

    One form after another is multiplied into a polynomial of these variables, truncated at the exponents.
    """
    rank, p = offsets.shape
    shape = tuple(exponent + 1 for exponent in exponents)
    at_once = max(1, ENTRIES_AT_ONCE // max(1, rank * int(np.prod(shape))))
    pieces = []
    for start in range(0, max(len(sets), 1), at_once):
        chosen = sets[start : start + at_once]
        product = np.zeros((*shape, len(chosen), rank))
        product[(0,) * len(shape)] = 1.0
        for j in range(p):
            longer = product * offsets[:, j]
            for axis in range(len(shape)):
                up, down = [slice(None)] * len(shape), [slice(None)] * len(shape)
                up[axis], down[axis] = slice(1, None), slice(None, -1)
                longer[tuple(up)] += product[tuple(down)] * factors[:, j, chosen[:, axis]].T
            product = longer
        pieces.append(product[tuple(exponents)])
    return np.concatenate(pieces)


def _exponents(monomial: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(monomial.count(variable) for variable in sorted(set(monomial)))


def monomial_numbers(forms: Forms, monomial: Any) -> tuple[int, ...]:
    """Return a monomial as the sorted indices of its variables."""
    names = (monomial,) if isinstance(monomial, str | int | np.integer) else tuple(monomial)
    return tuple(sorted(forms.number(name) for name in names))


def _all(forms: Forms, degree: int | None, max_terms: int) -> Iterator[tuple[int, ...]]:
    if degree is None:
        degree = forms.degree
    if degree < 0:
        raise ValueError(f"degree must be 0 or more, got {degree!r}.")
    degree, size = min(degree, forms.degree), len(forms.names)
    fits = max(p for p in range(degree + 1) if p == 0 or comb(size + p, p) <= max_terms)
    hint = (
        f"Set degree={fits}, name the monomials that you want, use top_interactions for the largest, "
        "or raise max_terms."
    )
    if forms.of_what == SPLINES:
        hint = (
            f"They are products of {SPLINES}. To read the model, use formula(model, X), its functions of one "
            "and two columns, or distil(model, X), a small polynomial of the columns themselves that is "
            f"nearly the same. {hint}"
        )
    _refuse_too_many(comb(size + degree, degree), max_terms, hint)
    return chain.from_iterable(combinations_with_replacement(range(size), p) for p in range(degree + 1))


def _refuse_too_many(count: int, max_terms: int, hint: str) -> None:
    if count > max_terms:
        raise ValueError(f"The polynomial would have {count:,} monomials, max_terms is {max_terms:,}. {hint}")
