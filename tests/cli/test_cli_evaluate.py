"""evaluate, explain, export and demo, as they are typed; the estimators in Python are the truth."""

import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score, root_mean_squared_error

from commands import QUICK, error_of, frame, run
from tensormachines import load
from tensormachines.inspection import formula

pd = pytest.importorskip("pandas")


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


@pytest.mark.parametrize("target", ["rent", "district"])
def test_weights_count_as_repetitions(here, capsys, target):
    table = pd.read_csv("new.csv")
    weight = np.arange(len(table)) % 3
    table.assign(weight=weight).to_csv("weighted.csv", index=False)
    table.loc[np.repeat(table.index, weight)].to_csv("repeated.csv", index=False)
    found = []
    for name, how in (("weighted.csv", ["--weight", "weight"]), ("repeated.csv", [])):
        capsys.readouterr()
        assert run("evaluate", f"{target}.tm", name, "--json", *how) == 0
        printed = capsys.readouterr()
        found.append(json.loads(printed.out)["errors"][target])
        assert ("note: errors are weighted by weight" in printed.err) == bool(how)
    for measure, each in found[0].items():
        assert each["value"] == pytest.approx(found[1][measure]["value"], rel=1e-9)
        assert each["constant"] == pytest.approx(found[1][measure]["constant"], rel=1e-9, abs=1e-9)


def test_errors_of_a_weighted_fit_are_weighted(here, capsys):
    table = pd.read_csv("flats.csv")
    table.assign(weight=1 + np.arange(len(table)) % 5).to_csv("weighted.csv", index=False)
    command = ["fit", "weighted.csv", "--target", "rent", "--ignore", "id", "--weight", "weight", *QUICK]
    for how in ([], ["--stream"]):
        held = ["--holdout", "0.3", "--holdout-output", "held.csv"]
        assert run(*command, *held, *how, "-o", "weighted.tm") == 0
        shown = capsys.readouterr().out.splitlines()
        first = next(i for i, line in enumerate(shown) if "held-out rows:" in line)
        assert run("evaluate", "weighted.tm", "held.csv", "--weight", "weight") == 0
        assert capsys.readouterr().out.splitlines()[-len(shown[first:]) :][1:] == shown[first + 1 :]
    assert run("report", "weighted.tm", "held.csv", "--weight", "weight", "-o", "weighted.html") == 0


def test_weights_that_are_refused(here, capsys):
    table = pd.read_csv("new.csv")
    table.assign(weight=np.where(table.index == 3, -1.0, 1.0)).to_csv("negative.csv", index=False)
    message = error_of(capsys, "evaluate", "rent.tm", "negative.csv", "--weight", "weight")
    assert "row 4" in message
    assert "a weight must be a number from 0 on, got -1" in message
    assert "no column 'wait'" in error_of(capsys, "evaluate", "rent.tm", "new.csv", "--weight", "wait")


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
    assert error_of(capsys, "export", "rent.tm", "-o", "rent.c", "--table", "flats") == (
        "--table is for the format sql, got c: leave it out."
    )
    assert "--name is for the format c, got py" in error_of(
        capsys, "export", "rent.tm", "-o", "rent.py", "--name", "rent"
    )
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
