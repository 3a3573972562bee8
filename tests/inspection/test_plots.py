"""Pictures hold the numbers of `tensormachines.inspection`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from random_machines import LABELS, X, machine, y
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.inspection import bootstrap, effect, effect_band, explain_row, importance, part_importance

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from tensormachines import plots  # noqa: E402

pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def test_heat_map_has_the_shares_of_pairs():
    model = machine("standard", 3)
    ax = plots.interaction_heat_map(model, X, k=3)
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == list(importance(model, X).largest(3))
    shares = part_importance(model, X, columns=names)
    pixels = ax.images[0].get_array()
    key = tuple(sorted(names[:2]))
    assert pixels[0, 1] == pixels[1, 0] == pytest.approx(100 * shares[key])
    assert np.isnan(np.ma.filled(pixels, np.nan)[0, 0])
    texts = {text.get_position(): float(text.get_text()) for text in ax.texts}
    assert texts[1, 1] == pytest.approx(100 * shares[names[1],], abs=0.5)
    low, high = ax.images[0].get_clim()
    assert low == 0 < high


def test_heat_map_of_one_column():
    ax = plots.interaction_heat_map(machine("standard", 2, data=X[:, :1]), X[:, :1])
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.texts] == ["100"]


def test_bars_have_the_largest_shares():
    model = machine("standard", 3)
    ax = plots.term_importance(model, X, k=5)
    expected = part_importance(model, X).largest(5)
    drawn = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
    np.testing.assert_allclose(
        [drawn[place] for place in range(5)], [100 * share for share in expected.values()]
    )


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_curve_is_the_effect(make):
    model = machine("standard", 3)
    ax = plots.effect_curve(model, "x1", make(X))
    across, up = ax.lines[1].get_data()
    rows = np.tile(X[:1], (len(across), 1))
    rows[:, 1] = across
    np.testing.assert_allclose(up, effect(model, "x1", rows))
    assert X[:, 1].min() <= across[0] < across[-1] <= X[:, 1].max()
    assert ax.get_xlabel() == "x1"


def test_two_models_in_one_picture():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    frame.loc[3, "a"] = np.nan
    models = {f"rank {k}": machine("spline", 2, k, data=frame) for k in (1, 2)}
    ax = plt.subplots()[1]
    for (name, model), color in zip(models.items(), ("red", "blue"), strict=True):
        plots.effect_curve(model, "a", frame, label=name, color=color, points=False, ax=ax)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["rank 1", "rank 1: missing", "rank 2", "rank 2: missing"]
    curves = {line.get_label(): line for line in ax.lines}
    for (name, model), color in zip(models.items(), ("red", "blue"), strict=True):
        across, up = curves[name].get_data()
        np.testing.assert_allclose(up, effect(model, "a", pd.DataFrame({"a": across, "b": 0.0})))
        assert curves[name].get_color() == color
    assert all(line.get_marker() != "|" for line in ax.lines)
    assert any(line.get_marker() == "|" for line in plots.effect_curve(model, "a", frame).lines)
    assert not plots.effect_surface(model, (0, 1), frame, points=False).lines
    assert len(plots.effect_surface(model, (0, 1), frame).lines) == 1


def test_surface_is_the_effect_of_the_pair():
    model = machine("spline", 3)
    axes = plt.subplots()[1]
    assert plots.effect_surface(model, ("x3", 0), X, ax=axes) is axes
    rows = np.zeros((2, 4))
    grid = axes.collections[0].get_coordinates()
    middle = grid[:-1, :-1] / 2 + grid[1:, 1:] / 2
    rows[:, [3, 0]] = [middle[0, 0], middle[5, 40]]
    values = axes.collections[0].get_array()
    np.testing.assert_allclose(
        [values[0, 0], values[5, 40]], effect(model, (0, 3), rows), rtol=1e-9, atol=1e-12
    )
    with pytest.raises(ValueError, match="two different columns"):
        plots.effect_surface(model, (0, "x0"), X)


def test_categories_and_missing_values():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": np.where(X[:, 2] > 0, "yes", "no")})
    frame.loc[3, "a"] = np.nan
    model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(frame, y)
    ax = plots.effect_curve(model, "b", frame)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["no", "yes"]
    for level, bar in zip(["no", "yes"], ax.patches, strict=True):
        row = frame[frame["b"] == level][:1]
        assert bar.get_height() == pytest.approx(explain_row(model, row)["b",])
    ax = plots.effect_curve(model, "a", frame)
    missing = next(line for line in ax.lines if line.get_label() == "missing")
    assert missing.get_ydata()[0] == pytest.approx(explain_row(model, frame[3:4])["a",])
    plots.effect_surface(model, ("a", "b"), frame).figure.canvas.draw()


def test_jumps_are_marked(rng):
    frame = pd.DataFrame({"weight": rng.uniform(0, 30, 1500), "rooms": rng.integers(1, 9, 1500)})
    y = 4.0 * (frame["weight"] > 10) + 6.0 * (frame["weight"] > 20) + 3.0 * (frame["rooms"] > 4)
    model = TensorMachineRegressor(random_state=0).fit(frame, y + 0.2 * rng.standard_normal(1500))
    assert model.jumps_["weight"].tolist() == pytest.approx([10, 20], abs=0.1)
    assert model.jumps_["rooms"].tolist() == [4]

    def marks(ax):
        return [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]

    def legend(ax):
        return [] if ax.get_legend() is None else [text.get_text() for text in ax.get_legend().get_texts()]

    ax = plots.effect_curve(model, "weight", frame)
    assert marks(ax) == model.jumps_["weight"].tolist()
    assert legend(ax) == ["jumps above " + ", ".join(f"{each:.6g}" for each in model.jumps_["weight"])]
    assert not marks(plots.effect_curve(model, "weight", frame[frame["weight"] < 9]))  # not in the picture
    rooms = plots.effect_curve(model, "rooms", frame)  # bars at 0, 1, ... for 1, 2, ...
    assert (marks(rooms), legend(rooms)) == ([3.5], ["jumps above 4"])
    plain = plots.effect_curve(machine("spline", 2), 0, X)
    assert (marks(plain), legend(plain)) == ([], [])


def test_bands_are_those_of_inspection(rng):
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["no", "yes"], 90)})
    target = frame["a"] + (frame["b"] == "yes") + rng.normal(size=90)
    model = TensorMachineRegressor(degree=2, rank=2, max_iter=3, random_state=0).fit(frame, target)
    members = bootstrap(model, frame, target, n_members=3, random_state=0)
    ax = plots.effect_curve(model, "a", frame, members=members, coverage=0.5)
    (band,) = ax.collections
    ends = band.get_paths()[0].vertices
    across, up = ax.lines[1].get_data()
    rows = pd.DataFrame({"a": across[[0, 99]], "b": "no"})
    for place, (low, high) in zip((0, 99), effect_band(model, "a", rows, members, coverage=0.5), strict=True):
        drawn = ends[ends[:, 0] == across[place], 1]
        assert (drawn.min(), drawn.max()) == (pytest.approx(low), pytest.approx(high))
        assert low < up[place] < high
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["50 % band"]
    ax = plots.effect_curve(model, "b", frame, members=members)
    whiskers = ax.collections[0].get_segments()
    rows = pd.DataFrame({"a": 0.0, "b": ["no", "yes"]})
    for segment, ends in zip(whiskers, effect_band(model, "b", rows, members), strict=True):
        np.testing.assert_allclose(segment[:, 1], ends)
    with pytest.raises(ValueError, match="give what inspection"):
        plots.effect_curve(model, "b", frame, members=members[:1])


def test_classes():
    model = machine("standard", 2, target=LABELS, cls=TensorMachineClassifier)
    ax = plots.term_importance(model, X, output=2)
    assert max(bar.get_width() for bar in ax.patches) == pytest.approx(
        100 * max(part_importance(model, X, output=2).values())
    )
    with pytest.raises(ValueError, match="3 outputs"):
        plots.term_importance(model, X)


def test_training_curve_ends_at_the_error_of_the_model():
    estimator = TensorMachineRegressor(degree=2, rank=1, basis="standard", max_iter=4, random_state=0)
    if not hasattr(estimator, "set_callbacks"):
        with pytest.raises(RuntimeError, match=r"scikit-learn 1\.9"):
            plots.training_curve(estimator, X, y)
        return
    ax = plots.training_curve(estimator, X[:40], y[:40], X_test=X[40:], y_test=y[40:])
    model = estimator.fit(X[:40], y[:40])
    assert [len(line.get_xdata()) for line in ax.lines] == [model.n_iter_] * 2
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(1 - model.score(X[:40], y[:40]))
    assert ax.lines[1].get_ydata()[-1] == pytest.approx(1 - model.score(X[40:], y[40:]))


def test_loss_curves_are_those_of_the_model():
    settings = {"degree": 2, "rank": 1, "alpha": 1e-3, "basis": "standard", "max_iter": 6, "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    ax = plots.loss_curves(model)
    ax.figure.canvas.draw()
    drawn = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(drawn["training rows, with penalty"].get_ydata(), model.loss_curve_)
    np.testing.assert_array_equal(drawn["validation rows"].get_ydata(), model.validation_loss_curve_)
    np.testing.assert_array_equal(drawn["validation rows"].get_xdata(), np.arange(1, 7))
    best = int(np.argmin(model.validation_loss_curve_)) + 1
    assert drawn[f"lowest: iteration {best}"].get_xdata() == [best]
    ax = plots.loss_curves(model, label="A", color="red")
    assert [
        (line.get_label(), line.get_color()) for line in ax.lines if not line.get_label().startswith("_")
    ] == [
        ("A: training rows, with penalty", "red"),
        ("A: validation rows", "red"),
        (f"A: lowest: iteration {best}", "red"),
    ]
    assert len(plots.loss_curves(model.fit(X, y)).lines) == 1
    with pytest.raises(ValueError, match="has no loss_curve_: it comes from partial_fit"):
        plots.loss_curves(model.partial_fit(X, y))
    with pytest.raises(NotFittedError):
        plots.loss_curves(TensorMachineRegressor())


def test_error_against_rank():
    estimator = TensorMachineRegressor(degree=2, basis="standard", max_iter=3, random_state=0)
    ax = plots.error_against_rank(estimator, X, y, ranks=(1, 3), cv=2)
    halves = [(slice(0, 30), slice(30, 60)), (slice(30, 60), slice(0, 30))]
    expected = np.mean(
        [
            1 - estimator.set_params(rank=3).fit(X[own], y[own]).score(X[other], y[other])
            for own, other in halves
        ]
    )
    assert ax.lines[1].get_ydata()[1] == pytest.approx(expected)


def test_rows_of_unit_norm_have_no_curves():
    with pytest.raises(ValueError, match="divided by their norm"):
        plots.effect_curve(machine("unit"), "x0", X, reference=X)


def test_names_are_no_formulas():
    """Matplotlib reads what is between two dollar signs as TeX, and may not understand it."""
    frame = pd.DataFrame(
        {
            r"$\frac$": X[:, 0],
            "in US$, a $": np.round(X[:, 1]) + 2e7,
            "c": np.where(X[:, 2] > 0, "$5", "$6_$"),
        }
    )
    model = TensorMachineRegressor(degree=2, rank=1, max_iter=2, random_state=0).fit(frame, y)
    pictures = [
        plots.interaction_heat_map(model, frame),
        plots.term_importance(model, frame),
        plots.effect_curve(model, "c", frame),
    ]
    pictures += [plots.effect_surface(model, (1, 2), frame), plots.effect_curve(model, 0, frame)]
    for ax in pictures:
        ax.figure.canvas.draw()
    names = {label.get_text() for label in pictures[1].get_yticklabels()}
    assert {r"$\frac$", "in US$, a $"} < names
    assert r"$\frac$ × in US$, a $" in names  # noqa: RUF001
    years = [label.get_text() for label in pictures[3].get_xticklabels()]
    assert len(years) == len(set(years))


def test_booleans_are_called_false_and_true():
    frame = pd.DataFrame({"a": X[:, 0], "lift": X[:, 1] > 3})
    model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(frame, X[:, 0] * (X[:, 1] > 3))
    curve = plots.effect_curve(model, "lift", frame)
    assert [label.get_text() for label in curve.get_xticklabels()] == ["false", "true"]
    surface = plots.effect_surface(model, ("a", "lift"), frame)
    assert [label.get_text() for label in surface.get_yticklabels()] == ["false", "true"]


def test_levels_keep_their_places_where_all_that_are_drawn_are_booleans():
    flag = np.array([True, False, "N/A"] * 20, dtype=object)
    frame = pd.DataFrame({"flag": flag, "a": X[:60, 0]})
    model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(frame, (flag == "N/A") * 1.0)
    some = frame[[type(value) is bool for value in flag]]
    curve = plots.effect_curve(model, "flag", some)
    assert [label.get_text() for label in curve.get_xticklabels()] == ["False", "N/A", "True"]


def test_a_category_without_levels_has_no_curve():
    frame = pd.DataFrame({"a": X[:, 0], "empty": pd.Series([None] * len(X), dtype="str")})
    model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match="All values of column 'empty' are missing in X"):
        plots.effect_curve(model, "empty", frame)


def test_training_curve_of_several_quantiles_is_refused():
    estimator = TensorMachineRegressor(loss="quantile", quantile=[0.1, 0.9])
    if hasattr(estimator, "set_callbacks"):
        with pytest.raises(ValueError, match="give one level"):
            plots.training_curve(estimator, X, y)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_curves_and_surfaces_on_the_scale_of_the_target(loss, rng):
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["no", "yes"], 90)})
    target = pd.Series(rng.poisson(np.exp(frame["a"] + (frame["b"] == "yes"))), name="$ claims")
    model = TensorMachineRegressor(degree=2, rank=2, max_iter=3, loss=loss, random_state=0).fit(frame, target)
    members = bootstrap(model, frame, target, n_members=2, random_state=0)
    ax = plots.effect_curve(model, "a", frame, members=members, scale="target")
    base, curve = ax.lines[:2]
    across, up = curve.get_data()
    rows = pd.DataFrame({"a": across, "b": "no"})
    np.testing.assert_allclose(up, effect(model, "a", rows, scale="target"))
    constant = explain_row(model, frame[:1])[()]
    assert base.get_ydata()[0] == pytest.approx(np.exp(constant) if loss == "poisson" else constant)
    ends = effect_band(model, "a", rows, members, scale="target")
    drawn = ax.collections[0].get_paths()[0].vertices
    assert drawn[:, 1].min() == pytest.approx(ends.min())
    assert drawn[:, 1].max() == pytest.approx(ends.max())
    assert ax.get_ylabel() == "$ claims"
    bars = plots.effect_curve(model, "b", frame, members=members, scale="target")
    tops = [bar.get_y() + bar.get_height() for bar in bars.patches]
    levels = pd.DataFrame({"a": 0.0, "b": ["no", "yes"]})
    np.testing.assert_allclose(tops, effect(model, "b", levels, scale="target"))
    whiskers = [segment[:, 1] for segment in bars.collections[0].get_segments()]
    np.testing.assert_allclose(whiskers, effect_band(model, "b", levels, members, scale="target"))
    surface = plots.effect_surface(model, ("a", "b"), frame, scale="target").collections[0]
    middle = sum(surface.get_clim()) / 2
    assert middle == pytest.approx(base.get_ydata()[0])
    label = {"squared_error": "change of $ claims", "poisson": "change of log of $ claims"}[loss]
    assert plots.effect_curve(model, "a", frame).get_ylabel() == label
