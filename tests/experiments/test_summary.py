"""The summary for practitioners, from lines whose winners are known."""

from __future__ import annotations

import pytest

from record_lines import line
from tensormachines.experiments.report.document import Bullets, Page, Table, to_html, to_markdown
from tensormachines.experiments.report.labels import method_name
from tensormachines.experiments.report.summary import WHAT, summary


def golden_lines():
    """On Adult TM-SFO wins, on Indoor Apple does, on Forest it is level with TM-Batch; KRR is the slowest."""
    errors = {
        "adult": {"krr": 0.2, "tm-batch": 0.3, "tm-sfo": 0.1, "apple": 0.4},
        "indoor": {"krr": 0.2, "tm-batch": 0.3, "tm-sfo": 0.25, "apple": 0.125},
        "forest": {"krr": 0.2, "tm-batch": 0.21, "tm-sfo": 0.3, "apple": 0.2},
    }
    seconds = {"krr": 100.0, "tm-batch": 2.0, "tm-sfo": 1.0, "apple": 5.0}
    return [
        line(
            set=name,
            method=method,
            error=error,
            seconds=seconds[method],
            major=None if method == "krr" else 10,
            task="regression" if name == "indoor" else "binary",
            test_rows=1000,
            parameters=700,
        )
        for name, of_methods in errors.items()
        for method, error in of_methods.items()
    ]


def blocks(page: Page, kind: type) -> list:
    return [block for section in page.sections for block in section.blocks if isinstance(block, kind)]


@pytest.fixture
def page() -> Page:
    return summary(golden_lines())


def test_every_method_is_described():
    assert all(method in WHAT for method in {fit["method"] for fit in golden_lines()})


def test_wins_and_ties_are_counted(page):
    assert page.lead[0].startswith(
        "On 1 of 3 data sets a Tensor Machine has a lower error than every rival, on 1 it is level with the "
        "best one (with the paper's two solvers alone: 1 and 1). Kernel ridge regression"
    )
    assert "on 1 it has a lower error than all Tensor Machines." in page.lead[0]  # Indoor
    readings = blocks(page, Bullets)[1].items
    assert "TM-SFO has the lowest error on Adult." in readings
    assert "Apple has the lowest error on Indoor and Forest." in readings
    assert "The best Tensor Machine loses most on Indoor: +100.0 % against Apple." in readings


def test_tables_have_the_errors_and_times(page):
    wins, costs = blocks(page, Table)
    by_set = {row.cells[0].text: [(cell.text, cell.detail) for cell in row.cells[1:]] for row in wins.rows}
    assert by_set["Adult"] == [
        ("0.100", "TM-SFO, 1.0 s"),
        ("0.100", "TM-SFO, 1.0 s"),
        ("0.200", "KRR, 100 s"),
    ]
    assert by_set["Forest"][1] == ("0.210", "TM-Batch, 2.0 s (level)")
    by_method = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in costs.rows}
    assert by_method["TM-Batch"] == ["2.0 s", "2.0 s", "0.020\N{MULTIPLICATION SIGN}", "700"]
    assert by_method["KRR"] == ["100 s", "100 s", "-", "700"]


def test_advice_names_the_best_machine_and_the_best_rival(page):
    """TM-SFO is the better machine on Adult and Indoor; Apple's relative errors are 1, -0.375 and 0."""
    advice = blocks(page, Bullets)[2].items
    assert advice[0].startswith(f"Begin with {method_name('tm-sfo')}")
    assert "the lowest error on 2 of 3 sets, in a median of 0.010" in advice[0]
    assert 'solver="sfo"' in advice[0]
    assert advice[1].startswith("Try Apple as well")
    assert "0.0 %" in advice[1]
    assert "100 s for 19,937 rows" in advice[2]


def test_advice_says_who_chooses_what_the_paper_fixes():
    free = [fit | {"method": "tm-free"} if fit["method"] == "tm-sfo" else fit for fit in golden_lines()]
    advice = blocks(summary(free), Bullets)[2].items
    assert advice[0].endswith('solver="kfac"; degree and relevance are chosen by their ...CV forms.')


def test_it_is_two_pages_of_plain_text_at_most(page):
    """Some 500 words a page; tables take room, so that 900 are left for both."""
    assert len(to_markdown(page).split()) < 900
    assert "<h2>What to use</h2>" in to_html(page)


def test_without_fits_it_says_so():
    assert summary([]).lead == ("No fit of the comparison has finished yet.",)
