"""`--cluster` of commands: the models and errors of the same rows in Python."""

import json
import socket

import numpy as np
import pytest
from sklearn.metrics import r2_score

from commands import error_of, run
from tensormachines import TensorMachineClassifier, TensorMachineRegressor, load

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of Dask itself, with a new pandas
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SETTINGS = ["--degree", "2", "--rank", "2", "--alpha", "0.001", "--solver", "lbfgs", "--max-iter", "5"]
SAME = {"degree": 2, "rank": 2, "alpha": 0.001, "solver": "lbfgs", "max_iter": 5, "random_state": 0}


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table in two Parquet files, and the same as CSV."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=600), "zip": rng.integers(1, 4, 600)})
    table["town"] = rng.choice(["x", "y", "z"], 600)
    table["day"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, 600), unit="D")
    table["price"] = np.round(table["a"] * (table["zip"] == 2) + (table["town"] == "x"), 6)
    table["dear"] = np.where(table["price"] > 0.5, "yes", "no")
    table.loc[[3, 400], "price"] = np.nan
    for number, part in enumerate(np.split(np.arange(600), [250])):
        table.iloc[part].to_parquet(f"{number}.parquet", index=False)
    table.to_csv("t.csv", index=False)
    return tmp_path


@pytest.mark.cluster
def test_a_fit_on_a_cluster_is_that_of_the_dask_frame(here, address, capsys):
    command = ["--target", "price", "--ignore", "dear", "zip", *SETTINGS, "--cluster", address, "-o", "m.tm"]
    assert run("fit", "*.parquet", *command) == 0
    shown = capsys.readouterr()
    assert "left out: 2 rows without a target" in shown.err
    assert f"*.parquet: 600 rows in 2 partitions on {address}" in shown.err
    assert "TensorMachineRegressor of 598 rows" in shown.out
    lazy = dd.read_parquet("*.parquet").dropna(subset=["price"])
    expected = TensorMachineRegressor(**SAME).fit(lazy[["a", "town", "day"]], lazy["price"])
    model, table = load("m.tm"), pd.read_parquet("0.parquet")[["a", "town", "day"]]
    assert model.target_name_ == "price"
    assert model._columns.kinds == ("number", "category", "date")
    np.testing.assert_allclose(model.predict(table), expected.predict(table), rtol=1e-9)
    assert run("fit", "t.csv", *command) == 0
    np.testing.assert_allclose(load("m.tm").predict(table), expected.predict(table), rtol=1e-6, atol=1e-9)
    with distributed.Client(address) as client:  # the cluster is there, and holds nothing
        assert not client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))


def flat(errors):
    return pd.json_normalize(errors).iloc[0].to_dict()


@pytest.mark.cluster
def test_errors_on_a_cluster_are_those_of_one_machine(here, address, capsys):
    command = ["--target", "dear", "--ignore", "price", "--category", "zip", *SETTINGS]
    assert run("fit", "*.parquet", *command, "--cluster", address, "--test", "t.csv", "-o", "m.tm") == 0
    assert "600 rows of t.csv" in capsys.readouterr().out
    model, table = load("m.tm"), pd.read_parquet(["0.parquet", "1.parquet"])
    assert model._columns.kinds[1] == "category"
    X = table[["a", "zip", "town", "day"]].astype({"zip": str})
    expected = TensorMachineClassifier(**SAME).fit(X, table["dear"])
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)
    found = []
    for how in ([], ["--cluster", address]):
        for name in ("*.parquet", "t.csv"):
            assert run("evaluate", "m.tm", name, "--json", *how) == 0
            found.append(json.loads(capsys.readouterr().out)["errors"])
    assert flat(found[0]) == pytest.approx(flat(found[2]), rel=1e-9)  # sums of two parts, by other rounding
    assert flat(found[1]) == pytest.approx(flat(found[3]), rel=1e-9)
    weighted = ["evaluate", "m.tm", "*.parquet", "--weight", "weight", "--json"]
    for number in (0, 1):
        part = pd.read_parquet(f"{number}.parquet")
        part.assign(weight=np.arange(len(part)) % 4).to_parquet(f"{number}.parquet", index=False)
    for how in ([], ["--cluster", address]):
        assert run(*weighted, *how) == 0
        found.append(json.loads(capsys.readouterr().out)["errors"])
    assert flat(found[4]) == pytest.approx(flat(found[5]), rel=1e-9)
    assert found[4] != found[0]
    assert run("fit", "t.csv", *command, "--cluster", address, "--holdout", "0.3", "-o", "m.tm") == 0
    shown = capsys.readouterr().out
    fitted, held = (int(shown.split(word)[0].split()[-1]) for word in (" rows, degree", " held-out rows"))
    assert fitted + held == 600
    assert 130 < held < 230


def fit_and_evaluate(capsys, address, data, *options):
    """Return what `fit --cluster` shows, and R2 of the model with and without `--cluster`."""
    command = ["--target", "y", *SETTINGS, *options, "-o", "m.tm"]
    assert run("fit", data, *command, "--cluster", address) == 0
    shown, found = capsys.readouterr(), []
    for how in ([], ["--cluster", address]):
        assert run("evaluate", "m.tm", data, "--json", *how) == 0
        found.append(json.loads(capsys.readouterr().out)["errors"]["y"]["R2"]["value"])
    return shown, *found


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """CSV with booleans and gaps, white space after levels and names, late text, and cells of no use."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=300), "flag": rng.choice(["true", "false", ""], 300)})
    table["town "] = rng.choice(["a", "b ", "b"], 300)
    table["late"] = ["1"] * 250 + ["many"] * 50
    table["note"] = [""] * 250 + ["hello"] * 50
    table["y"] = table["x"] + 5 * (table["flag"] == "true") + 3 * (table["town "] == "a")
    table["y"] += 2 * (table["late"] == "many")
    for number, part in enumerate(np.split(np.arange(300), [250])):
        table.iloc[part].to_csv(f"{number}.csv", index=False)
    return table


@pytest.mark.cluster
def test_cells_on_a_cluster_mean_what_they_do_in_files(cells, address, capsys):
    shown, here, there = fit_and_evaluate(capsys, address, "*.csv", "--ignore", "note")
    assert "  numbers: x, flag\n  categories: town, late\n" in shown.err
    assert load("m.tm")._columns.columns[2].levels == ("a", "b")
    assert here == pytest.approx(there, abs=1e-9)
    assert here > 0.9
    message = error_of(
        capsys, "fit", "*.csv", "--target", "y", "--number", "late", "-o", "n.tm", "--cluster", address
    )
    assert message.startswith(
        "*.csv, partition 1, data row 1 (counting from 1), column 'late': 'many', where a number is needed."
    )


@pytest.mark.cluster
def test_held_out_rows_and_fitted_rows_are_all_rows(tmp_path, monkeypatch, address, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(1200, 12)), columns=[f"c{j}" for j in range(12)])
    table["y"] = table["c0"] + table["c1"]
    for number, part in enumerate(np.split(np.arange(1200), 4)):
        table.iloc[part].to_parquet(f"{number}.parquet", index=False)
    columns = ["--target", "y", "--columns", "c0", "c1", *SETTINGS, "--holdout", "0.2", "-o", "m.tm"]
    assert run("fit", "*.parquet", *columns, "--cluster", address) == 0
    shown = capsys.readouterr().out
    fitted, held = (
        int(shown.split(word)[0].split()[-1].replace(",", "")) for word in (" rows, degree", " held-out rows")
    )
    assert fitted + held == 1200


def test_what_a_cluster_refuses(here, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    command = ["fit", "t.csv", "--target", "price", "-o", "m.tm", "--cluster"]
    message = error_of(capsys, *command, nobody)
    assert message.startswith(
        f"--cluster {nobody}: no scheduler answers (Connection refused); give the address"
    )
    assert "this has no host and port" in error_of(capsys, *command, "somewhere")
    message = error_of(capsys, *command, nobody, "--holdout", "0.2", "--holdout-output", "held.csv")
    assert message.startswith("--holdout-output: rows on a cluster cannot be written")


def test_a_server_that_is_no_scheduler_is_refused(here, capsys, monkeypatch):
    from tensormachines.cli import cluster

    monkeypatch.setattr(cluster, "SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        other = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        message = error_of(capsys, "fit", "t.csv", "--target", "price", "-o", "m.tm", "--cluster", other)
    assert message.startswith(f"--cluster {other}: what answers there is no scheduler; give the address")


@pytest.mark.cluster
def test_files_and_targets_that_are_refused(here, address, capsys):
    command = ["--target", "price", "-o", "m.tm", "--cluster", address]
    assert "No file matches 'no*.parquet'." in error_of(capsys, "fit", "no*.parquet", *command)
    assert "There is no file no.csv." in error_of(capsys, "fit", "no.csv", *command)
    assert "There is no file no.csv." in error_of(capsys, "fit", "t.csv", *command, "--test", "no.csv")
    labels = ["--target", "zip", "--task", "classification"]
    assert "several targets are labels of a row, which are 0 and 1, or true and false, and 'price' holds" in (
        error_of(capsys, "fit", "t.csv", *command, *labels)
    )
    assert not (here / "m.tm").exists()  # seen before the fit


@pytest.mark.cluster
def test_what_parquet_declares_is_not_changed_in_silence(here, address, capsys):
    command = ["fit", "*.parquet", "--target", "price", "--ignore", "dear", *SETTINGS, "-o", "m.tm"]
    for option, name in (("--number", "town"), ("--category", "day")):
        message = error_of(capsys, *command, option, name, "--cluster", address)
        assert message.startswith(f"{option} {name}: the column has the type ")
    pd.read_parquet("0.parquet").drop(columns="zip").to_parquet("few.parquet")
    message = error_of(
        capsys, *command, "--ignore", "zip", "--weight", "zip", "--test", "few.parquet", "--cluster", address
    )
    assert "few.parquet has no column 'zip'" in message
    assert not (here / "m.tm").exists()  # seen before the fit


@pytest.mark.cluster
def test_classes_that_are_numbers_with_fractions(here, address, capsys):
    table = pd.read_parquet("0.parquet")[["a", "town"]]
    table["level"] = np.where(table["a"] > 0, 0.5, 1.5)
    table.to_parquet("levels.parquet", index=False)
    fit = ["fit", "levels.parquet", "--target", "level", "--task", "classification", *SETTINGS, "-o", "m.tm"]
    assert run(*fit, "--cluster", address, "--test", "levels.parquet") == 0
    errors = []
    for how in ([], ["--cluster", address]):
        capsys.readouterr()
        assert run("evaluate", "m.tm", "levels.parquet", "--json", *how) == 0
        errors.append(json.loads(capsys.readouterr().out)["errors"])
    assert flat(errors[0]) == pytest.approx(flat(errors[1]), rel=1e-9)


@pytest.mark.cluster
@pytest.mark.parametrize("booleans", [False, True])
def test_labels_of_a_row_on_a_cluster(here, address, capsys, booleans):
    table = pd.read_csv("t.csv")[["a", "town"]]
    table["red"], table["blue"] = table["a"] > 0.3, table["town"] == "x"
    written = table if booleans else table.astype({"red": int, "blue": int})
    written.to_csv("labels.csv", index=False)
    written.to_parquet("labels.parquet", index=False)
    labels = ["--target", "red", "--target", "blue", "--task", "classification", *SETTINGS]
    expected = TensorMachineClassifier(**SAME).fit(table[["a", "town"]], table[["red", "blue"]])
    for name in ("labels.csv", "labels.parquet"):
        fit = ["fit", name, *labels, "--cluster", address, "-o", "m.tm"]
        assert run(*fit, "--test", name) == 0
        assert f"600 rows of {name}, blue:" in capsys.readouterr().out
        model = load("m.tm")
        assert model.target_name_ == ["red", "blue"]
        found = model.predict_proba(table[["a", "town"]])
        np.testing.assert_allclose(found, expected.predict_proba(table[["a", "town"]]), atol=1e-6)
        errors = []
        for how in ([], ["--cluster", address]):
            assert run("evaluate", "m.tm", name, "--json", *how) == 0
            errors.append(json.loads(capsys.readouterr().out)["errors"])
        assert errors[0] == errors[1]
        accuracy = np.mean((found[:, 1] > 0.5) == table["blue"])
        assert errors[0]["blue"]["accuracy"]["value"] == pytest.approx(accuracy)
        assert run(*fit, "--holdout", "0.3") == 0
        assert "held-out rows, blue:" in capsys.readouterr().out


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("columns", "loss"), [({"exposure": "years", "offset": "a"}, "poisson"), ({"offset": "a"}, "huber")]
)
def test_exposures_and_offsets_on_a_cluster(here, address, capsys, columns, loss):
    rng = np.random.default_rng(1)
    table = pd.read_csv("t.csv")[["a", "town"]].assign(years=rng.uniform(0.1, 2, 600), b=rng.normal(size=600))
    table["claims"] = rng.poisson(table["years"] * np.exp(table["b"] + table["a"]))
    table.to_parquet("claims.parquet", index=False)
    table.to_csv("claims.csv", index=False)
    known = [word for kind, name in columns.items() for word in (f"--{kind}", name)]
    command = ["--target", "claims", "--loss", loss, "--degree", "1", "--solver", "lbfgs", *known]
    errors = {}
    for name in ("claims.parquet", "claims.csv"):
        test = ["--cluster", address, "--test", name, "-o", "m.tm"]
        assert run("fit", name, *command, *test) == 0
        shown = capsys.readouterr().out
        assert f"600 rows of {name}" in shown
        model = load("m.tm")
        names = [each for each in ("a", "town", "years", "b") if each not in columns.values()]
        in_python = {kind: table[each] for kind, each in columns.items()}
        expected = TensorMachineRegressor(loss=loss, degree=1, solver="lbfgs", random_state=0)
        expected.fit(table[names], table["claims"], **in_python)
        np.testing.assert_allclose(model.predict(table[names]), expected.predict(table[names]), rtol=1e-3)
        for how in ([], ["--cluster", address]):
            assert run("evaluate", "m.tm", name, "--json", *how) == 0
            errors[name, *how] = json.loads(capsys.readouterr().out)["errors"]["claims"]["R2"]["value"]
    factor = table["years"] * np.exp(table["a"])
    actual = table["claims"] / factor if loss == "poisson" else table["claims"] - table["a"]
    weight = factor if loss == "poisson" else None
    truth = r2_score(actual, expected.predict(table[names]), sample_weight=weight)
    assert list(errors.values()) == pytest.approx([truth] * 4, abs=1e-3)
    wrong = table.assign(years=-1.0)
    wrong.to_csv("wrong.csv", index=False)
    if "exposure" in columns:
        message = error_of(capsys, "evaluate", "m.tm", "wrong.csv", "--cluster", address)
        assert "exposure must hold positive, finite numbers" in message
