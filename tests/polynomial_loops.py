"""The polynomial of a Tensor Machine by loops over all tuples of variables."""

import math
from itertools import product

import numpy as np


def forms_by_loops(model, units):
    """Return {p: (terms, p, variables + 1)} with the constant last, from factors_ and linear_, with the basis
    written out.
    """
    basis = model._machine.basis
    width = len(model.basis_features_)
    if basis.unit_rows or model.basis is None:
        kept, origin, scale = range(width), [0.0] * width, [1.0] * width
    else:
        # The constant is 1 / sqrt(4 columns), too.
        kept, origin, scale = range(width - 1), [0.0] * (width - 1) + [0.5], [1.0] * width
        if model.basis == "standard" and units == "original":
            origin = [-shift * unit for shift, unit in zip(basis.shift, basis.scale, strict=True)] + [0.5]
            scale = [*basis.scale, 1.0]
    forms = {}
    for p, factors in {1: model.linear_[None, None, None], **model.factors_}.items():
        terms = [[[v[j] * scale[j] for j in kept] + [sum(v * origin)] for v in term] for term in factors[0]]
        forms[p] = np.array(terms)
    return forms


def polynomial_by_loops(model, units="original"):
    """Return {sorted numbers of variables: coefficient}."""
    found = {(): float(model.intercept_)}
    for p, terms in forms_by_loops(model, units).items():
        last = terms.shape[2] - 1
        for term in terms:
            for places in product(range(last + 1), repeat=p):
                key = tuple(sorted(place for place in places if place != last))
                found[key] = found.get(key, 0.0) + math.prod(term[j][place] for j, place in enumerate(places))
    return found
