"""Small fits of any settings to any data: a finite model, or one clear error; nothing else.

2,000 of them take about 20 seconds. `HYPOTHESIS_PROFILE=nightly` draws 100,000, in about 20 minutes.
"""

import os
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import tensormachines
from tensormachines import TensorMachineClassifier, TensorMachineRegressor

hypothesis = pytest.importorskip("hypothesis")
given, settings, st = hypothesis.given, hypothesis.settings, hypothesis.strategies

settings.register_profile("quick", derandomize=True, max_examples=220, deadline=None, database=None)
settings.register_profile("nightly", max_examples=11_000, deadline=None)
PROFILE = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

try:
    import pyarrow
except ImportError:
    pyarrow = None

# Where rows are checked: what is raised elsewhere, such as in NumPy, was not meant for users.
CHECKED = tuple(str(Path(package.__file__).parent) for package in (tensormachines, sklearn))
OVERFLOW = "TensorMachine.*: some outputs overflow"
SOLVERS = ["adam", "kfac", "lbfgs", "sfo"]
MODELS = st.fixed_dictionaries(
    {
        "degree": st.sampled_from([1, 2, 3, 5, 12]),
        "rank": st.sampled_from([1, 2, 10]),
        "alpha": st.sampled_from(["auto", "rows", 0, 1e-5, 1.0, 1e10, 1e300]),
        "basis": st.sampled_from(["auto", "standard", "sphere", "unit", None]),
        "early_stopping": st.booleans(),
        "relevance": st.sampled_from(["auto", 0, 1]),
        "max_iter": st.sampled_from([1, 5, 20]),
        "random_state": st.integers(0, 3),
    }
)


@st.composite
def matrices(draw):
    """Draw few rows: constant, equal and empty columns, numbers from denormal to huge, and -0.0."""
    n, d = draw(st.sampled_from([0, 1, 2, 3, 8, 30])), draw(st.sampled_from([0, 1, 2, 5, 12]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    X = rng.standard_normal((n, d)) * draw(st.sampled_from([1.0, 1e-310, 1e-30, 1e30, 1e300]))
    if n and d:
        kind = draw(st.sampled_from(["plain", "constant", "equal columns", "equal rows", "whole", "spike"]))
        if kind == "constant":
            X[:, 0] = draw(st.sampled_from([0.0, -0.0, 3.0, 1e300]))
        elif kind == "equal columns":
            X[:, -1] = X[:, 0]
        elif kind == "equal rows":
            X[:] = X[rng.integers(0, max(1, n // 3), n)]
        elif kind == "whole":
            X = rng.integers(-2, 3, (n, d)).astype(np.float64)
        elif kind == "spike":
            X[0, 0] = 1e300
    return X


FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "Fortran": np.asfortranarray,
    "misaligned": lambda X: _misaligned(X),
    "objects": lambda X: X.astype(object),
    "CSR": sparse.csr_array,
    "CSR of 64 bits": lambda X: _with_long_indices(sparse.csr_array(X)),
    "unsorted COO": lambda X: _unsorted(X),
    "CSC": sparse.csc_array,
}


def _misaligned(X):
    """Return X with its numbers at odd addresses."""
    copy = np.empty(X.nbytes + 1, dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    copy[...] = X
    return copy


def _with_long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _unsorted(X):
    """Return X with its entries backwards, each of them in two halves."""
    row, column = np.nonzero(X)
    both = np.concatenate([row, row])[::-1], np.concatenate([column, column])[::-1]
    halves = X[row, column] / 2
    return sparse.coo_array((np.concatenate([halves, halves])[::-1], both), shape=X.shape)


@st.composite
def targets(draw, n):
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    kind = draw(st.sampled_from(["noise", "constant", "spike", "two"]))
    y = {"noise": rng.standard_normal(n), "constant": np.ones(n), "spike": np.arange(n) == 0}.get(kind)
    y = rng.standard_normal((n, 2)) if y is None else y
    return y * draw(st.sampled_from([1.0, 1.0, 1e-300, 1e-160, 1e30, 1e150, 1e160]))


@st.composite
def labels(draw, n):
    names = draw(
        st.sampled_from(
            [
                *([0, 1], [False, True], ["a", "b", "c"], [-1.5, 2.0], [b"x", b"y"], ["one"], [7, 7, 8]),
                [np.datetime64("2024-05-31"), np.datetime64("2024-06-01")],
            ]
        )
    )
    return np.array([names[i % len(names)] for i in range(n)])


@st.composite
def weights(draw, n):
    kind = draw(st.sampled_from([None, None, "some zeros", "zeros", "tiny", "uneven"]))
    uneven = np.logspace(-300, 0, n) if n else np.empty(0)
    zeros = np.zeros(n)
    some = {"some zeros": (np.arange(n) % 3 > 0) * 1.0, "zeros": zeros, "tiny": zeros + 1e-300}
    return None if kind is None else some.get(kind, uneven)


def is_ordinary(X, form, weight, model):
    """Tell whether a fit may not refuse the rows."""
    if len(X) < 8 or not X.size or weight is not None or model["alpha"] == 1e300:  # more than float32 holds
        return False
    size = np.abs(X).max()
    if model["basis"] is not None:
        return size < 1e100
    return size < 1e3 and (form != "float32" or size > 1e-12)  # whose coefficients would overflow


def are_seen(n_rows, weight, model):
    """Tell which rows a fit surely learns from: others may lie far outside of these, and overflow."""
    if model["early_stopping"]:
        return np.zeros(n_rows, dtype=bool)
    return np.ones(n_rows, dtype=bool) if weight is None else weight > 2.0**-120 * weight.max(initial=0)


def fitted(estimator, X, y, weight):
    """Return the fitted estimator, or None if it refuses the data with one clear error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(X, y, sample_weight=weight)
        except (ValueError, TypeError) as error:  # scikit-learn's for labels of bytes
            estimator, refusal = None, error
    if estimator is None:
        place = traceback.extract_tb(refusal.__traceback__)[-1].filename
        assert place.startswith(CHECKED), f"not a refusal, but an error of {place}"
        assert len(str(refusal)) > 20
        return None
    others = [w for w in caught if not issubclass(w.category, UserWarning | FutureWarning)]
    assert not [str(w.message) for w in others], "a warning that is not for users"
    of_convergence = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(of_convergence) <= 1
    estimator.is_said_to_be_worse = any("worse than a constant would" in each for each in of_convergence)
    return estimator


@pytest.mark.parametrize("solver", SOLVERS)
@settings(PROFILE)
@given(data=st.data(), model=MODELS, X=matrices(), form=st.sampled_from(sorted(FORMS)))
def test_regressors(solver, data, model, X, form):
    y, weight = data.draw(targets(len(X))), data.draw(weights(len(X)))
    with np.errstate(over="ignore"):
        rows = FORMS[form](X)
    estimator = fitted(TensorMachineRegressor(solver=solver, **model), rows, y, weight)
    if estimator is None:
        assert not (is_ordinary(X, form, weight, model) and 1e-100 < np.abs(y).max() < 1e100)
        return
    seen = are_seen(len(X), weight, model)
    with warnings.catch_warnings():
        if not seen.all():
            warnings.filterwarnings("ignore", OVERFLOW, RuntimeWarning)
        predicted = estimator.predict(rows)
    assert np.isfinite(predicted[seen]).all()
    if weight is None and not model["early_stopping"]:  # which holds out rows
        # Never worse than the mean without saying so, and never far worse.
        worst = 2.001 if estimator.is_said_to_be_worse else 1.001
        size = np.abs(y).max() or 1.0
        if form == "float32" and size < 1e-30:
            return  # the targets have the type of X, which does not hold them
        errors, spread = ((predicted - y) / size) ** 2, ((y - y.mean(axis=0)) / size) ** 2
        of_target = np.maximum(spread.mean(axis=0), 1e-30)  # each counts alike
        assert (errors.mean(axis=0) / of_target).mean() <= worst + 1e-6 / of_target.min()


@pytest.mark.parametrize("solver", SOLVERS)
@settings(PROFILE)
@given(data=st.data(), model=MODELS, X=matrices(), form=st.sampled_from(sorted(FORMS)))
def test_classifiers(solver, data, model, X, form):
    y, weight = data.draw(labels(len(X))), data.draw(weights(len(X)))
    with np.errstate(over="ignore"):
        rows = FORMS[form](X)
    estimator = fitted(TensorMachineClassifier(solver=solver, **model), rows, y, weight)
    if estimator is None:
        not_labels = y.dtype.kind in "SfM"  # bytes, fractions and dates, which scikit-learn may refuse
        assert (
            not_labels
            or model["early_stopping"]
            or len(set(y)) < 2
            or not is_ordinary(X, form, weight, model)
        )
        return
    seen = are_seen(len(X), weight, model)
    unscaled = model["basis"] is None and np.abs(X).max() > 1e100  # log-odds may overflow on the right side
    with warnings.catch_warnings():
        if unscaled or not seen.all():
            warnings.filterwarnings("ignore", OVERFLOW, RuntimeWarning)
        shares, predicted = estimator.predict_proba(rows)[seen], estimator.predict(rows)[seen]
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    assert set(predicted) <= set(y)
    if weight is None and not model["early_stopping"]:
        classes = list(estimator.classes_)
        of_rows = [classes.index(label) for label in y]
        losses = -np.log(np.maximum(shares[np.arange(len(y)), of_rows], 1e-30))
        counts = np.bincount(of_rows) / len(y)
        worst = 2.001 if estimator.is_said_to_be_worse else 1.001
        assert losses.mean() <= worst * -(counts * np.log(counts)).sum() + 1e-4


@settings(PROFILE, max_examples=PROFILE.max_examples * 12 // 11)
@given(
    data=st.data(),
    solver=st.sampled_from(SOLVERS),
    model=MODELS,
    dtype=st.sampled_from(["Float64", "Int64", "boolean", "string", *(["arrow"] if pyarrow else [])]),
)
def test_frames_of_nullable_and_arrow_columns(data, solver, model, dtype):
    pandas = pytest.importorskip("pandas")
    n = data.draw(st.sampled_from([1, 2, 12]))
    missing = data.draw(st.booleans())
    cells = [None if missing and i % 3 == 0 else i % 2 for i in range(n)]
    if dtype == "arrow":
        column = pandas.Series(cells, dtype=pandas.ArrowDtype(pyarrow.float64()))
    elif dtype == "string":
        column = pandas.Series([None if cell is None else str(cell) for cell in cells], dtype="string")
    else:
        column = pandas.Series(cells, dtype=dtype)
    frame = pandas.DataFrame({"a": column, "b": np.arange(float(n))})
    estimator = fitted(TensorMachineRegressor(solver=solver, **model), frame, np.arange(float(n)), None)
    if estimator is not None:
        assert np.isfinite(estimator.predict(frame)).all()
