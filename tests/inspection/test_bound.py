"""The generalisation bound, against loops over the factors and rows that the model shows."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from tensormachines.blocks import iterable
from tensormachines.inspection import RademacherBound, bound, rademacher_bound
from tensormachines.peers import FactorizationMachineRegressor

BASES = [None, "unit", "standard", "sphere", "spline"]
random = np.random.default_rng(0)
X = random.normal(size=(60, 4)) + np.array([0, 3, 0, -1])
X[7] = 0
X[:, 2] = random.integers(0, 2, 60)
y = X[:, 0] * X[:, 1] + X[:, 3] + 10


def fitted(data=X, target=y, *, cls=TensorMachineRegressor, **settings):
    settings = {
        "degree": 3,
        "rank": 2,
        "solver": "lbfgs",
        "tol": 0.1,
        "max_iter": 1000,
        "random_state": 0,
        **settings,
    }
    return cls(**settings).fit(data, target)


def balanced_norm_by_loops(model):
    """B from linear_ and factors_: no logarithms, one term at a time."""
    norms = [math.sqrt(sum(w * w for w in output)) for output in np.atleast_2d(model.linear_)]
    for p, factors in model.factors_.items():
        for of_output, weights in enumerate(model.term_weights_[p]):
            for term, weight in zip(factors[of_output % len(factors)], weights, strict=True):
                product = abs(weight)
                for factor in term:
                    product *= math.sqrt(sum(float(v) ** 2 for v in factor))
                norms.append(product ** (1 / p))
    return max(norms)


def formula(B, Bx, r, q, d, n):
    return r * (1 + 8 * B * Bx) ** q * q**2 * (math.sqrt(q * d * math.log(d)) + math.sqrt(d)) / math.sqrt(n)


def with_factors(model, change):
    """Another model, whose params ``change`` has changed in place: it is given the factors (n_features,
    n_columns).
    """
    machine = model._machine
    params = machine.params.copy()
    change(machine.layout.factors(params))
    changed = type(model)(**model.get_params())
    vars(changed).update({**vars(model), "_machine": type(machine)(machine.basis, machine.layout, params)})
    return changed


@pytest.mark.parametrize("basis", BASES)
def test_bound_equals_loops(basis):
    model = fitted(basis=basis)
    bound = rademacher_bound(model, X)
    rows = model._machine.basis.lift(model._machine.basis.rows(X)).explicit()
    assert bound.norm == pytest.approx(balanced_norm_by_loops(model), rel=1e-12)
    assert bound.row_norm == pytest.approx(max(math.sqrt(sum(x * x for x in row)) for row in rows), rel=1e-12)
    assert (bound.rank, bound.degree, bound.n_features, bound.n_rows) == (
        2,
        3,
        len(model.basis_features_),
        60,
    )
    assert bound.value == pytest.approx(
        formula(bound.norm, bound.row_norm, 2, 3, bound.n_features, 60), rel=1e-12
    )
    assert bound.log_value == pytest.approx(math.log(bound.value))


def test_row_norms_of_bases_that_are_known():
    largest = max(np.linalg.norm(row) for row in X)
    assert rademacher_bound(fitted(basis=None), X).row_norm == pytest.approx(largest)
    assert rademacher_bound(fitted(basis="unit"), X).row_norm == pytest.approx(1)
    assert rademacher_bound(fitted(basis="unit"), X[7:8]).row_norm == 0  # a row of zeros has no direction
    standard = np.hstack([(X - X.mean(axis=0)) / X.std(axis=0) / 2, np.full((60, 1), 0.5)])
    assert rademacher_bound(fitted(basis="standard"), X).row_norm == pytest.approx(
        max(np.linalg.norm(row) for row in standard)
    )


@pytest.mark.parametrize("basis", BASES[:-1])
def test_sparse_rows_have_the_norms_of_dense_ones(basis, monkeypatch):
    model = fitted(basis=basis)
    expected = rademacher_bound(model, X).row_norm
    monkeypatch.setattr(bound, "ENTRIES_AT_ONCE", 32)  # many pieces
    assert rademacher_bound(model, sparse.csr_array(X)).row_norm == pytest.approx(expected, rel=1e-12)
    assert rademacher_bound(model, X).row_norm == pytest.approx(expected, rel=1e-12)


def test_wide_sparse_rows_are_never_filled():
    wide = sparse.random_array(
        (2000, 200_000), density=1e-5, format="csr", rng=np.random.default_rng(1)
    )  # filled: 3.2 gigabytes
    with pytest.warns(ConvergenceWarning):
        model = fitted(
            wide, np.asarray(wide.sum(axis=1)).ravel(), basis="standard", degree=2, rank=1, max_iter=1
        )
    at_zero = model._machine.basis.lift(np.zeros((1, 200_000))).explicit()[0]
    norms = []
    for row in range(0, 2000, 100):
        columns = wide.indices[wide.indptr[row] : wide.indptr[row + 1]]
        lifted = model._machine.basis.lift(wide[[row]].toarray()).explicit()[0]
        norms.append(math.sqrt(sum(lifted[columns] ** 2) + sum(np.delete(at_zero, columns) ** 2)))
    assert rademacher_bound(model, wide[::100]).row_norm == pytest.approx(max(norms))
    assert rademacher_bound(model, wide).row_norm >= max(norms) * (1 - 1e-12)


def test_categories_and_missing_values():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": np.where(X[:, 2] > 0, "yes", "no")})
    frame.loc[3, "a"] = np.nan
    model = fitted(frame, basis="auto")
    bound = rademacher_bound(model, frame)
    codes = model._check_rows(frame)
    rows = model._machine.basis.lift(model._machine.basis.rows(codes)).explicit()
    assert bound.row_norm == pytest.approx(np.linalg.norm(rows, axis=1).max())


def test_moving_norm_between_the_factors_of_a_term_changes_nothing():
    model = fitted(basis="standard")

    def move(factors):
        terms, of_degree = factors[:, 1:], dict(model._machine.layout.degrees())
        terms[:, of_degree[2].start] *= 1e5  # the first of a pair
        terms[:, of_degree[2].start + 2] /= 1e5  # rank is 2: the second of the same pair
        terms[:, of_degree[3].start + 1] *= -1e-4
        terms[:, of_degree[3].start + 5] /= -1e-4

    moved = with_factors(model, move)
    np.testing.assert_allclose(moved.predict(X), model.predict(X), rtol=1e-10)
    assert max(np.linalg.norm(moved.factors_[2], axis=-1).ravel()) > 1e3
    assert rademacher_bound(moved, X).norm == pytest.approx(rademacher_bound(model, X).norm, rel=1e-12)


def test_a_term_with_a_factor_of_zero_counts_as_zero():
    def only_halves_of_terms(factors):
        factors[:, 0] *= 0.01
        terms = factors[:, 1:]
        for p, columns in model._machine.layout.degrees():
            terms[:, columns.start : columns.start + 2] = 0  # the first factor of both terms of degree p
            terms[:, columns.start + 2 : columns.stop] *= 1e200 if p == 2 else 1

    model = fitted(basis="unit")
    changed = with_factors(model, only_halves_of_terms)
    assert rademacher_bound(changed, X).norm == pytest.approx(np.linalg.norm(changed.linear_))


def test_no_factors_at_all_leave_the_count_of_the_class():
    model = with_factors(fitted(basis="unit"), lambda factors: factors.fill(0))
    bound = rademacher_bound(model, X)
    assert bound.norm == 0
    assert bound.value == pytest.approx(formula(0, 1, 2, 3, 4, 60))


@pytest.mark.parametrize("repeats", [2, 9])
def test_bound_of_repeated_rows_falls_as_the_root_of_their_number(repeats):
    model = fitted(basis="standard")
    once, often = rademacher_bound(model, X), rademacher_bound(model, np.tile(X, (repeats, 1)))
    assert often.n_rows == 60 * repeats
    assert often.value * math.sqrt(repeats) == pytest.approx(once.value, rel=1e-12)


def test_constrained_fit_is_within_its_norm():
    free, tight = fitted(basis="unit"), fitted(basis="unit", max_norm=0.7)
    bound = rademacher_bound(tight, X)
    assert bound.norm <= 0.7 * (1 + 1e-12) < rademacher_bound(free, X).norm
    assert bound.value <= formula(0.7, 1, 2, 3, 4, 60) * (1 + 1e-12)


def test_norms_are_in_the_units_of_y():
    """A target 8 times as large has a linear part 8 times as long; the factors of a pair share the 8, those
    of a triple, too.
    """
    model, larger = fitted(basis="unit"), fitted(target=8 * y, basis="unit")
    np.testing.assert_allclose(larger.predict(X), 8 * model.predict(X), rtol=1e-6)
    assert np.linalg.norm(larger.linear_) == pytest.approx(8 * np.linalg.norm(model.linear_), rel=1e-6)
    assert rademacher_bound(larger, X).norm == pytest.approx(balanced_norm_by_loops(larger), rel=1e-12)
    assert rademacher_bound(fitted(target=y + 1000, basis="unit"), X).norm == pytest.approx(
        rademacher_bound(model, X).norm, rel=1e-4
    )


def test_of_several_outputs_the_largest_counts():
    both = fitted(target=np.column_stack([y, 1000 * y]), basis="unit")
    bound = rademacher_bound(both, X)
    assert bound.norm == pytest.approx(balanced_norm_by_loops(both), rel=1e-12)
    assert bound.norm * (1 + 1e-12) >= np.linalg.norm(both.linear_[1]) > np.linalg.norm(both.linear_[0])


@pytest.mark.parametrize("cls", [TensorMachineClassifier, TensorMachineFeatures])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_other_machines(cls, n_classes):
    model = fitted(target=random.integers(0, n_classes, 60), cls=cls, basis="unit")
    bound = rademacher_bound(model, X)
    assert bound.norm == pytest.approx(balanced_norm_by_loops(model), rel=1e-12)
    assert bound.degree == 3


def test_linear_model_has_rank_one():
    """A class of degree 1 is the same whatever the rank: no term has it."""
    model = fitted(degree=1, rank=7, basis="unit")
    bound = rademacher_bound(model, X)
    assert (bound.rank, bound.degree) == (1, 1)
    assert bound.value == pytest.approx(formula(np.linalg.norm(model.linear_), 1, 1, 1, 4, 60))


def test_members_add_to_the_rank():
    assert rademacher_bound(fitted(n_members=3, basis="unit"), X).rank == 6


def test_one_column_and_one_row():
    model = fitted(X[:, :1], basis=None)
    bound = rademacher_bound(model, X[:1, :1])
    assert (bound.n_features, bound.n_rows) == (1, 1)
    assert bound.row_norm == pytest.approx(abs(X[0, 0]))
    assert bound.value == pytest.approx(2 * (1 + 8 * bound.norm * bound.row_norm) ** 3 * 9)  # ln 1 = 0


def test_float32_and_blocks_agree():
    model = fitted(X.astype(np.float32), basis="standard")
    bound = rademacher_bound(model, X.astype(np.float32))
    assert bound.row_norm == pytest.approx(rademacher_bound(model, X).row_norm, rel=1e-6)
    in_blocks = rademacher_bound(
        model, iterable(lambda: ((X[start : start + 7], y[start : start + 7]) for start in range(0, 60, 7)))
    )
    assert (in_blocks.row_norm, in_blocks.n_rows) == (
        pytest.approx(rademacher_bound(model, X).row_norm, rel=1e-12),
        60,
    )


def test_large_values_end_in_infinity_only_where_float64_does():
    fits = RademacherBound(norm=1e100, row_norm=1e200, rank=1, degree=1, n_features=1, n_rows=1)
    assert fits.value == pytest.approx(8e300)
    beyond = RademacherBound(norm=1e200, row_norm=1e200, rank=1, degree=3, n_features=1, n_rows=1)
    assert beyond.value == math.inf
    assert beyond.log_value == pytest.approx(3 * (math.log(8) + 400 * math.log(10)) + math.log(9))
    assert "= exp(2772) c" in str(beyond)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_rows_whose_squares_are_no_numbers(make, size):
    model = fitted(basis=None)
    assert rademacher_bound(model, make(size * X)).row_norm == pytest.approx(
        size * rademacher_bound(model, X).row_norm
    )


def test_text_states_the_formula_and_its_parts():
    text = str(RademacherBound(norm=0.5, row_norm=1.0, rank=2, degree=3, n_features=4, n_rows=100))
    assert text == repr(RademacherBound(norm=0.5, row_norm=1.0, rank=2, degree=3, n_features=4, n_rows=100))
    assert "c r (1 + 8 B Bx)^q q^2 (sqrt(q d ln d) + sqrt(d)) / sqrt(n)" in text
    assert text.endswith(
        f"= {formula(0.5, 1, 2, 3, 4, 100):.4g} c, with B = 0.5, Bx = 1, r = 2, q = 3, d = 4, n = 100"
    )


def test_refuses_what_is_no_fitted_tensor_machine():
    with pytest.raises(NotFittedError):
        rademacher_bound(TensorMachineRegressor(), X)
    machines = (
        LinearRegression().fit(X, y),
        make_pipeline(StandardScaler(), fitted()),
        FactorizationMachineRegressor(),
    )
    for other in machines:
        with pytest.raises(TypeError, match=f"model must be a Tensor Machine.*got {type(other).__name__}"):
            rademacher_bound(other, X)


def test_refuses_other_columns():
    with pytest.raises(ValueError, match="X has 3 features, but TensorMachineRegressor is expecting 4"):
        rademacher_bound(fitted(basis="unit"), X[:, :3])


def test_rows_on_dask_have_the_bound_of_the_same_rows():
    array = pytest.importorskip("dask.array")
    found, expected = (rademacher_bound(fitted(), rows) for rows in (array.from_array(X, chunks=(30, -1)), X))
    assert (found.n_rows, found.row_norm, found.value) == (len(X), expected.row_norm, expected.value)


def test_examples_run():
    assert doctest.testmod(bound).failed == 0
