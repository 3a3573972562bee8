"""Several labels of a row on the command line."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import log_loss, roc_auc_score

from commands import QUICK, QUICKLY, error_of, run
from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks, load

pd = pytest.importorskip("pandas")


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
