"""Options of fit and tune: weights, streams, rows held out and progress, as they are typed."""

import io
import re
import sys

import numpy as np
import pytest

from commands import QUICK, QUICKLY, error_of, run, write
from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV, blocks, load
from tensormachines._data.row_assignment import held_out
from tensormachines.cli.fit import choice_in_words
from tensormachines.datasets.flats import flats

pd = pytest.importorskip("pandas")


def test_weights_rows_without_target_and_wishes(here, capsys):
    table = pd.read_csv("flats.csv").head(60)
    table["weight"] = np.arange(60) % 3
    table.loc[[3, 50], "rent"] = np.nan
    table.loc[3, "weight"] = np.nan  # of a row that is left out
    table.to_csv("weighted.csv", index=False)
    command = [
        "fit",
        "weighted.csv",
        "--target",
        "rent",
        "--weight",
        "weight",
        "--columns",
        "size",
        "floor",
        "--category",
        "floor",
        *QUICK,
    ]
    assert run(*command, "-o", "weighted.tm") == 0
    assert "left out: 2 rows without a target" in capsys.readouterr().err
    full = table.dropna(subset="rent")
    X = full[["size", "floor"]].assign(floor=full["floor"].astype(str))
    expected = TensorMachineRegressor(**QUICKLY).fit(X, full["rent"], sample_weight=full["weight"])
    np.testing.assert_allclose(load("weighted.tm").predict(X), expected.predict(X), rtol=1e-9)


def test_what_was_read_is_shown(here, capsys):
    run("fit", "flats.csv", "--target", "rent", *QUICK, "-o", "shown.tm")
    shown = capsys.readouterr()
    lines = {line.split()[0]: line for line in shown.err.splitlines() if line}
    assert "6 levels" in lines["district"]
    assert "boolean" in lines["balcony"]
    assert "--ignore id" in shown.err
    assert "target: rent, regression" in shown.err
    assert "TensorMachineRegressor of 400 rows, degree 2, rank 2" in shown.out
    run("fit", "flats.csv", "--target", "lift", "--columns", "size", *QUICK, "-o", "shown.tm")
    assert "target: lift, classification, 2 classes" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_streamed_fit_is_that_in_memory(here, capsys, suffix):
    """With more entries than are sorted and merged in memory."""
    write("many.csv", flats(9000, 3))
    table = pd.read_csv("many.csv")
    table.loc[[3, 5000], "rent"] = np.nan
    table["pets"] = (table["rent"] > 700).astype(int)
    table["floor"] = [*table["floor"][:-50].astype(str), *["attic"] * 50]
    table["weight"] = np.arange(9000) % 30
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet("many.parquet")
    else:
        table.to_csv("many.csv", index=False)
    for target, task in (("rent", "regression"), ("pets", "classification"), ("district", "classification")):
        command = ["fit", f"many{suffix}", "--target", target, "--ignore", "id", "pets", "--weight", "weight"]
        # With a given penalty: a race would also try a trend, which only rows in memory have.
        command = [*command, "--degree", "2", "--rank", "2", "--alpha", "0.001", "--max-iter", "1"]
        capsys.readouterr()
        assert run(*command, "-o", "memory.tm") == 0
        in_memory = capsys.readouterr()
        assert run(*command, "--stream", "-o", "stream.tm") == 0
        streamed = capsys.readouterr()
        assert streamed.err == in_memory.err
        assert f"target: {target}, {task}" in streamed.err
        assert ("left out: 2 rows without a target" in streamed.err) == (target == "rent")
        assert streamed.out.split(";")[0] == in_memory.out.split(";")[0].replace("memory.tm", "stream.tm")
        expected, model = load("memory.tm"), load("stream.tm")
        assert model._columns == expected._columns
        assert model.target_name_ == target
        X = table[list(model.feature_names_in_)][:200]
        if task == "classification":
            assert model.classes_.tolist() == expected.classes_.tolist()
            assert model.classes_.dtype == expected.classes_.dtype
            np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)
        else:  # fitted in float32, with sums in another order
            np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-6)


def test_rows_held_out_of_a_stream_are_not_fitted(here, capsys):
    write("many.csv", flats(3000, 3))
    command = ["fit", "many.csv", "--target", "rent", "--ignore", "id", "--stream", *QUICK]
    assert run(*command, "--holdout", "0.25", "-o", "part.tm") == 0
    shown = capsys.readouterr().out
    fitted, held = (
        int(re.search(text, shown)[1].replace(",", "")) for text in (r"of ([\d,]+) rows", r"([\d,]+) held")
    )
    assert fitted + held == 3000
    assert 650 < held < 850
    mask = held_out(0, 3000, 0.25, 0)
    assert mask.sum() == held
    table = pd.read_csv("many.csv").drop(columns="id")
    expected = TensorMachineRegressor(**QUICKLY).fit(
        blocks.iterable([(table[~mask].drop(columns="rent"), table["rent"][~mask])])
    )
    found = load("part.tm").predict(table.drop(columns="rent"))
    np.testing.assert_allclose(found, expected.predict(table.drop(columns="rent")), rtol=1e-9)
    assert run(*command, "--test", "new.csv", "-o", "part.tm") == 0
    assert "100 rows of new.csv" in capsys.readouterr().out


@pytest.mark.parametrize("how", [[], ["--stream"]])
def test_errors_name_the_row_of_the_file_after_rows_without_target(here, capsys, how):
    lines = [f"{k % 7},{'' if k == 3 else k % 5},{-1 if k == 10 else 1}" for k in range(1, 40)]
    (here / "table.csv").write_text("\n".join(["a,y,w", *lines]), encoding="utf-8")
    message = error_of(capsys, "fit", "table.csv", "--target", "y", "--weight", "w", "-o", "model.tm", *how)
    assert "data row 10 (counting from 1)" in message


def test_what_a_stream_refuses(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n1,2\n2,3\n")))
    assert "standard input can be read once only" in error_of(
        capsys, "fit", "-", "--target", "y", "--stream", "-o", "a.tm"
    )
    write("names.csv", {"x": range(30_000), "name": [f"name {k}" for k in range(30_000)]})
    message = error_of(capsys, "fit", "names.csv", "--target", "name", "--stream", "-o", "a.tm")
    assert "has more than 10,000 different values in 30,000 rows, too many to be classes" in message
    (here / "header.csv").write_text("x,y\n")
    assert "has a header, but no rows" in error_of(
        capsys, "fit", "header.csv", "--target", "y", "--stream", "-o", "a.tm"
    )


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_a_target_that_is_nearly_a_number_is_noted(here, capsys):
    write("stars.csv", {"x": range(60), "stars": ["1", "2", "3", "4", "5", "none"] * 10})
    assert run("fit", "stars.csv", "--target", "stars", *QUICK, "-o", "stars.tm") == 0
    assert (
        "note: stars looks like numbers, except for 'none': correct or clear such cells"
        in capsys.readouterr().err
    )


def test_progress_is_one_line_that_goes_away(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert run("fit", "flats.csv", "--target", "rent", "--ignore", "id", *QUICK, "-o", "watched.tm") == 0
    assert run("predict", "watched.tm", "new.csv", "-o", "watched.csv") == 0
    shown = terminal.getvalue()
    assert "\r\x1b[Kiteration 1: objective " in shown
    assert "100 rows\r\x1b[K" in shown
    assert shown.endswith("\r\x1b[K")
    assert "iteration" not in capsys.readouterr().out
    assert (here / "watched.tm").read_bytes() == (here / "rent.tm").read_bytes()


def test_held_out_rows_are_not_fitted(here, capsys):
    command = ["fit", "flats.csv", "--target", "rent", "--ignore", "id", *QUICK]
    assert run(*command, "--holdout", "0.25", "-o", "part.tm") == 0
    assert "of 300 rows" in (shown := capsys.readouterr().out)
    assert "100 held-out rows:" in shown
    assert run(*command, "--test", "new.csv", "-o", "all.tm") == 0
    tested = capsys.readouterr().out.splitlines()[1:]
    assert run("evaluate", "rent.tm", "new.csv") == 0
    assert capsys.readouterr().out.splitlines() == tested


def test_tune(here, capsys):
    table = pd.read_csv("flats.csv").head(80)[["size", "floor", "rent"]]
    table.to_csv("few.csv", index=False)
    command = [
        "tune",
        "few.csv",
        "--target",
        "rent",
        "--degrees",
        "1",
        "2",
        "--ranks",
        "2",
        "--cv",
        "2",
        "--members",
        "1",
    ]
    assert run(*command, "--time-budget", "2", "-o", "tuned.tm") == 0
    model = load("tuned.tm")
    assert model.target_name_ == model.best_estimator_.target_name_ == "rent"
    assert model.best_params_["degree"] in (1, 2)
    assert f"degree {model.best_params_['degree']}" in capsys.readouterr().out
    assert run("predict", "tuned.tm", "few.csv") == 0


def test_tune_tells_whose_mean_the_model_is():
    settings = {"basis": "auto", "roughness": 3.0, "relevance": 2, "trend": False, "degree": 2, "rank": 10}
    settings |= {"alpha": 1e-4, "max_iter": 10, "jumps": True}
    in_words = "rank 10, alpha 0.0001, trend no, jumps yes, basis auto, roughness 3, relevance 2, max_iter 10"
    search = TensorMachineRegressorCV()
    search.cv_results_, search.best_estimator_ = {"params": [{}] * 21}, TensorMachineRegressor(n_members=1)
    search.members_ = [{**settings, "weight": 1.0}]
    assert choice_in_words(search) == f"chosen among 21 fits: degree 2, {in_words}"
    search.best_estimator_.n_members = 3
    starts = "mean of 3 models that differ in their starts"
    assert choice_in_words(search) == f"{starts}, chosen among 21 fits: degree 2, {in_words}"
    search.members_ = [{**settings, "weight": 0.6}, {**settings, "degree": 3, "weight": 0.2}]  # add up to 0.8
    assert choice_in_words(search).splitlines() == [
        "mean of 2 models, chosen among 21 fits:",
        f"   75%  degree 2, {in_words}",
        f"   25%  degree 3, {in_words}",
    ]


@pytest.mark.parametrize(("given", "expected"), [([], "auto"), (["yes"], True), (["no"], False)])
def test_jumps_and_trend_are_options_of_a_fit(tmp_path, capsys, given, expected):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.uniform(size=(600, 2)), columns=["a", "b"])
    frame["y"] = 2.0 * (frame["a"] > 0.4) + frame["b"] + 0.1 * random.standard_normal(600)
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = [each for name in ("--jumps", "--trend") for each in ((name, *given) if given else ())]
    assert run("fit", tmp_path / "t.csv", "--target", "y", *options, "-o", tmp_path / "m.tm") == 0
    model = load(tmp_path / "m.tm")
    assert (model.jumps, model.trend) == (expected, expected)
    assert ("a" in model.jumps_) == (expected is not False)
    assert ("jumps at a > 0.4" in capsys.readouterr().out) == (expected is not False)
