"""Models in MLflow, as docs/files.md shows."""

from __future__ import annotations

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor

mlflow = pytest.importorskip("mlflow")
skops_io = pytest.importorskip("skops.io")
pd = pytest.importorskip("pandas")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::Warning:mlflow"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture
def tracking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_a_logged_model_predicts_the_same(tracking, kind):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"size": random.random(100), "place": random.choice(["a", "b"], 100)})
    y = X["size"] + (X["place"] == "a")
    estimator = TensorMachineRegressor if kind == "regressor" else TensorMachineClassifier
    model = estimator(degree=2, rank=2, max_iter=2, random_state=0)
    model.fit(X, y if kind == "regressor" else np.where(y > 1, "large", "small"))
    with mlflow.start_run():
        mlflow.log_params(model.get_params())
        logged = mlflow.sklearn.log_model(
            model,
            name="model",
            skops_trusted_types=skops_io.get_untrusted_types(data=skops_io.dumps(model)),
            pip_requirements=["tensormachines"],  # otherwise MLflow looks for them, which takes a while
        )
    again = mlflow.sklearn.load_model(logged.model_uri)
    assert type(again) is estimator
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    served = mlflow.pyfunc.load_model(logged.model_uri)
    np.testing.assert_array_equal(served.predict(X), model.predict(X))
