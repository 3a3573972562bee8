"""scikit-learn's callback protocol, where this version of it has one."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.peers import GreedyTensorMachineRegressor

pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


class Recorder:
    """Follows scikit-learn's FitCallback protocol."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events = []
        self.scores = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(X, y))
            return len(self.scores) == self.stop_after
        return False


@pytest.mark.parametrize(("solver", "basis"), [("adam", "standard"), ("adam", "auto"), ("lbfgs", "standard")])
def test_hooks_are_called_in_order_with_a_usable_model(solver, basis):
    X, y = load_breast_cancer(return_X_y=True)
    y = np.array(["malignant", "benign"])[y]
    recorder = Recorder()
    model = (
        TensorMachineClassifier(degree=2, alpha=1e-2, basis=basis, solver=solver, random_state=0)
        .set_callbacks(recorder)
        .fit(X, y)
    )
    assert recorder.events[:3] == ["setup", "begin fit", "begin iteration"]
    assert recorder.events[-3:] == ["end iteration", "end fit", "teardown"]
    assert recorder.events.count("begin iteration") == recorder.events.count("end iteration") == model.n_iter_
    assert recorder.scores[-1] == model.score(X, y)


def test_a_callback_stops_the_fit(rng):
    X = rng.standard_normal((200, 3))
    recorder = Recorder(stop_after=4)
    model = (
        TensorMachineRegressor(n_restarts=3, random_state=0).set_callbacks(recorder).fit(X, X[:, 0] * X[:, 1])
    )
    assert model.n_iter_ == 4
    assert len(recorder.scores) == 4


def test_an_interrupted_fit_is_torn_down(rng):
    class Interrupting(Recorder):
        def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
            raise KeyboardInterrupt

    X = rng.standard_normal((50, 2))
    callback = Interrupting()
    model = TensorMachineRegressor(random_state=0).set_callbacks(callback)
    before = set(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, X[:, 0])
    assert callback.events[-1] == "teardown"
    assert set(vars(model)) == before


def test_progress_bar(capsys):
    pytest.importorskip("rich", reason="scikit-learn's progress bar needs rich")
    from sklearn.callback import ProgressBar

    X, y = load_breast_cancer(return_X_y=True)
    model = TensorMachineClassifier(
        degree=2, solver="lbfgs", basis="standard", max_iter=20, tol=0, random_state=0
    ).set_callbacks(ProgressBar())
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert "TensorMachineClassifier" in capsys.readouterr().out
    assert np.isfinite(model.objective_)


def test_a_greedy_fit_reports_the_iterations_of_all_its_ranks(rng):
    X, recorder = rng.standard_normal((100, 4)), Recorder()
    model = GreedyTensorMachineRegressor(rank=2, max_iter=3, tol=0, random_state=0).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, X[:, 0] * X[:, 1])
    assert len(recorder.scores) == model.n_iter_ == 9
