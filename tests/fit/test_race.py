"""The penalty that alpha="auto" chooses."""

import numpy as np
import pytest
from sklearn.base import clone

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, load
from tensormachines._fit import race as race_module
from tensormachines._fit.race import FEWEST_ROWS, Outputs, ShortFit
from tensormachines._fit.settings import usual_alpha
from tensormachines._model.losses import SQUARED


def with_losses(*losses):
    z = np.sqrt(2 * np.array(losses))[:, None]
    return Outputs(SQUARED, np.zeros_like(z), z, np.zeros_like(z), np.ones(len(z)))


def smooth(rng, n_rows, noise):
    X = rng.uniform(-1, 1, (n_rows, 3))
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] + noise * rng.standard_normal(n_rows)


def test_a_target_without_noise_gets_a_smaller_penalty(rng):
    X, y = smooth(rng, 600, noise=0.0)
    X_test, y_test = smooth(rng, 600, noise=0.0)
    chosen = TensorMachineRegressor(random_state=0).fit(X, y)
    of_rule = TensorMachineRegressor(alpha="rows", random_state=0).fit(X, y)
    assert of_rule.alpha_ == usual_alpha(600, 1, False)
    assert chosen.alpha_ < 0.7 * of_rule.alpha_
    errors = [np.mean((model.predict(X_test) - y_test) ** 2) for model in (chosen, of_rule)]
    assert errors[0] < 0.7 * errors[1]


def test_pure_noise_gets_no_smaller_penalty_and_small_outputs(rng):
    X, y = rng.standard_normal((600, 3)), rng.standard_normal(600)
    chosen = TensorMachineRegressor(random_state=0).fit(X, y)
    of_rule = TensorMachineRegressor(alpha="rows", random_state=0).fit(X, y)
    assert chosen.alpha_ >= of_rule.alpha_
    assert chosen.predict(X).std() < 0.5 * of_rule.predict(X).std()


def test_outputs_are_scaled_down_where_that_is_better():
    y, noise = np.array([[1.0], [-1.0], [2.0], [0.5]]), np.array([[3.0], [-2.0], [4.0], [2.0]])
    outputs = Outputs(SQUARED, y, noise, np.zeros_like(y), np.ones(4))
    least_squares = float((y.T @ noise / (noise.T @ noise))[0, 0])
    assert outputs.best_scale == pytest.approx(least_squares, abs=0.01)
    assert outputs.scaled(0.0).best_scale == 1.0
    assert Outputs(SQUARED, y, y / 2, np.zeros_like(y), np.ones(4)).best_scale == 1.0  # never up
    offset = Outputs(SQUARED, y, noise, y, np.ones(4))
    assert offset.best_scale < 0.01


@pytest.mark.parametrize("noise", [0.0, 0.3, 3.0])
def test_threads_race_side_by_side_to_the_same_penalty_and_model(rng, monkeypatch, noise):
    X, y = smooth(rng, 1200, noise)
    short_fit, fits = race_module._short_fit, {}

    def counted(problem, held_out, settings, alpha, *rest):
        found = short_fit(problem, held_out, settings, alpha, *rest)
        key = settings.max_iter, alpha, problem.sizes is None
        fits.setdefault(n_jobs, {})[key] = found.outputs.losses.tobytes()
        return found

    monkeypatch.setattr(race_module, "_short_fit", counted)
    models = []
    for n_jobs in (1, 2, 3, 5):
        models.append(TensorMachineRegressor(random_state=0, n_jobs=n_jobs).fit(X, y))
    for n_jobs, model in zip((2, 3, 5), models[1:], strict=True):
        assert model.alpha_ == models[0].alpha_
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))
        assert fits[1].items() <= fits[n_jobs].items()


def test_one_thread_fits_nothing_in_vain(rng, monkeypatch):
    seen = []
    first, better = with_losses(1.0, 1.0), with_losses(0.9, 0.9)

    def short_fit(problem, held_out, settings, alpha, start, *rest):
        seen.append((settings.max_iter, alpha))
        return ShortFit(problem, start, better if len(seen) in (2, 3) else first)

    monkeypatch.setattr(race_module, "_short_fit", short_fit)
    X, y = smooth(rng, 600, noise=0.0)
    TensorMachineRegressor(relevance=0, trend=False, random_state=0).fit(X, y)
    epochs = [race_module.FIRST_EPOCHS] * 2 + [race_module.EPOCHS] * 2
    shares = np.array([alpha for _, alpha in seen]) / seen[0][1]
    assert [most for most, _ in seen] == epochs
    np.testing.assert_allclose(shares, race_module.SHARE ** np.array([0, 1, 1, 2]))


def test_classes_without_noise_get_a_smaller_penalty(rng):
    X = rng.uniform(-1, 1, (900, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", np.where(X[:, 0] > 0, "right", "left"))
    model = TensorMachineClassifier(random_state=0).fit(X, y, sample_weight=rng.integers(1, 3, 900))
    assert model.alpha_ < usual_alpha(900, 3, True)


@pytest.mark.parametrize(
    ("losses", "chosen"), [((1.0, 0.5, 0.6), 4), ((1.0, 0.5, 0.4), 5), ((0.3, 0.5, 0.1), 3)]
)
def test_a_higher_degree_is_taken_where_it_is_better_and_rows_are_many(rng, monkeypatch, losses, chosen):
    def short_fit(problem, held_out, settings, alpha, start, random_state):
        loss = losses[problem.layout.degree - 3]
        return ShortFit(problem, start, with_losses(loss, loss))

    monkeypatch.setattr(race_module, "_short_fit", short_fit)
    monkeypatch.setattr(race_module, "FEWEST_ROWS_OF_DEGREES", 500)
    X, y = smooth(rng, 600, noise=0.1)
    settings = {"max_iter": 3, "trend": False, "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(X, y)
    assert max(model.factors_) == chosen
    assert max(TensorMachineRegressor(**settings).fit(X[:400], y[:400]).factors_) == 3
    assert max(TensorMachineRegressor(2, **settings).fit(X, y).factors_) == 2
    assert max(model.set_params(warm_start=True).fit(X, y).factors_) == chosen
    assert max(model.partial_fit(X, y).factors_) == chosen


def test_columns_are_weighed_where_few_of_them_matter(rng):
    X, y = smooth(rng, 900, noise=0.1)
    X = np.hstack([X, rng.uniform(-1, 1, (900, 20))])
    X_test, y_test = smooth(rng, 900, noise=0.0)
    X_test = np.hstack([X_test, rng.uniform(-1, 1, (900, 20))])
    models = [TensorMachineRegressor(relevance=rounds, random_state=0).fit(X, y) for rounds in ("auto", 0)]
    errors = [np.mean((model.predict(X_test) - y_test) ** 2) for model in models]
    assert errors[0] < 0.7 * errors[1]


def test_columns_are_not_weighed_where_that_is_no_better(rng):
    X, y = rng.uniform(-1, 1, (600, 3)), rng.standard_normal(600)
    auto = TensorMachineRegressor(random_state=0).fit(X, y)
    without = TensorMachineRegressor(relevance=0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(auto.predict(X), without.predict(X))


def test_a_fit_goes_on_from_the_race_unless_there_are_several_starts(rng):
    X, y = smooth(rng, 400, noise=0.1)
    assert TensorMachineRegressor(random_state=0).fit(X, y).n_iter_ == 16
    assert TensorMachineRegressor(random_state=0, max_iter=4).fit(X, y).n_iter_ == 3
    for settings in ({"n_members": 2}, {"n_restarts": 2}, {"init": "greedy"}, {"relevance": 1}):
        model = TensorMachineRegressor(random_state=0, max_iter=4, **settings).fit(X, y)
        assert model.n_iter_ == 4, settings


def test_few_rows_other_solvers_and_numbers_do_not_race(rng, monkeypatch):
    monkeypatch.setattr(race_module, "_short_fit", lambda *_: pytest.fail("there was a race"))
    X, y = smooth(rng, FEWEST_ROWS - 1, noise=0.0)
    more = smooth(rng, FEWEST_ROWS, noise=0.0)
    assert TensorMachineRegressor(random_state=0).fit(X, y).alpha_ == usual_alpha(len(X), 1, False)
    for settings in ({"solver": "lbfgs", "basis": "standard"}, {"alpha": "rows"}):
        model = TensorMachineRegressor(degree=1, random_state=0, **settings).fit(*more)
        assert model.alpha_ == usual_alpha(FEWEST_ROWS, 1, False)
    assert TensorMachineRegressor(alpha=0.1, random_state=0).fit(*more).alpha_ == 0.1


def test_a_warm_start_keeps_the_penalty_that_was_chosen(rng):
    X, y = smooth(rng, 400, noise=0.0)
    model = TensorMachineRegressor(random_state=0, warm_start=True, max_iter=5).fit(X, y)
    chosen = model.alpha_
    assert model.fit(X, y + 5 * rng.standard_normal(400)).alpha_ == chosen
    assert not hasattr(clone(model), "alpha_")


def test_files_keep_the_penalty(rng, tmp_path):
    X, y = smooth(rng, 100, noise=0.1)
    model = TensorMachineRegressor(random_state=0, max_iter=2).fit(X, y)
    model.save(tmp_path / "model.tm")
    assert load(tmp_path / "model.tm").alpha_ == model.alpha_


def test_a_gain_counts_if_it_is_larger_than_its_standard_error():
    before = with_losses(1.0, 1.0, 1.0, 1.0)
    assert with_losses(0.9, 0.8, 0.9, 0.8).clearly_below(before)
    assert not with_losses(0.9, 1.2, 0.9, 0.9).clearly_below(before)
    assert not with_losses(0.5, 0.5, 0.5, np.nan).clearly_below(before)
    assert not before.clearly_below(before)
