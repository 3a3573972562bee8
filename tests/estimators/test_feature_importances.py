"""feature_importances_, and scikit-learn's tools that read it: the columns that matter are found."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline

import tensormachines
from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
)
from tensormachines.inspection import importance
from tensormachines.inspection.forms import output_keys
from tensormachines.peers import FactorizationMachineClassifier, FactorizationMachineRegressor

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped at max_iter")

SETTINGS = {"degree": 2, "rank": 4, "alpha": 1e-4, "random_state": 0}
FEW = {
    "degrees": (2,),
    "ranks": (3,),
    "alphas": (1e-4,),
    "relevances": (0,),
    "trends": (False,),
    "n_members": 1,
    "cv": 2,
}
random = np.random.default_rng(0)
X = random.standard_normal((500, 5))
Y = 2 * X[:, 1] * X[:, 3] + X[:, 1]  # columns 1 and 3 matter, 3 only in an interaction
LABELS = np.digitize(Y, np.quantile(Y, [0.33, 0.67]))
MODELS = {
    "spline": (TensorMachineRegressor(**SETTINGS), Y),
    "standard": (TensorMachineRegressor(**SETTINGS, basis="standard"), Y),
    "none": (TensorMachineRegressor(**SETTINGS, basis=None), Y),
    "sphere": (TensorMachineRegressor(**SETTINGS | {"degree": 3}, basis="sphere"), Y),
    "two targets": (TensorMachineRegressor(**SETTINGS), np.column_stack([Y, 1000 * X[:, 1]])),
    "shared factors": (TensorMachineClassifier(**SETTINGS), LABELS),
    "own factors": (TensorMachineClassifier(**SETTINGS, shared_factors=False), LABELS),
    "two classes": (TensorMachineClassifier(**SETTINGS), LABELS > 0),
    "features": (TensorMachineFeatures(**SETTINGS), Y),
    "search": (TensorMachineRegressorCV(**FEW, random_state=0), Y),
    "search of classes": (TensorMachineClassifierCV(**FEW, random_state=0), LABELS),
    "factorization machine": (FactorizationMachineRegressor(rank=4, random_state=0), Y),
    "factorization machine of classes": (FactorizationMachineClassifier(rank=4, random_state=0), LABELS),
}


@pytest.mark.parametrize(("model", "target"), MODELS.values(), ids=MODELS)
def test_the_columns_that_matter_are_found(model, target):
    found = SelectFromModel(model, max_features=2, threshold=-np.inf).fit(X, target)
    assert found.get_support().tolist() == [False, True, False, True, False]
    shares = found.estimator_.feature_importances_
    assert shares.shape == (5,)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    assert SelectFromModel(model).fit(X, target).get_support().tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("name", ["spline", "shared factors", "factorization machine"])
def test_recursive_elimination(name):
    model, target = MODELS[name]
    assert RFE(model, n_features_to_select=2).fit(X, target).support_.tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_selection_in_a_pipeline_with_a_frame():
    table = pd.DataFrame(X, columns=list("abcde")).assign(kind=np.where(X[:, 0] > 0, "high", "low"))
    model = TensorMachineRegressor(**SETTINGS)
    chosen = make_pipeline(SelectFromModel(model).set_output(transform="pandas"), model).fit(table, Y)
    assert chosen[0].get_feature_names_out().tolist() == ["b", "d"]
    assert chosen.score(table, Y) > 0.9


def test_importances_are_those_of_inspection_averaged_over_the_outputs():
    for name in ("spline", "shared factors", "standard"):
        model, target = MODELS[name]
        model.fit(X, target)
        of_outputs = [list(importance(model, X, output=output).values()) for output in output_keys(model)]
        np.testing.assert_allclose(model.feature_importances_, np.mean(of_outputs, axis=0), atol=0.03)


def test_importances_are_those_of_permutation():
    model = TensorMachineRegressor(**SETTINGS).fit(X, Y)
    by_permutation = permutation_importance(
        model, X, model.predict(X), scoring="neg_mean_squared_error", n_repeats=20, random_state=0
    ).importances_mean
    np.testing.assert_allclose(model.feature_importances_, by_permutation / by_permutation.sum(), atol=0.03)


def test_sparse_rows_and_blocks_of_rows():
    rows = np.where(random.random((600, 40)) < 0.2, random.standard_normal((600, 40)), 0.0)
    target = 3 * rows[:, 7] + rows[:, 8]
    dense = TensorMachineRegressor(**SETTINGS, basis="standard").fit(rows, target).feature_importances_
    model = TensorMachineRegressor(**SETTINGS, basis="standard").fit(sparse.csr_array(rows), target)
    np.testing.assert_allclose(model.feature_importances_, dense, atol=0.02)
    assert np.argsort(dense)[-2:].tolist() == [8, 7]

    def pieces():
        for start in range(0, 600, 100):
            yield rows[start : start + 100], target[start : start + 100]

    model = TensorMachineRegressor(**SETTINGS, basis="standard").fit(blocks.iterable(pieces))
    np.testing.assert_allclose(model.feature_importances_, dense, atol=0.05)


def test_coef_is_there_only_where_it_tells_all_of_the_columns():
    linear = TensorMachineRegressor(degree=1, basis=None, random_state=0).fit(X, X[:, 1])
    np.testing.assert_array_equal(linear.coef_, linear.linear_)
    assert linear.coef_.shape == (5,)
    for settings in ({"degree": 1}, {"degree": 1, "basis": "standard"}, {"degree": 2, "basis": None}):
        model = TensorMachineRegressor(random_state=0, **settings).fit(X, Y)
        assert not hasattr(model, "coef_")
        with pytest.raises(
            AttributeError, match=r"has no coef_: .*degree=1 and basis=None.*linear_ .*feature_importances_"
        ):
            _ = model.coef_
        assert model.linear_.shape == (len(model.basis_features_),)


def test_files_keep_them_and_partial_fit_forgets_them(tmp_path):
    model = TensorMachineRegressor(**SETTINGS).fit(X, Y)
    model.save(tmp_path / "model.tm")
    again = tensormachines.load(tmp_path / "model.tm")
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    for name in ("_mean_outputs", "_mean_parts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    model.partial_fit(X, Y)
    with pytest.raises(AttributeError, match="partial_fit"):
        _ = model.feature_importances_


def test_the_mean_of_the_outputs_over_the_training_rows_is_known():
    weight = random.integers(0, 3, len(X)).astype(float)
    model = TensorMachineRegressor(**SETTINGS).fit(X, 1e6 + Y, sample_weight=weight)
    assert model._mean_outputs == pytest.approx([np.average(model.predict(X), weights=weight)], abs=1e-4)
    model = TensorMachineClassifier(**SETTINGS).fit(X, LABELS)
    np.testing.assert_allclose(model._mean_outputs, model.decision_function(X).mean(axis=0), atol=1e-4)


def test_names_of_features_say_what_they_are_made_of():
    table = pd.DataFrame(X[:, :4], columns=["a", "width", "c", "depth"])
    features = TensorMachineFeatures(degree=2, rank=1, alpha=1e-4, basis="standard", random_state=0)
    area = X[:, 1] * X[:, 3]
    (name,) = features.fit(table, area).get_feature_names_out()
    assert name in ("degree2_term1(width & depth)", "degree2_term1(depth & width)")
    both = TensorMachineFeatures(degree=3, rank=2, alpha=1e-2, random_state=0).fit(
        table, np.column_stack([area, X[:, 0]])
    )
    names = both.get_feature_names_out()
    assert len(set(names)) == both.transform(table).shape[1] == len(names) == 8
    assert names[0].startswith("y0_degree2_term1(")
    assert names[-1].startswith("y1_degree3_term2(")
    shared = TensorMachineFeatures(degree=2, rank=2, shared_factors=True, random_state=0).fit(table, LABELS)
    assert len(shared.get_feature_names_out()) == shared.transform(table).shape[1] == 2
