"""The slow truth: the formulas of the model written as loops over single numbers."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from tensormachines._model.basis import fit_basis
from tensormachines._model.losses import WIDTH
from tensormachines._model.moments import moments


def output(x, intercept, coef, factors, weights=None):
    """f(x) of one row and one output; factors is {p: (rank, p, features)}, or {p: (rank, features)} for a
    factorization machine; weights of the terms are {p: (rank)}.
    """
    total = float(intercept)
    for j, value in enumerate(x):
        total += coef[j] * value
    for p, terms in factors.items():
        for i, term in enumerate(terms):
            value = product_of_sums(x, term) if term.ndim == 2 else sum_over_sets(x, term, p)
            total += value if weights is None else weights[p][i] * value
    return total


def product_of_sums(x, term):
    product = 1.0
    for factor in term:
        product *= sum(factor[k] * x[k] for k in range(len(x)))
    return product


def sum_over_sets(x, factor, p):
    """The ANOVA kernel by enumeration of all sets of p features."""
    return sum(math.prod(factor[k] * x[k] for k in features) for features in combinations(range(len(x)), p))


def outputs(rows, layout, params):
    """(rows, n_outputs) of one model."""
    coef, factors = layout.linear(params).T, layout.factors_by_degree(params)

    def one_output(x, k):
        if not layout.shared:
            return output(x, params[k], coef[k], {p: f[k] for p, f in factors.items()})
        weights = dict(zip(factors, layout.weights(params)[k], strict=True))
        return output(x, params[k], coef[k], {p: f[0] for p, f in factors.items()}, weights)

    each = [[one_output(x, k) for k in range(layout.n_outputs)] for x in rows]
    return np.array(each).reshape(len(rows), layout.n_outputs)


def lift(X, basis):
    """The rows in their basis, number by number."""
    rows = []
    for x in np.asarray(X, dtype=np.float64):
        row = []
        for j, value in enumerate(x):
            if basis.shift is not None:
                value = (value - float(basis.shift[j])) * float(basis.scale[j])
                value = max(-basis.clip, min(basis.clip, value))
            row.append(value)
        if basis.constant:
            row.append(basis.constant)
        if basis.unit_rows:
            norm = math.sqrt(sum(value * value for value in row))
            row = [value / norm if norm > 0 else value for value in row]
        rows.append(row)
    return np.array(rows).reshape(len(rows), basis.width)


def loss(loss, y, z):
    """Loss of one row with outputs z."""
    name = loss.name
    if name in OF_OUTPUTS:
        return sum(OF_OUTPUTS[name](y[k], z[k], loss.parameter) for k in range(len(z)))
    assert name == "multinomial"
    top = max(z)
    return top + math.log(sum(math.exp(value - top) for value in z)) - z[int(y[0])]


def logistic(y, z, parameter):
    margin = z if y == 1 else -z
    return math.log1p(math.exp(-margin)) if margin > 0 else -margin + math.log1p(math.exp(margin))


def tweedie(y, z, power):
    """Half the deviance of a y with the mean exp(z)."""
    mean = math.exp(z)
    if power == 1:
        return mean - y + (y * math.log(y / mean) if y > 0 else 0.0)
    if power == 2:
        return y / mean - 1 - math.log(y / mean)
    a, b = 1 - power, 2 - power
    return y**b / (a * b) - y * mean**a / a + mean**b / b


def rounded(difference, width):
    """|difference|, with a parabola of the same value and slope at the ends of its width."""
    if abs(difference) >= width:
        return abs(difference)
    return (difference**2 + width**2) / (2 * width)


OF_OUTPUTS = {
    "logistic": logistic,
    "squared_error": lambda y, z, parameter: 0.5 * (z - y) ** 2,
    "poisson": lambda y, z, parameter: tweedie(y, z, 1),
    "gamma": lambda y, z, parameter: tweedie(y, z, 2),
    "tweedie": tweedie,
    "absolute_error": lambda y, z, parameter: rounded(z - y, WIDTH),
    "quantile": lambda y, z, level: level * (y - z) + 0.5 * (z - y + rounded(z - y, WIDTH)),
    "huber": lambda y, z, threshold: (
        0.5 * (z - y) ** 2 if abs(z - y) < threshold else threshold * (abs(z - y) - threshold / 2)
    ),
}


def total_loss(of_row, X, basis, y, weight, layout, params):
    """The weighted sum of losses of one model."""
    f = outputs(lift(X, basis), layout, params)
    return sum(weight[n] * loss(of_row, y[n], f[n]) for n in range(len(f)))


def central_differences(function, params, step=1e-5):
    gradient = np.empty(len(params))
    for i in range(len(params)):
        move = np.zeros(len(params))
        move[i] = step
        gradient[i] = (function(params + move) - function(params - move)) / (2 * step)
    return gradient


def learn_basis(name, X, weight):
    """The basis that a fit on these rows would use."""
    return fit_basis(name, moments(X, weight), X.dtype)
