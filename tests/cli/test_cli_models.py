"""fit, tune, predict, evaluate, explain, export and demo, as they are typed; the estimators in Python are the
truth.
"""

import gzip
import io
import json
import re
import sys

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score, root_mean_squared_error

from commands import QUICK, QUICKLY, error_of, fitted_flats, frame, run, write
from tensormachines import (
    TensorMachineClassifier,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
    load,
)
from tensormachines._data.files import csv
from tensormachines._data.row_assignment import held_out
from tensormachines.cli.fit import choice_in_words
from tensormachines.datasets.flats import flats
from tensormachines.inspection import formula

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fitted_flats(tmp_path_factory.mktemp("flats"))


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


# ---- fit and predict


@pytest.mark.parametrize("target", ["rent", "balcony", "district"])
def test_models_are_those_of_the_estimators(here, target):
    table, new = frame("flats.csv"), frame("new.csv")
    y = table[target] if target == "rent" else table[target].astype(str)
    estimator = TensorMachineRegressor if target == "rent" else TensorMachineClassifier
    expected = estimator(**QUICKLY).fit(table.drop(columns=target), y)
    found = load(f"{target}.tm")
    assert found.target_name_ == target
    assert list(found.feature_names_in_) == list(expected.feature_names_in_)
    assert run("predict", f"{target}.tm", "new.csv", "-o", "predicted.csv") == 0
    predicted = pd.read_csv("predicted.csv")
    assert list(predicted.columns) == ["prediction"]
    if target == "rent":
        np.testing.assert_allclose(
            predicted["prediction"], expected.predict(new.drop(columns=target)), rtol=1e-9
        )
    else:
        assert (
            predicted["prediction"].astype(str).tolist()
            == expected.predict(new.drop(columns=target)).tolist()
        )


def test_probabilities(here):
    assert run("predict", "district.tm", "new.csv", "--probabilities", "-o", "p.csv") == 0
    found, model = pd.read_csv("p.csv"), load("district.tm")
    assert list(found.columns) == ["prediction", *(f"probability_{label}" for label in model.classes_)]
    np.testing.assert_allclose(
        found.iloc[:, 1:], model.predict_proba(frame("new.csv", "district")), rtol=1e-9
    )


@pytest.mark.parametrize("rows", [1, 7])
def test_blocks_of_any_size_predict_the_same(here, rows, capsys, monkeypatch):
    run("predict", "rent.tm", "new.csv", "--keep", "id", "heating")
    once = capsys.readouterr().out
    monkeypatch.setattr(csv.CsvFile.blocks, "__defaults__", (rows,))
    run("predict", "rent.tm", "new.csv", "--keep", "id", "heating")
    in_blocks = capsys.readouterr().out
    assert once.splitlines()[0] == "id,heating,prediction"
    one, other = (pd.read_csv(io.StringIO(text)) for text in (once, in_blocks))
    pd.testing.assert_frame_equal(one, other, rtol=1e-12)
    assert one["id"].tolist() == frame("new.csv").index.map(lambda k: f"F1{k:05d}").tolist()


def test_order_of_columns_others_and_standard_input(here, capsys, monkeypatch):
    table = pd.read_csv("new.csv")
    run("predict", "rent.tm", "new.csv")
    expected = capsys.readouterr().out
    text = table[table.columns[::-1]].drop(columns="rent").assign(other="x").to_csv(index=False, sep=";")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text.encode()))))
    assert run("predict", "rent.tm", "-") == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.tsv", "out.parquet", "out.arrow"])
def test_outputs_by_suffix(here, name):
    pa = pytest.importorskip("pyarrow")
    assert (
        run("predict", "district.tm", "new.csv", "--keep", "id", "size", "--probabilities", "-o", name) == 0
    )
    run("predict", "district.tm", "new.csv", "--keep", "id", "size", "--probabilities", "-o", "plain.csv")
    expected = pd.read_csv("plain.csv")
    if name.endswith("parquet"):
        found = pd.read_parquet(name)
    elif name.endswith("arrow"):
        found = pa.ipc.open_file(name).read_pandas()
    else:
        found = pd.read_csv(name, sep="\t" if ".tsv" in name else ",")
    assert list(found.columns) == list(expected.columns)
    np.testing.assert_allclose(found.iloc[:, 3:], expected.iloc[:, 3:], rtol=1e-12)
    assert found["prediction"].tolist() == expected["prediction"].tolist()
    assert found["size"].astype(float).tolist() == expected["size"].tolist()


def test_parquet_is_predicted_as_csv_is(here, capsys):
    pytest.importorskip("pyarrow")
    pd.read_csv("new.csv").to_parquet("new.parquet")
    run("predict", "rent.tm", "new.csv")
    expected = capsys.readouterr().out
    assert run("predict", "rent.tm", "new.parquet") == 0
    assert capsys.readouterr().out == expected


def test_quantiles_are_named_by_their_levels(here, capsys):
    table = pd.read_csv("flats.csv")
    settings = {"loss": "quantile", "quantile": (0.1, 0.9), "degree": 1, "max_iter": 2, "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(table[["size", "floor"]], table["rent"])
    model.save("levels.tm")
    assert run("predict", "levels.tm", "new.csv", "-o", "found.csv") == 0
    assert list(pd.read_csv("found.csv").columns) == ["prediction_0.1", "prediction_0.9"]
    assert run("explain", "levels.tm", "new.csv", "--output", "0.1") == 0
    assert "--output must be one of 0.1, 0.9, got '1'" in error_of(
        capsys, "explain", "levels.tm", "new.csv", "--output", "1"
    )


def test_several_targets(here, capsys):
    command = [
        "fit",
        "flats.csv",
        "--target",
        "rent",
        "--target",
        "size",
        "--columns",
        "rooms",
        "district",
        *QUICK,
        "-o",
        "two.tm",
    ]
    assert run(*command) == 0
    table, new = pd.read_csv("flats.csv"), pd.read_csv("new.csv")
    expected = TensorMachineRegressor(**QUICKLY).fit(table[["rooms", "district"]], table[["rent", "size"]])
    assert load("two.tm").target_name_ == expected.target_name_ == ["rent", "size"]
    assert run("predict", "two.tm", "new.csv", "-o", "two.csv") == 0
    found = pd.read_csv("two.csv")
    assert list(found.columns) == ["prediction_rent", "prediction_size"]
    np.testing.assert_allclose(found, expected.predict(new[["rooms", "district"]]), rtol=1e-9)
    capsys.readouterr()
    assert run("evaluate", "two.tm", "new.csv", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["rows"] == 100
    assert shown["errors"]["size"]["R2"]["value"] == pytest.approx(
        r2_score(new["size"], found["prediction_size"])
    )
    assert run("explain", "two.tm", "new.csv", "--output", "size") == 0


@pytest.mark.parametrize("name", ["rent", "two"])
def test_report(here, name, capsys):
    """What is in it is tested where it is made; here, that it is the same page."""
    from tensormachines.report import html_report

    targets = ["rent"] if name == "rent" else ["rent", "size"]
    if name == "two":
        options = [option for target in targets for option in ("--target", target)]
        assert (
            run("fit", "flats.csv", *options, "--columns", "rooms", "district", *QUICK, "-o", "two.tm") == 0
        )
    capsys.readouterr()
    assert run("report", f"{name}.tm", "new.csv", "--title", "Flats", "-o", "page.html") == 0
    assert "100 rows of new.csv" in capsys.readouterr().out
    model, new = load(f"{name}.tm"), pd.read_csv("new.csv")
    X, y = new[list(model.feature_names_in_)], new[targets[0] if name == "rent" else targets]
    page = html_report(model, X, y, title="Flats", data_name="new.csv")
    assert (here / "page.html").read_text(encoding="utf-8") == page


def test_svmlight(here, rng, capsys):
    X = np.where(rng.random((60, 4)) < 0.5, 0, rng.random((60, 4)))
    y = (X[:, 0] > X[:, 1]).astype(int)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row.tolist()) if x)
        for label, row in zip(y, X, strict=True)
    ]
    (here / "t.svm").write_text("\n".join(lines) + "\n")
    assert run("fit", "t.svm", *QUICK, "-o", "svm.tm") == 0
    capsys.readouterr()
    assert run("predict", "svm.tm", "t.svm", "--probabilities") == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    from scipy import sparse

    expected = TensorMachineClassifier(**QUICKLY).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(found.iloc[:, 1:], expected.predict_proba(sparse.csr_matrix(X)), rtol=1e-9)
    assert run("evaluate", "svm.tm", "t.svm") == 0
    assert (
        error_of(capsys, "predict", "svm.tm", "t.svm", "--keep-all")
        == "--keep-all: the columns of t.svm have no names."
    )
    (here / "nan.svm").write_text("1 1:2\nnan 1:3\n")
    assert "nan.svm, data row 2 (counting from 1), y: NaN, where a finite number is needed" in error_of(
        capsys, "fit", "nan.svm", "-o", "a.tm"
    )


def test_levels_that_are_numbers_have_many_spellings(here, capsys):
    table = pd.DataFrame({"code": [1.0, 2.0, 3.5] * 20, "y": [0.0, 5.0, 9.0] * 20})
    model = TensorMachineRegressor(**QUICKLY).fit(table[["code"]].astype("category"), table["y"])
    model.save("code.tm")
    (here / "spelled.csv").write_text("code\n1\n1.0\n2.00\n3.5\n35e-1\n")
    assert run("predict", "code.tm", "spelled.csv") == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))["prediction"]
    np.testing.assert_allclose(found, model.predict(table[["code"]].astype("category"))[[0, 0, 1, 2, 2]])


@pytest.mark.filterwarnings("ignore::tensormachines.ColumnWarning")  # of x
def test_what_looks_missing_may_be_a_level_of_the_fit(here, capsys):
    """pandas leaves white space where it is, in names too, and knows no "?"; "NA" is read as it is if it is
    told so.
    """
    pytest.importorskip("pyarrow")
    text = " kind ,x\n" + "".join(f"{level},{k}\n" for k, level in enumerate(["a", " a", "?", "NA", ""] * 12))
    (here / "levels.csv").write_text(text)
    table = pd.read_csv("levels.csv", na_values=[""], keep_default_na=False)
    model = TensorMachineRegressor(**QUICKLY).fit(table, np.arange(60.0) % 5)
    model.save("levels.tm")
    table.to_parquet("levels.parquet")
    for name in ("levels.csv", "levels.parquet"):
        assert run("predict", "levels.tm", name) == 0
        np.testing.assert_array_equal(
            pd.read_csv(io.StringIO(capsys.readouterr().out))["prediction"], model.predict(table)
        )


@pytest.mark.filterwarnings("ignore::tensormachines.ColumnWarning")  # of x
def test_text_of_parquet_is_taken_as_it_is(here, capsys):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(
        {"kind": ["a", " a", "?", "NA", "", None] * 10, "x": np.arange(60.0), "y": np.arange(60.0) % 6}
    )
    table.to_parquet("texts.parquet")
    assert run("fit", "texts.parquet", "--target", "y", *QUICK, "-o", "texts.tm") == 0
    assert "5 levels" in capsys.readouterr().err
    expected = TensorMachineRegressor(**QUICKLY).fit(table[["kind", "x"]], table["y"])
    assert run("predict", "texts.tm", "texts.parquet") == 0
    np.testing.assert_allclose(
        pd.read_csv(io.StringIO(capsys.readouterr().out))["prediction"],
        expected.predict(table[["kind", "x"]]),
    )


def test_classes_that_no_row_has_do_not_count(here, capsys):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": range(30), "y": pd.Categorical(["a"] * 30, categories=["a", "b"])}).to_feather(
        "classes.feather"
    )
    assert "the target 'y' has the same value in all rows" in error_of(
        capsys, "fit", "classes.feather", "--target", "y", "-o", "a.tm"
    )


@pytest.mark.parametrize(
    ("labels", "spelled"), [(["1.50", "2.5"], ["1.5", "2.500"]), (["true", "false"], ["TRUE", "False"])]
)
def test_labels_in_another_spelling_are_the_same(here, capsys, labels, spelled):
    for name, values in (("labels.csv", labels), ("spelled.csv", spelled)):
        write(name, {"x": np.arange(40) % 7, "y": np.array(values)[np.arange(40) % 7 // 4]})
    assert run("fit", "labels.csv", "--target", "y", *QUICK, "-o", "labels.tm") == 0
    capsys.readouterr()
    printed = [
        (run("evaluate", "labels.tm", name, "--json"), capsys.readouterr().out)
        for name in ("labels.csv", "spelled.csv")
    ]
    assert printed[0] == printed[1]
    assert printed[0][0] == 0


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
    table["weight"] = np.arange(9000) % 3
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
    assert (
        run(
            "fit",
            "flats.csv",
            "--target",
            "rent",
            "--ignore",
            "id",
            "--holdout",
            "0.25",
            *QUICK,
            "-o",
            "part.tm",
        )
        == 0
    )
    assert "of 300 rows" in (shown := capsys.readouterr().out)
    assert "100 held-out rows:" in shown
    assert (
        run(
            "fit",
            "flats.csv",
            "--target",
            "rent",
            "--ignore",
            "id",
            "--test",
            "new.csv",
            *QUICK,
            "-o",
            "all.tm",
        )
        == 0
    )
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


# ---- evaluate, explain, export, demo


def test_evaluate_regression(here, capsys):
    assert run("evaluate", "rent.tm", "new.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)["errors"]["rent"]
    new, model = frame("new.csv"), load("rent.tm")
    predicted = model.predict(new.drop(columns="rent"))
    assert found["R2"]["value"] == pytest.approx(r2_score(new["rent"], predicted))
    assert found["RMSE"]["value"] == pytest.approx(root_mean_squared_error(new["rent"], predicted))
    for each in found.values():
        assert each["low"] < each["value"] < each["high"]


def test_evaluate_classification(here, capsys):
    assert run("evaluate", "balcony.tm", "new.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)["errors"]["balcony"]
    new, model = frame("new.csv"), load("balcony.tm")
    y, probabilities = new["balcony"].astype(str), model.predict_proba(new.drop(columns="balcony"))
    assert found["accuracy"]["value"] == pytest.approx(
        accuracy_score(y, model.predict(new.drop(columns="balcony")))
    )
    assert found["log loss"]["value"] == pytest.approx(log_loss(y, probabilities))
    assert found["AUC"]["value"] == pytest.approx(roc_auc_score(y == "True", probabilities[:, 1]))


def test_what_few_rows_leave_undefined_is_null(here, capsys):
    pd.read_csv("new.csv").head(1).to_csv("one.csv", index=False)
    for name, measure in (("rent.tm", "R2"), ("balcony.tm", "AUC")):
        capsys.readouterr()
        assert run("evaluate", name, "one.csv", "--json") == 0
        found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)  # which NaN would be
        assert found["errors"][name.removesuffix(".tm")][measure]["value"] is None
    assert run("evaluate", "rent.tm", "one.csv") == 0
    assert capsys.readouterr().out.startswith("1 row of one.csv:")


def test_explain_says_which_class_it_is_about(here, capsys):
    capsys.readouterr()
    assert run("explain", "balcony.tm", "new.csv", "--row", "1", "--json", "--output", "True") == 0
    printed = capsys.readouterr()
    assert printed.err == "positive values favour True, negative ones False\n"
    total = sum(part["value"] for part in json.loads(printed.out)["parts"])
    assert total == pytest.approx(
        load("balcony.tm").decision_function(frame("new.csv", "balcony").head(1))[0]
    )


def test_explain(here, capsys):
    assert run("explain", "rent.tm", "new.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(each["value"] for each in found["columns"]) == pytest.approx(1)
    assert found["columns"][0]["of"] == ["size"]
    assert run("explain", "rent.tm", "new.csv", "--row", "5", "--json") == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    predicted = load("rent.tm").predict(frame("new.csv", "rent").iloc[4:5])
    assert sum(each["value"] for each in parts) == pytest.approx(predicted[0])
    assert run("explain", "rent.tm", "--formula", "--top", "3") == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert run("explain", "district.tm", "new.csv", "--output", "Harbour", "--top", "2") == 0
    assert "district.tm" not in error_of(capsys, "explain", "district.tm", "new.csv", "--output", "Moon")


def test_export(here, capsys):
    from tensormachines.export import to_json, to_python, to_sql

    model = load("rent.tm")
    assert run("export", "rent.tm", "-o", "rent.py") == 0
    assert (here / "rent.py").read_text() == to_python(model)
    assert run("export", "rent.tm", "--format", "sql", "--table", "flats") == 0
    assert capsys.readouterr().out.strip() == to_sql(model, "flats").strip()
    assert run("export", "rent.tm", "-o", "rent.json") == 0
    assert (here / "rent.json").read_text().strip() == to_json(model)


def test_the_table_of_the_demo_is_always_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--table", "flats.csv") == 0
    assert run("demo", "--table", "again.csv") == 0
    assert (tmp_path / "flats.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    table, new = pd.read_csv("flats.csv"), pd.read_csv("flats-new.csv")
    assert (len(table), len(new)) == (3000, 1000)
    assert not set(table["id"]) & set(new["id"])
    assert table["condition"].isna().any()
    assert table["rent"].between(100, 3000).all()


def test_formula_of_a_table(here, capsys):
    """The functions of columns and pairs, and a small polynomial, as text and as JSON."""
    assert run("explain", "rent.tm", "new.csv", "--formula", "--top", "3") == 0
    text = capsys.readouterr().out
    assert text.startswith("rent = ")
    assert "3 functions: they are" in text
    assert "size, " in text
    assert "polynomial of columns in their own units" in text
    assert run("explain", "rent.tm", "new.csv", "--formula", "--top", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    X = frame("new.csv", "rent")
    expected = formula(load("rent.tm"), X, max_functions=3)
    assert found["fidelity"] == pytest.approx(expected.fidelity)
    assert [tuple(each["of"]) for each in found["functions"]] == [f.columns for f in expected.functions]
    assert len(found["polynomial"]["terms"]) == 4


def test_fits_of_several_labels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, Y = make_multilabel_classification(200, 4, n_classes=2, random_state=0)
    X, Y = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=["red", "blue"])
    pd.concat([X, Y], axis=1).to_csv("rows.csv", index=False)
    pd.concat([X, Y.astype(bool)], axis=1).to_csv("flags.csv", index=False)
    several, labels = ["--target", "red", "--target", "blue", *QUICK], ["--task", "classification"]
    expected = TensorMachineClassifier(**QUICKLY).fit(X, Y)
    for name in ("rows.csv", "flags.csv"):
        capsys.readouterr()
        assert run("fit", name, *several, "-o", "numbers.tm") == 0
        assert "if these are labels of a row, --task classification" in capsys.readouterr().err
        assert isinstance(load("numbers.tm"), TensorMachineRegressor)
        assert run("fit", name, *several, *labels, "-o", "labels.tm") == 0
        shares = ", ".join(f"{100 * share:.0f} %" for share in Y.mean())
        shown = capsys.readouterr().err
        assert f"target: red, blue, classification, labels of {shares} of the rows\n" in shown
        assert "note: these targets" not in shown
        found = load("labels.tm")
        assert found.target_name_ == ["red", "blue"]
        np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X))
        assert run("evaluate", "labels.tm", name) == 0
        assert "were in the fit" in capsys.readouterr().out
    assert run("fit", "rows.csv", *several, *labels, "--holdout", "0.2", "-o", "labels.tm") == 0
    assert "40 held-out rows, blue:" in capsys.readouterr().out
    message = error_of(capsys, "fit", "rows.csv", *several, *labels, "--target", "a", "-o", "labels.tm")
    assert "and 'a' holds others: fit a model for each target." in message


@pytest.mark.parametrize("kind", ["numbers", "booleans", "mixed"])
def test_streams_of_several_labels(tmp_path, monkeypatch, capsys, kind):
    """The model is that of the same rows as a source, and is found again by later commands."""
    monkeypatch.chdir(tmp_path)
    X, Y = make_multilabel_classification(300, 4, n_classes=2, random_state=0)
    X, Y = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=["red", "blue"])
    written = {"numbers": Y, "booleans": Y.astype(bool), "mixed": Y.astype({"red": bool})}[kind]
    pd.concat([X, written.astype(object).where(X["a"] > X["a"][0])], axis=1).to_csv("rows.csv", index=False)
    rows = (X["a"] > X["a"][0]).to_numpy()  # others have no targets
    targets = ["--target", "red", "--target", "blue", "--task", "classification"]
    fit = ["fit", "rows.csv", *targets, *QUICK, "--stream", "-o", "labels.tm"]
    assert run(*fit) == 0
    assert f"left out: {300 - rows.sum()} rows without a target" in capsys.readouterr().err
    found = load("labels.tm")
    assert found.target_name_ == ["red", "blue"]
    pd.concat([X, Y], axis=1)[rows].to_csv("complete.csv", index=False)
    expected = TensorMachineClassifier(**QUICKLY).fit(blocks.csv("complete.csv", target=["red", "blue"]))
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X))
    assert run("evaluate", "labels.tm", "rows.csv", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["share_in_fit"] == 1
    for name, likely in zip(Y, found.predict_proba(X[rows]).T, strict=True):
        area = roc_auc_score(Y[name][rows], likely)
        assert shown["errors"][name]["AUC"]["value"] == pytest.approx(area)
    assert run(*fit, "--holdout", "0.25") == 0
    assert "held-out rows, blue:" in capsys.readouterr().out


def test_models_of_several_labels(tmp_path, monkeypatch, capsys):
    X, Y = make_multilabel_classification(200, 4, n_classes=2, random_state=0)
    X, Y = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=["red", "blue"])
    model = TensorMachineClassifier(degree=2, rank=2, alpha=1e-2, random_state=0).fit(X, Y)
    model.save(tmp_path / "labels.tm")
    pd.concat([X, Y], axis=1).to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert run("predict", "labels.tm", "rows.csv", "--probabilities", "-o", "out.csv") == 0
    found = pd.read_csv("out.csv")
    assert list(found) == ["prediction_red", "prediction_blue", "probability_red", "probability_blue"]
    np.testing.assert_array_equal(found.iloc[:, :2], model.predict(X))
    np.testing.assert_allclose(found.iloc[:, 2:], model.predict_proba(X))
    capsys.readouterr()
    assert run("evaluate", "labels.tm", "rows.csv", "--json") == 0
    errors = json.loads(capsys.readouterr().out)["errors"]
    for k, name in enumerate(Y):
        likely = model.predict_proba(X)[:, k]
        assert errors[name]["log loss"]["value"] == pytest.approx(log_loss(Y[name], likely))
        assert errors[name]["accuracy"]["value"] == pytest.approx(np.mean((likely > 0.5) == Y[name]))
    assert run("explain", "labels.tm", "rows.csv", "--output", "red") == 0
    assert run("report", "labels.tm", "rows.csv", "-o", "labels.html") == 0
    assert "not blue" in (tmp_path / "labels.html").read_text(encoding="utf-8")
    assert "--output must be one of red, blue, got 'green'" in error_of(
        capsys, "explain", "labels.tm", "rows.csv", "--output", "green"
    )
