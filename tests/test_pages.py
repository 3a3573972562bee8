"""Pages for readers: commands print what is shown, results are the recorded ones, links lead to files."""

import importlib
import re
import runpy
import tomllib
from itertools import dropwhile, takewhile
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tensormachines import TensorMachineRegressor
from tensormachines.cli import main

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def commands():
    """Return each command with what it prints."""
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    text = page.split("```console\n")[1].split("```")[0]
    pieces = [piece.split("\n", 1) for piece in re.split(r"(?:^|\n)\$ ", text)[1:]]
    return [(command, printed.strip("\n")) for command, printed in pieces]


def code_without_prompts(page):
    """Return the Python code of a page that does not show its results, and is no doctest."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [code for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if ">>>" not in code]


@pytest.fixture
def names(rng):
    """Return what the code of pages uses."""
    pd = pytest.importorskip("pandas")
    X = rng.standard_normal((120, 3))
    table = pd.DataFrame({"area": X[:, 0], "district": np.where(X[:, 1] > 0, "north", "south")})
    return {"X": X, "y": X[:, 0], "table": table, "price": table["area"] * 3, "pd": pd}


def test_the_start_page_and_the_explanation_by_shap(names):
    shap = pytest.importorskip("shap")
    (start,), (explain,) = map(code_without_prompts, ("docs/index.md", "docs/explain.md"))
    exec(start, names)
    assert names["model"].score(names["table"], names["price"]) > 0.9
    exec(explain, names | {"shap": shap})


@pytest.mark.parametrize("page", ["docs/choosing.md", "docs/guide.md"])
def test_searches(names, page):
    (code,) = code_without_prompts(page)
    exec(code.replace("time_budget=60", "time_budget=1"), names)
    assert names["model"].score(names["X"], names["y"]) > 0.9


def test_a_pipeline_in_onnx(names):
    skl2onnx = pytest.importorskip("skl2onnx")
    names |= {"skl2onnx": skl2onnx, "pipeline": make_pipeline(StandardScaler(), TensorMachineRegressor())}
    names["pipeline"].fit(names["X"], names["y"])
    (code,) = code_without_prompts("docs/export.md")
    exec(code, names)
    assert len(names["onnx_model"].SerializeToString()) > 1000


@pytest.mark.cluster
def test_a_cluster_on_this_machine(names, tmp_path):
    for name in ("dask.dataframe", "pyarrow"):
        pytest.importorskip(name)
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    rows = names["table"].assign(price=names["price"])
    rows.to_parquet(tmp_path / "table")
    code = code_without_prompts("docs/large-data.md")[0].replace("s3://bucket", tmp_path.as_posix())
    code = code.replace("Client()", "Client(n_workers=1, threads_per_worker=1, dashboard_address=None)")
    names |= {"dask": dask, "TensorMachineRegressor": TensorMachineRegressor}
    try:
        exec(code, names)
        assert names["model"].score(rows.drop(columns="price"), rows["price"]) > 0.9
    finally:
        distributed.default_client().close()


def test_no_other_code_is_left_out():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    found = [page.name for page in pages for _ in code_without_prompts(page)]
    # The first one is in tests/persistence/test_mlflow.py; the second on large data needs clusters of others.
    elsewhere = ["files.md", "large-data.md"]
    run = ["choosing.md", "explain.md", "export.md", "guide.md", "index.md", "large-data.md"]
    assert sorted(found) == sorted(run + elsewhere)


def shape_of(text):
    """The text without its numbers, nor how many digits they have."""
    return re.sub(" +", " ", NUMBER.sub("#", text))


def test_the_commands_of_the_first_session(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert [command.split()[1] for command, _ in found] == ["demo", "fit", "predict", "explain", "report"]
    for command, expected in found:
        words, _, lines = command.partition(" | head -")
        assert main(words.split()[1:]) == 0
        printed = capsys.readouterr()
        text = "\n".join((printed.err + printed.out).splitlines()[: int(lines) if lines else None])
        assert shape_of(text) == shape_of(expected)
        # The last digits depend on the processor, seconds on what else it does, and the size of a report on
        # the programs in it.
        numbers, wanted = (
            [each.replace(",", "") for each in NUMBER.findall(re.sub(r"[\d.]+ (s|kB)\b", "", part))]
            for part in (text, expected)
        )
        assert list(map(float, numbers)) == pytest.approx(list(map(float, wanted)), rel=0.02, abs=0.5)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("shown_in", "column", "page", "section"),
    [
        ("README.md", 1, "ACCURACY_TABLES.md", "Error"),
        ("README.md", 2, "ACCURACY_TABLES.md", "Log-loss"),
        ("README.md", 3, "ACCURACY.md", "Error"),
        ("README.md", 4, "ACCURACY.md", "Log-loss"),
        ("docs/benchmarks.md", 1, "ACCURACY_TABLES.md", "Error"),
        ("docs/benchmarks.md", 2, "ACCURACY_TABLES.md", "Log-loss"),
    ],
)
def test_ranks_for_readers_are_those_of_the_benchmark(shown_in, column, page, section):
    names = {
        "Tensor Machine, `...CV`": "tensormachine-cv",
        "LightGBM": "lightgbm",
        "XGBoost": "xgboost",
        "CatBoost": "catboost",
        "Tensor Machine, default settings": "tensormachine",
        "ridge or logistic regression": "linear",
    }
    heading = {"README.md": "## How accurate is it?", "docs/benchmarks.md": "## Accuracy in one table"}[
        shown_in
    ]
    shown = rows_of(ROOT / shown_in, heading)[1:]
    found = rows_of(ROOT / "benchmarks" / page, f"## {section}\n")
    ranks = dict(zip(found[0], found[-1], strict=True))
    expected = {name: ranks.get(name, "not run") for name in names.values()}
    assert {names[row[0]]: row[column] for row in shown} == expected


def rows_of(path, heading):
    """Return the cells of the first Markdown table after a heading, without the line of dashes."""
    section = path.read_text(encoding="utf-8").split(heading)[1].split("\n## ")[0]
    lines = dropwhile(lambda line: not line.startswith("|"), section.splitlines())
    table = takewhile(lambda line: line.startswith("|"), lines)
    rows = [line.strip("| ").split(" | ") for line in table]
    return [row for row in rows if not row[0].startswith("-")]


def test_figures_of_the_start_page_are_those_of_the_readme():
    start, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/index.md", "README.md"))
    cards = start.split("::::{grid}")[1].split("\n::::\n")[0]
    figures = re.findall(r"\d\.\d\d+", cards)
    assert len(figures) >= 5
    assert [figure for figure in figures if figure not in readme] == []
    assert "1/8" in cards
    assert "an eighth as large" in " ".join(readme.split())


PAGES = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *("benchmarks/*.md", "docs/*.md", "results/*.md", "results/standard/*.md"),
]


@pytest.mark.parametrize(
    "page", sorted(path for pattern in PAGES for path in ROOT.glob(pattern)), ids=lambda page: page.name
)
def test_links_lead_to_files_and_headings(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", prose_of(page))
    local = [target.partition("#") for target in targets if not target.startswith(("http://", "https://"))]
    wrong = [name for name, _, _ in local if name != "gallery/" and not (page.parent / name).exists()]
    wrong += [
        f"{name}#{anchor}"
        for name, _, anchor in local
        if anchor and anchor not in anchors_of(page.parent / name if name else page)
    ]
    assert wrong == []
    hidden = re.findall(r"^(?:%|\+\+\+).*", prose_of(page), flags=re.MULTILINE)
    assert hidden == [], "the site takes these lines for comments"


def prose_of(page):
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors_of(page):
    """Return the anchors of headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), flags=re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_every_page_has_a_place_on_the_site():
    contents = runpy.run_path(str(ROOT / "docs" / "site_contents.py"))["CONTENTS"]
    placed = [page for groups in contents.values() for pages in groups.values() for page in pages]
    assert len(placed) == len(set(placed))
    generated = {"docs/auto_gallery/index", "docs/api/index"}
    found = {path.relative_to(ROOT) for pattern in PAGES for path in ROOT.glob(pattern)}
    expected = {str(path.with_suffix("")) for path in found} - {"README", "docs/index"}
    assert set(placed) - generated == expected


MODULES = ("", "blocks", "inspection", "plots", "report", "export", "persistence", "peers", "datasets")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_page(module):
    public = importlib.import_module(f"tensormachines.{module}".rstrip(".")).__all__
    elsewhere = set() if module else {"blocks", "load", "ModelFileError"}
    page = (ROOT / "docs" / "api" / f"{module or 'estimators'}.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(set(public) - elsewhere)


def test_the_citation_has_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
