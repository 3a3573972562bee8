"""Rows of the user's own to validate on: the loss on them, early stopping by it, and what is refused."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_squared_error, mean_tweedie_deviance
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from targets import teacher
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor, blocks
from tensormachines.peers import FactorizationMachineRegressor, GreedyTensorMachineRegressor

# Numbers in float64, and a model that is exactly that of the last iteration.
PLAIN = {"degree": 2, "rank": 2, "alpha": 1e-3, "basis": "standard", "max_iter": 8, "random_state": 0}
OWN, NEW = slice(0, 200), slice(200, 300)


@pytest.fixture
def rows(rng):
    X, y = teacher(rng, 300)
    return X, y + rng.standard_normal(300)


def given(X, y, **others):
    """The arguments of a fit: the first rows to train on, the others to validate on."""
    return {"X": X[OWN], "y": y[OWN], "X_val": X[NEW], "y_val": y[NEW], **others}


# ---- the loss


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_of_classes_is_the_log_loss(rows, rng, n_classes, weighted):
    X, y = rows
    labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]
    weight = rng.uniform(0, 2, 100) if weighted else None
    model = TensorMachineClassifier(**PLAIN).fit(**given(X, labels, sample_weight_val=weight))
    truth = log_loss(labels[NEW], model.predict_proba(X[NEW]), sample_weight=weight)
    assert model.validation_loss_curve_[-1] == pytest.approx(truth, rel=1e-9)
    assert len(model.validation_loss_curve_) == len(model.loss_curve_) == model.n_iter_ == 8


def test_the_loss_of_numbers_is_half_their_mean_squared_error_in_units_of_the_variance(rows):
    X, y = rows
    Y = np.column_stack([y, 10 * X[:, 0] + 3])
    for targets in (y, Y):
        model = TensorMachineRegressor(**PLAIN).fit(**given(X, targets))
        errors = mean_squared_error(targets[NEW], model.predict(X[NEW]), multioutput="raw_values")
        truth = np.sum(errors / targets[OWN].var(axis=0)) / 2
        assert model.validation_loss_curve_[-1] == pytest.approx(truth, rel=1e-9)


def test_the_loss_of_counts_is_half_the_deviance_in_units_of_their_mean(rng):
    X, exposure = rng.standard_normal((300, 3)), rng.uniform(0.5, 2, 300)
    y = rng.poisson(np.exp(X[:, 0]) * exposure).astype(float)
    model = TensorMachineRegressor(**PLAIN, loss="poisson")
    model.fit(**given(X, y, exposure=exposure[OWN], exposure_val=exposure[NEW]))
    rate, mean = y / exposure, np.average((y / exposure)[OWN], weights=exposure[OWN])
    deviance = mean_poisson_deviance(rate[NEW], model.predict(X[NEW]), sample_weight=exposure[NEW])
    assert model.validation_loss_curve_[-1] == pytest.approx(deviance / mean / 2, rel=1e-9)
    with pytest.raises(ValueError, match="exposure belongs to X and exposure_val to X_val: give both"):
        model.fit(**given(X, y, exposure=exposure[OWN]))


@pytest.mark.parametrize(("loss", "power"), [("poisson", 1), ("tweedie", 1.5), ("gamma", 2)])
def test_offsets_of_logarithms(rng, loss, power):
    """The rest after an offset is y / exp(offset), with weights so that deviances stay as they were."""
    X, offset = rng.standard_normal((300, 3)), rng.normal(size=300)
    y = rng.gamma(2.0, np.exp(X[:, 0] + offset))
    model = TensorMachineRegressor(**PLAIN, loss=loss)
    model.fit(**given(X, y, offset=offset[OWN], offset_val=offset[NEW]))
    left, weight = y / np.exp(offset), np.exp((2 - power) * offset)
    mean = np.average(left[OWN], weights=weight[OWN])
    deviance = mean_tweedie_deviance(left[NEW], model.predict(X[NEW]), sample_weight=weight[NEW], power=power)
    truth = deviance / mean ** (2 - power) / 2
    assert model.validation_loss_curve_[-1] == pytest.approx(truth, rel=1e-9)


def test_offsets_of_numbers(rows, rng):
    X, y = rows
    offset = rng.normal(size=len(y))
    model = TensorMachineRegressor(**PLAIN).fit(**given(X, y, offset=offset[OWN], offset_val=offset[NEW]))
    error = mean_squared_error(y[NEW], model.predict(X[NEW], offset=offset[NEW]))
    assert model.validation_loss_curve_[-1] == pytest.approx(error / (y - offset)[OWN].var() / 2, rel=1e-9)
    with pytest.raises(ValueError, match="offset belongs to X and offset_val to X_val: give both"):
        model.fit(**given(X, y, offset=offset[OWN]))
    with pytest.raises(ValueError, match="offset must have one number for each row, got 3 for"):
        model.fit(**given(X, y, offset=offset[OWN], offset_val=offset[:3]))


def test_classes_weigh_as_in_the_training_rows(rows):
    X, y = rows
    labels = y > np.quantile(y, 0.8)
    model = TensorMachineClassifier(**PLAIN, class_weight="balanced").fit(**given(X, labels))
    share = labels[OWN].mean()
    weight = np.where(labels[NEW], 1 / share, 1 / (1 - share))
    truth = log_loss(labels[NEW], model.predict_proba(X[NEW]), sample_weight=weight)
    assert model.validation_loss_curve_[-1] == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("solver", ["adam", "kfac", "lbfgs", "sfo"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_to_validate_on_change_nothing_else(rows, solver):
    X, y = rows
    settings = {**PLAIN, "alpha": "auto", "basis": "auto", "solver": solver}
    plain = TensorMachineRegressor(**settings).fit(X[OWN], y[OWN])
    watched = TensorMachineRegressor(**settings).fit(**given(X, y))
    np.testing.assert_array_equal(watched.predict(X), plain.predict(X))
    np.testing.assert_array_equal(watched.loss_curve_, plain.loss_curve_)
    assert not hasattr(plain, "validation_loss_curve_")


def test_a_weight_is_a_repetition(rows):
    X, y = rows
    weight = np.arange(100) % 3
    times = np.repeat(np.arange(200, 300), weight)
    weighted = TensorMachineRegressor(**PLAIN).fit(**given(X, y, sample_weight_val=weight))
    repeated = TensorMachineRegressor(**PLAIN).fit(X[OWN], y[OWN], X_val=X[times], y_val=y[times])
    np.testing.assert_allclose(weighted.validation_loss_curve_, repeated.validation_loss_curve_, rtol=1e-12)


@pytest.mark.parametrize("weight", [None, 1.0, 1e-320])
def test_training_rows_may_weigh_next_to_nothing_beside_them(rows, weight):
    X, y = rows
    settings = {**PLAIN, "basis": "auto"}  # in float32
    plain = TensorMachineRegressor(**settings).fit(**given(X, y))
    weights = {"sample_weight": np.full(200, 1e-300)}
    if weight is not None:
        weights["sample_weight_val"] = np.full(100, weight)
    model = TensorMachineRegressor(**settings).fit(**given(X, y, **weights))
    np.testing.assert_allclose(model.validation_loss_curve_, plain.validation_loss_curve_, rtol=1e-5)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, np.float32, np.asfortranarray])
def test_rows_may_have_another_form(rows, form):
    X, y = rows
    model = TensorMachineRegressor(**PLAIN).fit(X[OWN], y[OWN], X_val=form(X[NEW]), y_val=y[NEW])
    plain = TensorMachineRegressor(**PLAIN).fit(**given(X, y))
    np.testing.assert_allclose(model.validation_loss_curve_, plain.validation_loss_curve_, rtol=1e-5)


def test_frames_are_encoded_by_the_columns_of_the_training_rows(rows):
    pd = pytest.importorskip("pandas")
    X, y = rows
    level = np.where(X[:, 0] > 0, "high", "low").astype(object)
    level[250:] = "unknown in the training rows"
    table = pd.DataFrame({"number": X[:, 1], "level": level})
    settings = {**PLAIN, "basis": "auto", "trend": False, "relevance": 0}
    model = TensorMachineRegressor(**settings).fit(**given(table, y))
    truth = mean_squared_error(y[NEW], model.predict(table[NEW])) / y[OWN].var() / 2
    # Not quite, because small coefficients are dropped in the end.
    assert model.validation_loss_curve_[-1] == pytest.approx(truth, rel=1e-3)
    with pytest.raises(ValueError, match=r"feature names should match those that were passed during fit"):
        TensorMachineRegressor(**settings).fit(
            table[OWN], y[OWN], X_val=table[NEW].rename(columns={"level": "floor"}), y_val=y[NEW]
        )


# ---- early stopping


@pytest.mark.parametrize("kind", [TensorMachineRegressor, TensorMachineClassifier])
@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_rows_given_are_as_good_as_the_same_rows_held_out(rows, kind, solver):
    X, y = rows
    labels = y if kind is TensorMachineRegressor else y > 0
    settings = {"early_stopping": True, "n_iter_no_change": 3, "solver": solver, "degree": 2, "rank": 2}
    held_out = kind(**settings, random_state=np.random.RandomState(0)).fit(X, labels)
    same = np.random.RandomState(0)
    stratify = labels if kind is TensorMachineClassifier else None
    own, new = train_test_split(np.arange(300), test_size=0.1, random_state=same, stratify=stratify)
    model = kind(**settings, random_state=same).fit(X[own], labels[own], X_val=X[new], y_val=labels[new])
    np.testing.assert_array_equal(model.predict(X), held_out.predict(X))
    np.testing.assert_array_equal(model.loss_curve_, held_out.loss_curve_)
    np.testing.assert_allclose(model.validation_loss_curve_, held_out.validation_loss_curve_, rtol=1e-6)


@pytest.mark.parametrize("kind", [TensorMachineRegressor, GreedyTensorMachineRegressor])
def test_the_model_is_that_of_the_best_iteration(rng, kind):
    """Noise alone: whatever is learnt is wrong."""
    X, y = rng.standard_normal((300, 20)), rng.standard_normal(300)
    settings = {"alpha": 0.0, "rank": 3, "basis": "standard", "random_state": 0}
    settings |= {"solver": "lbfgs"} if kind is TensorMachineRegressor else {}
    model = kind(**settings, early_stopping=True, n_iter_no_change=3).fit(**given(X, y))
    curve = model.validation_loss_curve_
    assert model.n_iter_ == np.argmin(curve) + 1 < len(curve) == len(model.loss_curve_)
    truth = mean_squared_error(y[NEW], model.predict(X[NEW])) / y[OWN].var() / 2
    assert curve.min() == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("kind", [TensorMachineFeatures, FactorizationMachineRegressor])
def test_other_estimators_validate_too(rows, kind):
    X, y = rows
    model = kind(degree=2, rank=2, max_iter=50, random_state=0, early_stopping=True, n_iter_no_change=2)
    model.fit(**given(X, y))
    assert model.n_iter_ == np.argmin(model.validation_loss_curve_) + 1


def test_features_of_classes_validate_on_labels(rows):
    X, y = rows
    labels = np.where(y > 0, "yes", "no")
    model = TensorMachineFeatures(**PLAIN).fit(**given(X, labels))
    same = TensorMachineClassifier(**PLAIN).fit(**given(X, labels))
    np.testing.assert_allclose(model.validation_loss_curve_, same.validation_loss_curve_, rtol=1e-12)


def test_curves_are_those_of_the_last_fit(rows):
    X, y = rows
    model = TensorMachineRegressor(**PLAIN).fit(**given(X, y))
    assert not hasattr(model.fit(X, y), "validation_loss_curve_")
    model.fit(**given(X, y)).partial_fit(X, y)
    assert not hasattr(model, "loss_curve_")
    assert not hasattr(model, "validation_loss_curve_")


def test_a_pipeline_transforms_them(rows):
    X, y = rows
    scaler = StandardScaler().fit(X[OWN])
    plain = TensorMachineRegressor(**PLAIN).fit(**given(scaler.transform(X), y))
    with config_context(enable_metadata_routing=True):
        model = TensorMachineRegressor(**PLAIN).set_fit_request(X_val=True, y_val=True)
        pipeline = make_pipeline(StandardScaler(), model, transform_input=["X_val"]).fit(**given(X, y))
    np.testing.assert_array_equal(pipeline[-1].validation_loss_curve_, plain.validation_loss_curve_)


# ---- what is refused


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"X_val": None}, "y_val and sample_weight_val need X_val, which is missing"),
        ({"y_val": None}, "X_val needs y_val"),
        ({"X_val": np.ones((100, 4))}, "X has 4 features, but TensorMachineRegressor is expecting 5"),
        (
            {"X_val": np.full((100, 5), np.inf)},
            "X_val, y_val or sample_weight_val cannot be used: .*infinity",
        ),
        ({"y_val": np.ones(99)}, "inconsistent numbers of samples"),
        ({"y_val": np.ones((100, 2))}, "y has 2 outputs, but 1 in the training rows"),
        ({"sample_weight_val": np.zeros(100)}, "at least one (non-zero number|positive weight)"),
        ({"X_val": blocks.iterable(lambda: [])}, "needs rows in memory, but X_val is"),
        ({"X": blocks.iterable(lambda: []), "y": None}, "needs rows in memory, but X is"),
        ({"exposure_val": np.ones(100)}, "exposure belongs to X and exposure_val to X_val: give both"),
    ],
)
def test_rows_that_cannot_be_used(rows, others, message):
    with pytest.raises(ValueError, match=message):
        TensorMachineRegressor(**PLAIN, early_stopping=True).fit(**given(*rows) | others)


def test_targets_that_the_training_rows_do_not_allow(rows):
    X, y = rows
    labels = np.where(np.arange(300) < 200, np.where(y > 0, "yes", "no"), "perhaps")
    with pytest.raises(ValueError, match=r"y has the label 'perhaps', which is not among the classes \['no'"):
        TensorMachineClassifier(**PLAIN).fit(**given(X, labels))
    with pytest.raises(ValueError, match="y has the label 0, which is not among the classes"):
        TensorMachineClassifier(**PLAIN).fit(X[OWN], labels[OWN], X_val=X[NEW], y_val=np.zeros(100, int))
    counts = np.where(np.arange(300) < 200, np.abs(y), -1.0)
    with pytest.raises(ValueError, match=r"y_val .* cannot be used: loss='poisson' needs targets"):
        TensorMachineRegressor(**PLAIN, loss="poisson").fit(**given(X, counts))


def test_rows_on_dask_are_refused(rows):
    dask = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="needs rows in memory, but X_val is a Array"):
        TensorMachineRegressor(**PLAIN).fit(**given(*rows) | {"X_val": dask.ones((100, 5))})


def test_a_fit_that_fails_changes_nothing(rows):
    X, y = rows
    model = TensorMachineRegressor(**PLAIN).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="cannot be used"):
        model.fit(X[:, :4], y, X_val=X, y_val=y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_limit_of_iterations_is_no_failure_of_early_stopping(rows):
    X, y = rows
    settings = {**PLAIN, "solver": "lbfgs", "max_iter": 2}
    TensorMachineRegressor(**settings, early_stopping=True).fit(**given(X, y))
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=2"):
        TensorMachineRegressor(**settings).fit(**given(X, y))
