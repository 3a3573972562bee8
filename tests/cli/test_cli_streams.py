"""Commands on several files, on files that are read a block at a time, and on rows without column names."""

import json

import numpy as np
import pytest

from commands import QUICK, error_of, run, write
from tensormachines import load
from tensormachines.datasets.flats import flats

pd = pytest.importorskip("pandas")
FIT = ["--target", "rent", "--ignore", "id", *QUICK]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table, the same in three files, and a model of it."""
    monkeypatch.chdir(tmp_path)
    write("flats.csv", flats(300, 0))
    table = pd.read_csv("flats.csv", dtype=str, keep_default_na=False)
    for number, rows in enumerate(np.split(np.arange(300), [10, 180])):
        table.iloc[rows].to_csv(f"part-{number}.csv", index=False)
    assert run("fit", "flats.csv", *FIT, "-o", "rent.tm") == 0
    return tmp_path


@pytest.mark.parametrize("how", [[], ["--stream"]])
def test_a_glob_is_the_rows_of_all_its_files(here, capsys, how):
    shown = {}
    for name in ("flats.csv", "part-*.csv"):
        capsys.readouterr()
        assert run("fit", name, *FIT, *how, "--holdout", "0.3", "-o", "half.tm") == 0
        assert run("predict", "rent.tm", name, "--keep", "id") == 0
        assert run("evaluate", "rent.tm", name, "--json") == 0
        assert run("explain", "rent.tm", name) == 0
        printed = capsys.readouterr()
        shown[name] = [
            line.split(";")[0].replace(name, "FILE") for line in (printed.out + printed.err).splitlines()
        ]
    assert shown["flats.csv"] == shown["part-*.csv"]


def test_globs_that_are_refused(here, capsys):
    assert "No file matches 'none-*.csv'" in error_of(capsys, "evaluate", "rent.tm", "none-*.csv")
    (here / "part-3.csv").write_text("other,columns\n1,2\n")
    message = error_of(capsys, "evaluate", "rent.tm", "part-*.csv")
    assert message.startswith("part-3.csv: its columns are other, columns, but those of part-0.csv are ")
    (here / "part-3.csv").unlink()
    message = error_of(capsys, "fit", "part-*.csv", *FIT, "-o", "part-1.csv")
    assert message == "-o part-1.csv: output would overwrite the input file."


def test_errors_name_the_file_of_a_glob(here, capsys):
    text = (here / "part-1.csv").read_text().splitlines()
    place = text[0].split(",").index("size")
    cells = text[3].split(",")
    text[3] = ",".join([*cells[:place], "large", *cells[place + 1 :]])
    (here / "part-1.csv").write_text("\n".join(text))
    message = error_of(capsys, "evaluate", "rent.tm", "part-*.csv")
    assert "part-1.csv, data row 3 (counting from 1), column 'size': 'large'" in message


@pytest.mark.parametrize("labels", ["classes", "halves", "numbers"])
def test_svmlight_files_stream(here, rng, capsys, labels):
    X = np.where(rng.random((400, 5)) < 0.5, 0, rng.random((400, 5)))
    above = X[:, 0] > X[:, 1]
    y = {"classes": above.astype(int), "halves": above + 0.5, "numbers": X[:, 0] - X[:, 1]}[labels]
    lines = [
        f"{label!r} " + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row) if x)
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    for number in range(2):
        (here / f"{number}.svm").write_text("\n".join(lines[200 * number : 200 * (number + 1)]) + "\n")
    command = ["fit", "*.svm", "--degree", "2", "--rank", "2", "--alpha", "0.01", "--max-iter", "2"]
    shown = []
    for how in ([], ["--stream"]):
        capsys.readouterr()
        assert run(*command, *how, "-o", "sparse.tm") == 0
        shown.append((capsys.readouterr().err, load("sparse.tm")))
    (before, in_memory), (after, streamed) = shown
    assert before == after
    if labels != "numbers":
        assert streamed.classes_.tolist() == in_memory.classes_.tolist()
        assert streamed.classes_.dtype == in_memory.classes_.dtype
    assert run(*command, "--stream", "--holdout", "0.25", "-o", "sparse.tm") == 0
    shown = capsys.readouterr().out
    fitted, held = (int(shown.split(word)[0].split()[-1]) for word in (" rows, degree", " held-out rows"))
    assert fitted + held == 400
    assert 60 < held < 140
    assert run("report", "sparse.tm", "*.svm", "-o", "page.html") == 0
    assert "400 rows of *.svm" in (here / "page.html").read_text()


def test_errors_on_many_rows_are_those_in_memory(here, capsys):
    """With more rows than are resampled, so that errors are sums over blocks."""
    table = pd.concat([pd.read_csv("flats.csv")] * 80)
    table.to_csv("many.csv", index=False)
    assert run("evaluate", "rent.tm", "many.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    model = load("rent.tm")
    y, predicted = table["rent"].to_numpy(), model.predict(table[list(model.feature_names_in_)])
    errors = found["errors"]["rent"]
    assert found["rows"] == 24_000
    assert errors["R2"]["value"] == pytest.approx(
        1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2)
    )
    assert errors["MAE"]["value"] == pytest.approx(np.abs(y - predicted).mean())
    assert errors["MAE"]["constant"] == pytest.approx(np.abs(y - y.mean()).mean())
    assert errors["RMSE"]["constant"] == pytest.approx(y.std())


@pytest.mark.slow
def test_tune_streams(here, capsys):
    few = ["--degrees", "1", "--ranks", "1", "--members", "1", "--cv", "2", "--time-budget", "600"]
    command = ["--target", "rent", "--ignore", "id", *few, "--stream", "-o", "tuned.tm"]
    assert run("tune", "part-*.csv", *command) == 0
    assert "TensorMachineRegressorCV of 300 rows" in capsys.readouterr().out
    model = load("tuned.tm")
    assert (model.subsample_, model.best_params_["degree"]) == (300, 1)
    table = pd.read_csv("flats.csv")
    assert model.score(table[list(model.feature_names_in_)], table["rent"]) > 0.7
