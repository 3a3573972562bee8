"""The estimators inside scikit-learn and SHAP give the same as the computation by hand."""

import re
import sys

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, r2_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_validate
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from documented import documented
from random_machines import X, machine, y
from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
)
from tensormachines.inspection import column_contributions
from tensormachines.peers import FactorizationMachineClassifier, GreedyTensorMachineRegressor

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")

QUICK = {"degree": 2, "rank": 2, "max_iter": 5, "random_state": 0}
SEARCH = {
    "degrees": (1, 2),
    "ranks": (1,),
    "alphas": (1e-3, 1e-1),
    "relevances": (0,),
    "trends": (False,),
    "max_iters": (5,),
    "n_members": 1,
    "cv": 2,
    "random_state": 0,
}
REGRESSOR, CLASSIFIER, FEATURES = (
    cls(**QUICK) for cls in (TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures)
)
LABELS = np.where(y > np.median(y), "yes", "no")

random = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "area": random.uniform(30, 150, 200),
        "district": random.choice(["north", "south", "harbour"], 200),
        "floor": random.integers(0, 9, 200).astype(float),
        "lift": random.random(200) < 0.5,
    },
    index=np.arange(200)[::-1],
)
PRICE = (
    TABLE["area"] * np.where(TABLE["district"] == "harbour", 3, 2)
    + np.where(TABLE["lift"], 4, -6) * TABLE["floor"]
)
TABLE.loc[random.random(200) < 0.1, "district"] = None
DEAR = np.asarray(np.median(PRICE) < PRICE)


@pytest.mark.parametrize(
    "estimator",
    [
        REGRESSOR,
        CLASSIFIER,
        FEATURES,
        TensorMachineRegressorCV(**SEARCH),
        TensorMachineClassifierCV(**SEARCH),
        FactorizationMachineClassifier(rank=1, tol=1e-2, random_state=0),
        GreedyTensorMachineRegressor(rank=1, tol=1e-2, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_html_has_the_parameters_and_what_is_documented_of_the_fit(estimator):
    estimator = clone(estimator)
    shown = re.sub(r"<(style|script)>.*?</\1>", "", estimator._repr_html_(), flags=re.DOTALL)
    assert "Not fitted" in shown
    for name in estimator.get_params():
        assert re.search(rf">\s*{name}\b", shown)
    # Of linear models, of fits with rows held out, and of several quantiles.
    others = {"coef_", "validation_loss_curve_", "quantiles_"}
    learnt = set(documented(type(estimator), "Attributes")) - others
    assert not any(hasattr(estimator, name) for name in learnt)
    estimator.fit(pd.DataFrame(X, columns=list("abcd")), pd.Series(y > np.median(y), name="large"))
    assert {name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")} == learnt
    shown = re.sub(r"<(style|script)>.*?</\1>", "", estimator._repr_html_(), flags=re.DOTALL)
    assert "Not fitted" not in shown
    assert len(shown) < 40_000
    if "Fitted attributes" in shown:  # of scikit-learn 1.9 and later
        assert set(re.findall(r">\s*(\w+_)\s*<", shown.partition("Fitted attributes")[2])) == learnt


@pytest.mark.parametrize(
    "estimator", [REGRESSOR, TensorMachineRegressorCV(**SEARCH)], ids=["machine", "search"]
)
def test_metadata_routing(estimator):
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    folds = KFold(2)
    with config_context(enable_metadata_routing=True):
        asks = clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_validate(asks, X, y, cv=folds, params={"sample_weight": weight})["test_score"]
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asks).fit(
            X, y, sample_weight=weight
        )
        searched = GridSearchCV(
            pipeline, {f"{type(estimator).__name__.lower()}__random_state": [0]}, cv=folds
        )
        searched.fit(X, y, sample_weight=weight)
        ignores = clone(estimator).set_fit_request(sample_weight=False)
        ignored = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), ignores).fit(
            X, y, sample_weight=weight
        )
    by_hand = [
        (
            clone(estimator).fit(X[rows], y[rows], sample_weight=weight[rows]),
            X[others],
            y[others],
            weight[others],
        )
        for rows, others in folds.split(X)
    ]
    np.testing.assert_array_equal(
        scores, [r2_score(c, fold.predict(b), sample_weight=w) for fold, b, c, w in by_hand]
    )
    scaled = StandardScaler().fit_transform(X)
    weighted = clone(estimator).fit(scaled, y, sample_weight=weight).predict(scaled)
    np.testing.assert_array_equal(pipeline.predict(X), weighted)
    np.testing.assert_array_equal(searched.predict(X), weighted)
    scaled = StandardScaler().fit(X, sample_weight=weight).transform(X)
    np.testing.assert_array_equal(ignored.predict(X), clone(estimator).fit(scaled, y).predict(scaled))


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_exposure_is_routed_through_a_pipeline():
    """A pipeline passes it on to `fit` and `predict`, `cross_validate` to `fit`."""
    exposure = np.random.default_rng(1).uniform(0.5, 2, len(y))
    counts = np.floor(exposure * np.exp(X[:, 0]))
    model = TensorMachineRegressor(**QUICK, loss="poisson")
    with config_context(enable_metadata_routing=True):
        asks = clone(model).set_fit_request(exposure=True, sample_weight=True)
        asks.set_predict_request(exposure=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asks)
        params = {"exposure": exposure, "sample_weight": exposure}
        score = get_scorer("r2").set_score_request(sample_weight=False)
        fitted = cross_validate(
            pipeline, X, counts, cv=KFold(2), params=params, return_estimator=True, scoring=score
        )["estimator"]
        found = [each.predict(X, exposure=exposure) for each in fitted]
    for own, predicted in zip([rows for rows, _ in KFold(2).split(X)], found, strict=True):
        scaler = StandardScaler().fit(X[own])
        by_hand = clone(model).fit(
            scaler.transform(X[own]), counts[own], sample_weight=exposure[own], exposure=exposure[own]
        )
        np.testing.assert_array_equal(predicted, exposure * by_hand.predict(scaler.transform(X)))


def test_a_search_scores_with_weights_whatever_is_routed():
    """A weight of 2 is a row given twice, for its scorer too, which need not ask for it."""
    splits = [(np.arange(0, 60, 2), np.arange(1, 60, 2)), (np.arange(1, 60, 2), np.arange(0, 60, 2))]
    twice = np.repeat(np.arange(60), np.where(np.arange(60) < 20, 2, 1))
    repeated = [tuple(np.flatnonzero(np.isin(twice, part)) for part in split) for split in splits]
    settings = {**SEARCH, "halving": False, "scoring": get_scorer("neg_mean_absolute_error")}
    with config_context(enable_metadata_routing=True):
        weighted = TensorMachineRegressorCV(**settings | {"cv": splits}).fit(
            X, y, sample_weight=np.bincount(twice)
        )
    plain = TensorMachineRegressorCV(**settings | {"cv": repeated}).fit(X[twice], y[twice])
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-9
    )


@pytest.mark.parametrize(("library", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(library, frame):
    table = TABLE if library == "pandas" else pl.from_pandas(TABLE)
    plain = clone(FEATURES).fit(table, PRICE)
    names = plain.get_feature_names_out().tolist()
    assert [name.partition("(")[0] for name in names] == ["degree2_term1", "degree2_term2"]
    features = clone(FEATURES).set_output(transform=library)
    pipeline = make_pipeline("passthrough", features).fit(table, PRICE)
    columns = ColumnTransformer(
        [("learnt", features, list(TABLE.columns)), ("kept", "passthrough", ["area"])]
    ).set_output(transform=library)
    together = columns.fit_transform(table, PRICE)
    assert list(together.columns) == [*(f"learnt__{name}" for name in names), "kept__area"]
    np.testing.assert_array_equal(together.to_numpy()[:, 2].astype(float), TABLE["area"])
    for found in (
        features.fit_transform(table, PRICE),
        pipeline.transform(table),
        together[together.columns[:2]],
    ):
        assert isinstance(found, frame)
        np.testing.assert_array_equal(found.to_numpy(), plain.transform(table))
        assert library == "polars" or found.index.equals(TABLE.index)
    assert (
        list(features.fit(table, PRICE).transform(table).columns)
        == names
        == list(plain.get_feature_names_out())
    )


def test_features_in_a_union_and_a_pipeline():
    """A machine is linear in its terms and its columns: least squares in both is at least as close to the
    training targets.
    """
    settings = {**QUICK, "basis": "standard"}
    union = FeatureUnion([("terms", TensorMachineFeatures(**settings)), ("columns", StandardScaler())])
    pipeline = make_pipeline(union, LinearRegression()).fit(X, y)
    model = TensorMachineRegressor(**settings).fit(X, y)
    assert r2_score(y, pipeline.predict(X)) >= model.score(X, y)
    terms = union.transformer_list[0][1].transform(X).sum(axis=1)
    linear = (
        np.column_stack([union.transformer_list[1][1].transform(X), np.ones(len(X))])
        / np.sqrt(X.shape[1])
        @ model.linear_
    )
    np.testing.assert_allclose(terms + linear + model.intercept_, model.predict(X), rtol=1e-9)


def test_column_transformer():
    chosen = ColumnTransformer([("kept", "passthrough", ["district", "area"])])
    pipeline = make_pipeline(chosen, clone(REGRESSOR)).fit(TABLE, PRICE)
    alone = clone(REGRESSOR).fit(TABLE[["district", "area"]], PRICE)
    np.testing.assert_array_equal(pipeline.predict(TABLE), alone.predict(TABLE[["district", "area"]]))


def test_stacking():
    folds, linear = StratifiedKFold(3), LogisticRegression()
    stack = StackingClassifier([("machine", CLASSIFIER)], linear, cv=folds).fit(TABLE, DEAR)
    assert stack.stack_method_ == ["predict_proba"]
    held_out = cross_val_predict(CLASSIFIER, TABLE, DEAR, cv=folds, method="predict_proba")[:, 1:]
    by_hand = (
        clone(linear)
        .fit(held_out, DEAR)
        .predict_proba(clone(CLASSIFIER).fit(TABLE, DEAR).predict_proba(TABLE)[:, 1:])
    )
    np.testing.assert_allclose(stack.predict_proba(TABLE), by_hand, rtol=1e-9)
    machines = [("machine", REGRESSOR), ("linear", LinearRegression())]
    stack = StackingRegressor(machines, LinearRegression(), cv=KFold(3)).fit(X, y)
    held_out = np.column_stack([cross_val_predict(estimator, X, y, cv=KFold(3)) for _, estimator in machines])
    np.testing.assert_allclose(
        stack.final_estimator_.coef_, LinearRegression().fit(held_out, y).coef_, rtol=1e-9
    )


def test_calibration():
    model = clone(CLASSIFIER).fit(TABLE[:100], DEAR[:100])
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), method="isotonic").fit(
        TABLE[100:], DEAR[100:]
    )
    by_hand = IsotonicRegression(out_of_bounds="clip").fit(model.decision_function(TABLE[100:]), DEAR[100:])
    np.testing.assert_allclose(
        calibrated.predict_proba(TABLE)[:, 1], by_hand.predict(model.decision_function(TABLE)), rtol=1e-12
    )


def test_a_frozen_model_is_not_fitted_again():
    model = clone(REGRESSOR).fit(TABLE[:100], PRICE[:100])
    before = model.predict(TABLE)
    frozen = FrozenEstimator(model)
    np.testing.assert_array_equal(frozen.fit(TABLE[100:], -PRICE[100:]).predict(TABLE), before)
    scores = cross_validate(frozen, TABLE, PRICE, cv=KFold(2))["test_score"]
    halves = [rows for _, rows in KFold(2).split(TABLE)]
    np.testing.assert_array_equal(scores, [r2_score(PRICE.iloc[half], before[half]) for half in halves])
    clone(frozen).fit(TABLE, -PRICE)
    np.testing.assert_array_equal(model.predict(TABLE), before)


@pytest.mark.parametrize("compress", [0, 3])
def test_joblib(tmp_path, compress):
    for estimator, target in ((REGRESSOR, PRICE), (CLASSIFIER, DEAR), (FEATURES, PRICE)):
        model = clone(estimator).fit(TABLE, target)
        joblib.dump(model, tmp_path / "model", compress=compress)
        again = joblib.load(tmp_path / "model")
        ask = "transform" if estimator is FEATURES else "predict"
        np.testing.assert_array_equal(getattr(again, ask)(TABLE), getattr(model, ask)(TABLE))
        np.testing.assert_array_equal(again.loss_curve_, model.loss_curve_)


def test_permutation_importance():
    """With its own predictions as the truth, a shuffled column of a linear model costs twice the variance of
    what it adds.
    """
    model = machine(None, degree=1)
    found = permutation_importance(
        model, X, model.predict(X), scoring="neg_mean_squared_error", n_repeats=200, random_state=0
    )
    np.testing.assert_allclose(found.importances_mean, 2 * X.var(axis=0) * model.linear_**2, rtol=0.05)
    ignored = TABLE.assign(same="x", none=None)
    model = clone(CLASSIFIER).fit(ignored, DEAR)
    found = permutation_importance(model, ignored, DEAR, n_repeats=2, random_state=0)
    assert found.importances_mean[0] > 0.1
    assert found.importances[4:].tolist() == [[0, 0], [0, 0]]


def test_partial_dependence():
    """It is the mean prediction with all of a column set to one value."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = clone(REGRESSOR).fit(TABLE, PRICE)
    complete = TABLE.dropna()
    pyplot.switch_backend("agg")
    display = PartialDependenceDisplay.from_estimator(
        model,
        complete,
        ["area", "district", ("district", "lift")],
        categorical_features=["district", "lift"],
        grid_resolution=4,
    )
    pyplot.close(display.figure_)
    area, district, both = display.pd_results
    for name, found in (("area", area), ("district", district)):
        by_hand = [
            model.predict(complete.assign(**{name: value})).mean() for value in found["grid_values"][0]
        ]
        np.testing.assert_allclose(found["average"][0], by_hand, rtol=1e-9)
    by_hand = [
        [model.predict(complete.assign(district=a, lift=b)).mean() for b in both["grid_values"][1]]
        for a in both["grid_values"][0]
    ]
    np.testing.assert_allclose(both["average"][0], by_hand, rtol=1e-9)


def test_clone_and_grid_search():
    search = GridSearchCV(REGRESSOR, {"degree": [1, 2], "alpha": [1e-3]}, cv=KFold(2)).fit(TABLE, PRICE)
    by_hand = clone(REGRESSOR).set_params(**search.best_params_).fit(TABLE, PRICE)
    np.testing.assert_array_equal(search.predict(TABLE), by_hand.predict(TABLE))
    again = clone(by_hand)
    assert again.get_params() == by_hand.get_params()
    assert vars(again) == again.get_params()
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        model = clone(REGRESSOR).set_params(**params)
        folds = [
            model.fit(TABLE.iloc[a], PRICE.iloc[a]).score(TABLE.iloc[b], PRICE.iloc[b])
            for a, b in KFold(2).split(TABLE)
        ]
        assert score == np.mean(folds)


def test_transformed_target():
    model = TransformedTargetRegressor(clone(REGRESSOR), func=np.log, inverse_func=np.exp).fit(
        TABLE, PRICE + 100
    )
    by_hand = clone(REGRESSOR).fit(TABLE, np.log(PRICE + 100))
    np.testing.assert_array_equal(model.predict(TABLE), np.exp(by_hand.predict(TABLE)))


@pytest.mark.filterwarnings("ignore:The set_bad function:PendingDeprecationWarning")  # of matplotlib, by shap
def test_shap(monkeypatch):
    """SHAP leaves a column out by taking it from each row of the background in turn, `column_contributions`
    by its mean in the basis.

    With a single row that is the same; with more, only of what is linear in the basis.
    """
    if "shap" not in sys.modules:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # for 4 columns, compiling takes longer than all else
    shap = pytest.importorskip("shap")
    for degree, background in ((3, X), (3, X[:1]), (1, X)):
        model = machine("spline", degree=degree)
        explained = shap.Explainer(model.predict, background)(X[1:7])
        np.testing.assert_allclose(
            explained.values.sum(axis=1) + explained.base_values, model.predict(X[1:7]), rtol=1e-9
        )
        if degree == 1 or len(background) == 1:
            _, values, constant = column_contributions(model, X[1:7], reference=background)
            np.testing.assert_allclose(explained.values, values, atol=1e-12)
            np.testing.assert_allclose(explained.base_values, constant, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The set_bad function:PendingDeprecationWarning")  # of matplotlib, by shap
def test_shap_of_mixed_columns_by_their_codes(monkeypatch):
    """As docs/explain.md shows it: SHAP subtracts entries, so that text has to be given as codes."""
    if "shap" not in sys.modules:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # for 4 columns, compiling takes longer than all else
    shap = pytest.importorskip("shap")
    table = TABLE.assign(district=TABLE["district"].astype("category"))
    model = clone(REGRESSOR).fit(table, PRICE)
    levels = table["district"].cat.categories
    coded = table.assign(district=table["district"].cat.codes).astype(float)

    def predict(rows):
        frame = pd.DataFrame(rows, columns=coded.columns)
        frame["district"] = pd.Categorical.from_codes(frame["district"].astype(int), levels)
        return model.predict(frame)

    np.testing.assert_array_equal(predict(coded), model.predict(table))
    found = shap.Explainer(predict, coded[:20])(coded[:3])
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base_values, model.predict(table[:3]), rtol=1e-6
    )


def test_several_labels_per_row(rng):
    table = pd.DataFrame({"a": rng.normal(size=300), "c": rng.choice(["x", "y", "z"], 300)})
    labels = np.column_stack([table["a"] > 0, table["c"] == "x"]).astype(int)
    model = MultiOutputClassifier(TensorMachineClassifier(degree=2, random_state=0)).fit(table, labels)
    assert (model.predict(table) == labels).mean() > 0.98
