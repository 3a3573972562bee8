"""The report in a real browser: the page computes what the model predicts."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from chromium import chromium
from exported_models import (
    AFFINE,
    TASKS,
    model_with_empty_terms,
    number_rows,
    numbers_model,
    strange_table,
    table,
    table_model,
    targets,
)
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.inspection import bootstrap, contributions, effect, effect_band
from tensormachines.report import html_report

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.browser
N_ROWS = 100
HOSTILE_TITLE = "</script><script>alert(1)</script>&<b>"


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens a report, and checks in the end that there was no message, no error, and no request but for the
    file itself.
    """
    heard, pages = [], []

    def opened(report, width=1300, scheme="light"):
        path = tmp_path / f"report{len(pages)}.html"
        path.write_text(report, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        pages.append(page)
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("dialog", lambda dialog: heard.append(dialog.message))
        page.on("request", lambda request: request.url == path.as_uri() or heard.append(request.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for page in pages:
        page.close()
    assert heard == []


@cache
def report_of(task, basis="spline"):
    """Return the page of a model of a table (splines), or of an array of numbers."""
    if basis == "spline":
        model, rows = table_model(task), table(N_ROWS, seed=6)
        z = rows["plain"].to_numpy()
    else:
        model, rows = numbers_model(task, basis), number_rows(N_ROWS, reach=10.0)
        z = rows[:, 0]
    y = targets(z)[task]
    return model, html_report(
        model, rows, y, X_train=rows, y_train=y, target=HOSTILE_TITLE, title=HOSTILE_TITLE
    )


def as_json(rows):
    """NaN as null, and 1e300 with all its digits."""
    values = rows.to_numpy(dtype=object).tolist() if isinstance(rows, pd.DataFrame) else rows.tolist()
    return [[None if value is None or value != value else value for value in row] for row in values]


def outputs(model, rows):
    found = model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)
    return np.asarray(found).reshape(len(rows), -1)


@pytest.mark.parametrize("basis", ["spline", *AFFINE])
@pytest.mark.parametrize("task", TASKS)
def test_page_predicts_what_the_model_predicts(open_page, task, basis):
    model, report = report_of(task, basis)
    rows = strange_table(N_ROWS) if basis == "spline" else number_rows(N_ROWS)
    page = open_page(report)
    found = page.evaluate("rows => rows.map(row => tensormachine.outputs(row))", as_json(rows))
    np.testing.assert_allclose(found, outputs(model, rows), rtol=1e-9, atol=1e-9)
    if task in ("binary", "multiclass"):
        likely = page.evaluate("rows => rows.map(row => tensormachine.probabilities(row))", as_json(rows))
        np.testing.assert_allclose(likely, model.predict_proba(rows), rtol=1e-7, atol=1e-9)
        predicted = page.evaluate("rows => rows.map(row => tensormachine.predict(row))", as_json(rows))
        assert predicted == [str(label) for label in model.predict(rows).tolist()]


@pytest.mark.parametrize("task", ["log", "logs"])
def test_page_shows_predictions_of_a_log_link(open_page, task):
    model, report = report_of(task)
    rows, page = strange_table(N_ROWS), open_page(report)
    found = page.evaluate("rows => rows.map(row => tensormachine.predict(row))", as_json(rows))
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-9)
    logarithm = json.loads(page.get_attribute("#prediction", "data-outputs"))[0]
    assert float(page.inner_text("#prediction")) == pytest.approx(np.exp(logarithm), rel=1e-3)
    assert "log of the prediction" in page.inner_text("#parts")


def test_page_shows_quantiles_in_order(open_page):
    model, report = report_of("quantiles")
    rows, page = strange_table(N_ROWS), open_page(report)
    found = page.evaluate("rows => rows.map(row => tensormachine.predict(row))", as_json(rows))
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-9)
    page.select_option("#outputs", "3")
    largest = max(json.loads(page.get_attribute("#prediction", "data-outputs")))
    shown = page.inner_text("#prediction")
    assert float(shown.replace(",", "").replace("\N{MINUS SIGN}", "-")) == pytest.approx(largest, rel=1e-3)
    assert page.inner_text("#prediction-note").endswith(f" · {shown}")
    assert "before sorting" in page.inner_text("#parts")


def test_page_shows_several_labels(open_page):
    model, report = report_of("labels")
    rows, page = strange_table(N_ROWS), open_page(report)
    likely = page.evaluate("rows => rows.map(row => tensormachine.probabilities(row))", as_json(rows))
    np.testing.assert_allclose(likely, model.predict_proba(rows), rtol=1e-7, atol=1e-9)
    predicted = page.evaluate("rows => rows.map(row => tensormachine.predict(row))", as_json(rows))
    np.testing.assert_array_equal(predicted, model.predict(rows))
    page.select_option("#outputs", "2")
    z = json.loads(page.get_attribute("#prediction", "data-outputs"))
    bars = page.locator("#probabilities .value").all_inner_texts()
    assert len(bars) == 3
    shown = page.inner_text("#prediction")
    assert shown == bars[2]
    assert float(shown.removesuffix("%")) == pytest.approx(100 / (1 + np.exp(-z[2])), abs=0.6)
    assert page.inner_text("#prediction-note").startswith(f"probability of {HOSTILE_TITLE} 2")
    assert "log-odds" in page.inner_text("#parts")


def test_page_without_empty_terms(open_page):
    model, rows = model_with_empty_terms(), number_rows(N_ROWS, reach=10.0)
    page = open_page(html_report(model, rows, model.predict(rows)))
    np.testing.assert_allclose(
        page.evaluate("rows => rows.map(row => tensormachine.outputs(row))", rows.tolist()),
        outputs(model, rows),
        rtol=1e-9,
    )


def test_inputs_of_the_page_reach_the_model(open_page):
    """As a user does: menus, fields and check marks, one after another."""
    model, report = report_of("single")
    page = open_page(report)
    names = list(model.feature_names_in_)
    for row in range(5):
        values = table(N_ROWS, seed=7)[row : row + 1]
        for column, name in enumerate(names):
            value = values[name].iloc[0]
            box = page.locator(f".input:has(#input-{column})")
            if box.count() == 0:
                continue
            if box.locator("select").count():
                box.locator("select").select_option(
                    label="missing" if value is None else "other levels" if value == "rare" else value
                )
            elif value != value:
                box.locator("[type=checkbox]").check()
            else:
                box.locator("[type=number]").fill(repr(float(value)))
        shown = json.loads(page.locator("#prediction").get_attribute("data-outputs"))
        np.testing.assert_allclose(shown, outputs(model, values)[0], rtol=1e-9)
        assert page.locator("#example").input_value() == "own"


def test_sliders_and_examples(open_page):
    model, report = report_of("several", "standard")
    page = open_page(report)
    page.locator("#example").select_option("3")
    number = page.evaluate("report.example_numbers[3]") - 1
    row = number_rows(N_ROWS, reach=10.0)[number]
    assert json.loads(page.locator("#prediction").get_attribute("data-outputs")) == pytest.approx(
        outputs(model, row[None])[0], rel=1e-9
    )
    page.locator("#input-0").focus()
    for key in ("Home", "ArrowRight"):
        page.keyboard.press(key)
    row[0] = float(page.locator("#input-0").input_value())
    assert row[0] > float(page.locator("#input-0").get_attribute("min"))
    assert json.loads(page.locator("#prediction").get_attribute("data-outputs")) == pytest.approx(
        outputs(model, row[None])[0], rel=1e-9
    )
    page.locator("#outputs").select_option("1")
    total = page.locator("#parts tr").last.locator("td.value").inner_text()
    assert float(total.replace("\N{MINUS SIGN}", "-").replace(",", "")) == pytest.approx(
        outputs(model, row[None])[0, 1], rel=1e-3
    )


@pytest.mark.parametrize("basis", ["spline", "standard", "sphere"])
def test_parts_are_those_of_inspection_and_add_up(open_page, basis):
    model, report = report_of("single", basis)
    page = open_page(report)
    data = table(N_ROWS, seed=6) if basis == "spline" else number_rows(N_ROWS, reach=10.0)
    rows = data[:5]
    expected = contributions(model, rows, order=2, reference=data if basis == "sphere" else None)
    split = "row => model.split(model.encode(row), splitColumns, 0)"
    for i, row in enumerate(as_json(rows)):
        found = page.evaluate(split, row)
        names = page.evaluate("model.partNames")
        assert found["constant"] == pytest.approx(expected.values[i, 0], rel=1e-9)
        for part in found["parts"]:
            assert part["value"] == pytest.approx(
                expected[tuple(names[j] for j in part["columns"])][i], rel=1e-7, abs=1e-9
            )
        whole = found["constant"] + found["rest"] + sum(part["value"] for part in found["parts"])
        assert whole == pytest.approx(outputs(model, rows)[i, 0], rel=1e-9)
    shown = page.locator("#parts tr").first
    assert shown.locator("th").inner_text() == ("average of these rows" if basis == "sphere" else "average")
    average = float(shown.locator("td.value").inner_text().replace("\N{MINUS SIGN}", "-").replace(",", ""))
    assert average == pytest.approx(expected.values[0, 0], rel=1e-3)
    if basis != "sphere":
        assert average == pytest.approx(model._mean_outputs[0], rel=1e-3)
    assert "at their means" not in page.locator("#parts").inner_text()


def test_what_matters_is_chosen_by_keyboard(open_page):
    _, report = report_of("binary")
    page = open_page(report)
    buttons = page.locator("#importance button")
    assert buttons.first.get_attribute("aria-pressed") == "true"
    pair = page.locator("#pairs button").first
    pair.focus()
    page.keyboard.press("Enter")
    assert pair.get_attribute("aria-pressed") == "true"
    assert buttons.first.get_attribute("aria-pressed") == "false"
    assert page.locator("#effect-title").inner_text() == pair.locator(".name").inner_text()
    assert "interaction, from" in page.locator("#effect svg").get_attribute("aria-label")


def test_jumps_are_marked(open_page):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"weight": random.uniform(0, 30, 1000)})
    y = 4.0 * (table["weight"] > 10) + 6.0 * (table["weight"] > 20) + 0.1 * random.standard_normal(1000)
    model = TensorMachineRegressor(random_state=0).fit(table, y)
    page = open_page(html_report(model, table, y))
    low, high = (f"{threshold:.6g}" for threshold in model.jumps_["weight"])
    assert f"Dotted lines: jumps above {low}, {high}." in page.inner_text("#effect-note")
    assert page.locator("#effect line.jump").count() == 2


def test_effects_on_a_logarithm_are_told_as_factors(open_page):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"size": random.uniform(-1, 1, 200)})
    claims = pd.Series(random.poisson(np.exp(1 + table["size"])), name="claims")
    model = TensorMachineRegressor(loss="poisson", degree=1, basis="standard", random_state=0)
    model.fit(table, claims)
    page = open_page(html_report(model, table, claims))
    assert "to the logarithm of the prediction" in page.inner_text("caption")
    low, high = page.evaluate("[input.get(0).low, input.get(0).high]")
    ends = np.exp(effect(model, "size", pd.DataFrame({"size": [low, high]})))
    told = page.inner_text("#effect-note").split("The prediction is multiplied by ")[1].rstrip(".")
    assert [float(each) for each in told.split(" to ")] == pytest.approx(ends.tolist(), rel=1e-3)


def test_bands_are_drawn_around_effects(open_page):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"size": random.normal(size=90), "zone": random.choice(["A", "B"], 90)})
    y = 3 * table["size"] + (table["zone"] == "A") + random.normal(size=90)
    model = TensorMachineRegressor(degree=2, rank=2, max_iter=3, random_state=0).fit(table, y)
    members = bootstrap(model, table, y, n_members=3, random_state=0)
    page = open_page(html_report(model, table, y, members=members))
    assert "come from 3 models" in page.inner_text("#importance")
    assert "Shaded: the band" in page.inner_text("#effect-note")
    assert page.locator("#effect polygon.band").count() == 1
    low, high = page.evaluate("[input.get(0).low, input.get(0).high]")
    values = low + (high - low) * np.array([0, 10, 63]) / 63  # three of the points
    found = page.evaluate("values => values.map(value => halfWidth(input.get(0), value))", values.tolist())
    ends = effect_band(model, "size", pd.DataFrame({"size": values, "zone": "A"}), members)
    np.testing.assert_allclose(found, np.diff(ends, axis=1)[:, 0] / 2, rtol=1e-3)
    page.locator("#columns button", has_text="zone").click()
    assert page.locator("#effect line.spread").count() == 2
    assert "Whiskers" in page.inner_text("#effect-note")


def test_effect_is_the_part_of_the_column(open_page):
    """The curve goes through what `contributions` finds."""
    model, report = report_of("single", "standard")
    page = open_page(report)
    data = number_rows(N_ROWS, reach=10.0)
    values = np.linspace(-1, 1, 5)
    rows = np.tile(data[0], (5, 1))
    rows[:, 0] = values
    found = page.evaluate("values => effects([0], values.map(value => [value]))", values.tolist())
    np.testing.assert_allclose(found, contributions(model, rows, order=1)["x0"], rtol=1e-9)


def test_numbers_are_shown_with_the_digits_that_tell_them_apart(open_page):
    page = open_page(report_of("single", "standard")[1])
    texts = page.evaluate(
        """[[1995, 2024], [0.001, 0.0014], [1e12, 1e12 + 30]].map(
            ([low, high]) => marksOf({low, high}, 3).map(mark => mark.text))"""
    )
    assert texts[0] == ["2000", "2010", "2020"]
    assert texts[1] == ["0.001", "0.0012", "0.0014"]
    assert texts[2] == ["1e+12", "1.00000000001e+12", "1.00000000002e+12", "1.00000000003e+12"]
    assert page.evaluate("marksOf({low: 2001, high: 2009}, 4).map(mark => mark.text)") == [
        "2002",
        "2004",
        "2006",
        "2008",
    ]
    assert page.evaluate("marksOf({low: 2023, high: 2023}, 4).map(mark => mark.text)") == ["2023"]
    # Steps that are lost in rounding: an axis of them would have marks without end.
    assert page.evaluate("ticks({low: 1e16, high: 1e16 + 4}, 4)") == [1e16]
    assert page.evaluate("ends([2000, 2000 + 2 ** -42])") == pytest.approx({"low": 0, "high": 4000})
    shown = page.evaluate(
        "[20231231, -1.43638e-10, 999972000000.5, -12345678901, 1 / 3].map(value => String(inShort(value)))"
    )
    assert shown == ["20231231", "-1.43638e-10", "999972000000", "-12345678901", "0.333333"]
    assert [float(text) for text in shown] == pytest.approx(
        [20231231, -1.43638e-10, 999972000000.5, -12345678901, 1 / 3], rel=1e-5
    )
    beside = page.evaluate(
        """[[1998.456, 0.35], [1998.456, 350], [-0.5, 1e-20], [123456.7, 12]].map(
            ([z, part]) => formatBeside(z, part))"""
    )
    assert beside == ["1998.456", "1998", "\N{MINUS SIGN}0.5", "123,456.7"]


def test_numbers_fit_into_their_fields(open_page):
    """A column of 0 and 1 with a 2 among many has no menu, in which there would be no 2."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "tiny": -1e-10 * (1 + rng.random(300)),
            "large": -1e10 * (1 + rng.random(300)),
            "flag": rng.integers(0, 2, 300),
        }
    )
    rows.loc[7, "flag"] = 2
    model = TensorMachineRegressor(degree=1, basis="standard", random_state=0).fit(rows, rows["flag"])
    for width in (360, 1300):
        page = open_page(html_report(model, rows, rows["flag"]), width)
        fields = page.locator("#inputs [type=number]")
        assert fields.count() == 3
        assert fields.evaluate_all("fields => fields.every(field => field.scrollWidth <= field.clientWidth)")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("#errors .table").evaluate("place => place.scrollWidth <= place.clientWidth")


def test_booleans_are_shown_as_true_and_false(open_page):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"lift": rng.random(200) < 0.5, "size": rng.random(200)})
    y = 5.0 * rows["lift"] + rows["size"]
    model = TensorMachineRegressor(degree=1, random_state=0).fit(rows, y)
    page = open_page(html_report(model, rows, y))
    menu = page.locator("#input-0 option")
    assert menu.all_inner_texts() == ["false", "true"]
    page.locator("#input-0").select_option("true")
    shown = json.loads(page.locator("#prediction").get_attribute("data-outputs"))
    row = pd.DataFrame({"lift": [True], "size": [page.evaluate("state.row[1]")]})
    assert shown == pytest.approx(model.predict(row), rel=1e-9)
    page.locator("#columns button").first.click()
    assert page.locator("#effect-title").inner_text() == "lift"
    assert page.locator("#effect text.tick").all_text_contents()[-4::2] == ["false", "true"]
    assert page.evaluate("tensormachine.outputs({lift: true, size: 0.5})") == page.evaluate(
        "tensormachine.outputs([1, 0.5])"
    )


def test_marks_of_an_axis_are_not_cut_off(open_page):
    page = open_page(report_of("single", "standard")[1], 360)
    draw = """svg => {
        svg.replaceChildren();
        const x = {low: 20000000, high: 20200000}, y = {low: 0, high: 1};
        axes(svg, svg.clientWidth, 340, {x, y, xLabel: "", yLabel: ""});
        const boxes = [...svg.querySelectorAll("text.tick")].map(text => text.getBBox());
        return boxes.every(box => box.x + box.width <= svg.clientWidth);
    }"""
    assert page.locator("#effect svg").evaluate(draw)


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (360, "light"), (1600, "dark")])
@pytest.mark.parametrize("task", ["single", "multiclass"])
def test_page_fits_its_window(open_page, task, width, scheme):
    page = open_page(report_of(task)[1], width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for chart in page.locator(".chart svg").all():
        box = chart.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    paper, ink = page.evaluate(
        "(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))"
    )
    assert (_luminance(paper) < _luminance(ink)) == (scheme == "dark")
    quiet = page.evaluate("getComputedStyle(document.querySelector('figcaption')).color")
    assert _contrast(paper, ink) > 7
    assert _contrast(paper, quiet) > 4.5


def _luminance(color):
    channels = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def _contrast(a, b):
    low, high = sorted([_luminance(a), _luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("task", ["single", "multiclass"])
def test_screen_readers_find_names(open_page, task):
    page = open_page(report_of(task)[1])
    nameless = """[...document.querySelectorAll("input, select, button, svg, [role=region]")].filter(
        found => !(found.labels && found.labels.length)
            && !found.getAttribute("aria-label") && !found.textContent.trim()).length"""
    assert page.evaluate(nameless) == 0
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map(heading => Number(heading.tagName[1]))"
    )
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
    assert page.locator("#prediction").get_attribute("aria-live") == "polite"
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(found => found.id)")
    assert len(set(ids)) == len(ids)


def test_markup_in_names_stays_text(open_page):
    page = open_page(report_of("single")[1])
    assert page.title() == HOSTILE_TITLE
    assert page.locator("h1").inner_text() == HOSTILE_TITLE
    assert page.locator(".lead strong").inner_text() == HOSTILE_TITLE


def test_markup_in_columns_levels_and_classes_stays_text(open_page, rng):
    names = [f"<img src=x onerror=alert({number})>" for number in range(2)]
    levels = np.where(rng.random(N_ROWS) < 0.5, HOSTILE_TITLE, "<i>plain</i>")
    rows = pd.DataFrame({names[0]: rng.standard_normal(N_ROWS), names[1]: levels})
    y = np.where(rows[names[0]] + (levels == HOSTILE_TITLE) > 0.5, HOSTILE_TITLE, "<u>no</u>")
    model = TensorMachineClassifier(degree=2, rank=2, max_iter=5, random_state=0).fit(rows, y)
    page = open_page(html_report(model, rows, y))
    assert page.locator("img, i:text('plain'), u:text('no')").count() == 0
    shown = page.evaluate("document.body.textContent")
    for text in (*names, HOSTILE_TITLE, "<i>plain</i>", "<u>no</u>"):
        assert text in shown


def test_a_notebook_shows_the_page_in_a_frame(browser, tmp_path):
    _, report = report_of("single")
    assert repr(report).startswith("<page of ")
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><b>cell</b>{report._repr_html_()}", encoding="utf-8")
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    frame = page.frame_locator("iframe")
    assert frame.locator("h1").inner_text() == HOSTILE_TITLE
    assert frame.locator("#prediction").inner_text()
    page.close()
    assert errors == []


def test_many_columns(open_page):
    """The page has inputs for those that matter most; the others stay as they are in the row."""
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 60))
    y = X[:, 50] * X[:, 3] + X[:, 7]
    model = TensorMachineRegressor(
        degree=2, rank=2, basis="standard", solver="lbfgs", max_iter=20, random_state=0
    )
    with pytest.warns(match="stopped at max_iter"):
        model.fit(X, y)
    page = open_page(html_report(model, X, y))
    assert page.locator(".input").count() == 40
    assert "20 others keep their values" in page.locator("#try > p").first.inner_text()
    found = page.evaluate("rows => rows.map(row => tensormachine.outputs(row)[0])", X[:20].tolist())
    np.testing.assert_allclose(found, model.predict(X[:20]), rtol=1e-9)


def test_dates_are_dates(open_page, rng):
    """The day has a field for dates and a marked axis, and the other numbers of a date follow it."""
    when = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 24 * 900, 600), unit="h")
    rows = pd.DataFrame({"area": rng.gamma(8, 9, 600), "when": when})
    y = (
        rows["area"]
        + 20 * (rows["when"].dt.day_of_week > 4)
        + 0.1 * (rows["when"] - rows["when"].min()).dt.days
    )
    model = TensorMachineRegressor(random_state=0).fit(rows, y)
    page = open_page(html_report(model, rows, y))
    assert "from 2 columns" in page.inner_text("body")
    day = page.locator("#inputs input[type=date]")
    typical = pd.Timestamp(day.input_value())
    assert page.evaluate("state.row[3]") == typical.isoweekday()
    day.fill("2023-06-03")
    _, days, year, weekday, hour = page.evaluate("state.row")
    assert (days // 1, weekday) == (19511, 6)
    assert year == pytest.approx(6 + 2 / 31)
    date = pd.Timestamp("2023-06-03") + pd.Timedelta(hours=hour)
    expected = model.predict(pd.DataFrame({"area": [page.evaluate("state.row[0]")], "when": [date]}))
    np.testing.assert_allclose(page.evaluate("model.outputs(state.row)"), expected)
    page.locator("#importance button", has_text="when: days").first.click()
    assert any(text.startswith("2023-") for text in page.locator("#effect text").all_text_contents())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("{plian: 1}", 'there is no column "plian"'),
        ("{plain: 'much'}", '"plain" holds numbers'),
        ("", "expected {name: value}"),
    ],
)
def test_mistakes_in_the_console_are_errors(open_page, values, message):
    page = open_page(report_of("single")[1])
    with pytest.raises(Exception, match=message):
        page.evaluate(f"tensormachine.predict({values})")
