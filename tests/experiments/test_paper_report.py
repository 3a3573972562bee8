"""The page: a few lines whose figures are known, and where they must and must not appear."""

import re
import sys
from html.parser import HTMLParser

import pytest

from record_lines import line, some_lines
from tensormachines.experiments import report
from tensormachines.experiments.methods import METHODS
from tensormachines.experiments.report.claims import Claim
from tensormachines.experiments.report.deviations import DEVIATIONS, deviations_of_run
from tensormachines.experiments.report.document import NO_FITS, Cell, Picture, to_html, to_markdown
from tensormachines.experiments.report.figure_style import look
from tensormachines.experiments.report.labels import duration, listing, major_name, number, percent, times
from tensormachines.experiments.report.results import results_of
from tensormachines.experiments.report.sections import _than_printed, build
from tensormachines.experiments.report.tables import table_2, table_3, table_5, table_6

CLAIMS = [
    Claim("It is <small>", "confirmed", "3 < 5", "Table 2, Figure 1"),
    Claim("It is quick", "not testable here", "no data", ""),
]
VOID = {"meta", "img", "br"}


class Tags(HTMLParser):
    """Checks that every element is closed in its order, and keeps what the page refers to."""

    def __init__(self, text):
        super().__init__()
        self.open, self.references, self.identifiers, self.count = [], [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        named = dict(attributes)
        self.references += [named[name] for name in ("src", "href") if name in named]
        self.identifiers += [named["id"]] if "id" in named else []
        if tag == "img":
            assert named["alt"]
        if tag == "th":
            assert named["scope"] in ("row", "col")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page():
    return build(some_lines(), CLAIMS)


@pytest.fixture(scope="module")
def html(page):
    return to_html(page)


def rows_of(text, label):
    """The rows of a table as lists of texts: what a reader sees, first line and small print apart."""
    table = text[text.index(f'id="{label}"') :]
    rows = re.findall(r"<tr.*?</tr>", table[: table.index("</table>")], re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]


def test_the_page_stands_alone(html):
    tags = Tags(html)
    assert all(reference.startswith(("#", "data:image/svg+xml;base64,")) for reference in tags.references)
    assert not re.search(r"https?://|@import|<script|url\(", html)
    assert len(set(tags.identifiers)) == len(tags.identifiers)
    assert {reference[1:] for reference in tags.references if reference.startswith("#")} <= set(
        tags.identifiers
    )
    assert tags.count["caption"] == tags.count["table"]
    assert tags.count["img"] == 7  # Figures 1, 2, 3, 3b, 4, 5, 6


def test_ours_stands_beside_the_printed_figures(html):
    header, ours, paper = rows_of(html, "table-2")
    assert header == ["set", "KRR", "TM-Batch", "Apple"]
    assert ours[1] == "0.250<small>50 s</small>"
    assert ours[2] == "<b>0.300 ± 0.01</b><small>0.32 s · r = 4</small>"  # the best, KRR left aside
    assert ours[3] == "0.400<small>0.10 s</small>"
    assert paper == [
        "Indoor<small>paper</small>",
        "0.00961<small>50 s</small>",
        "0.00802<small>3.2 s · r = 4</small>",
        "0.00712<small>6.5 s</small>",
    ]


def test_relatives_stand_apart_and_alone(html):
    _, *rows = rows_of(html, "table-2b")
    assert [row[0] for row in rows] == ["slice_first_rows"]
    assert rows[0][1:] == [
        "0.100<small>10 s</small>",
        "<b>0.200</b><small>1.0 s</small>",
        "timed out<small>1 fit</small>",
    ]
    assert "slice_first_rows" not in str(rows_of(html, "table-3"))


def test_time_against_the_printed_ratio(html):
    rows = rows_of(html, "table-3")
    # Ours 0.32 / 50 = 0.0064, printed 3.2 / 50 = 0.064; nothing on the path reaches the printed error.
    assert rows[1] == [
        "Indoor, TM-Batch",
        "0.0064",
        "0.064",
        "10\N{MULTIPLICATION SIGN}",
        "0.00802",
        "-",
        "-",
        "-",
        "-",
    ]


def test_the_cheapest_fit_that_reaches_the_printed_error():
    lines = [line(method="krr", major=None, error=0.25, seconds=50.0)]
    lines += [
        line(major=major, error=error, seconds=major / 1000)
        for major, error in ((10, 0.1), (160, 0.008024), (640, 0.007))
    ]
    (table,) = table_3(results_of(lines, []))
    # 0.00802 is printed; 0.16 s / 50 s = 0.0032, a twentieth of the printed 0.064.
    reached = [cell.text for cell in table.rows[0].cells[5:]]
    assert reached == ["0.16 s", "160\N{NO-BREAK SPACE}iterations", "0.0032", "20\N{MULTIPLICATION SIGN}"]


def test_sizes_in_multiples_of_the_columns(html):
    row = next(row for row in rows_of(html, "table-4") if row[0] == "Indoor, TM-Batch")
    assert row[1:] == ["10\N{NO-BREAK SPACE}iterations", "rank 4", "2 in 5 folds", "0.100", "1,040", "2.0 d"]


def test_relative_errors_and_their_quartiles(html):
    rows = {(row[0]): row[1] for row in rows_of(html, "table-5")[1:]}
    assert rows["Indoor<small>ours</small>"] == "+20.0 %<small>time 0.0064</small>"
    assert rows["slice_first_rows<small>ours</small>"] == "+100.0 %<small>time 0.10</small>"
    assert rows["Median<small>ours, over sets</small>"] == "+60.0 %<small>time 0.053, 2 sets</small>"
    assert (
        rows["Quartiles<small>ours, over sets</small>"]
        == "+40.0 % to +80.0 %<small>time 0.030 to 0.077</small>"
    )
    assert rows["Worst<small>ours, over sets</small>"] == "+100.0 %<small>time 0.10</small>"


BUDGET = "Profile quick; curves end where a fit would take more than 5 s; 10 min in all."


def test_profile_and_budget_are_on_every_table_and_figure(html):
    shown = re.findall(r"<caption>(.*?)</caption>|<figcaption>(.*?)</figcaption>", html)
    assert len(shown) == 14
    assert all(BUDGET in "".join(caption) for caption in shown)


def test_the_first_screen_tells_what_came_out(page):
    lead = " ".join(page.lead)
    assert "is at or below the printed one for TM-Batch on 0 of 1 (rivals: Apple on 0 of 1)." in lead
    assert "On Indoor the target is centred here and was not in the paper" in lead
    assert "(KRR) is 10\N{MULTIPLICATION SIGN} smaller than the printed ratio" in lead
    # The other set has no rival.
    assert "a clearly lower error than every rival except KRR on 1 of 1 set," in lead
    assert "TM-Batch +100.0 % and Apple +60.0 % (1 set only)" in lead
    assert "2 judged here: 1 confirmed and 1 not testable here" in lead
    assert [card.value for card in page.cards] == ["0.300"]


@pytest.mark.parametrize(
    ("factors", "text"),
    [
        ([12.0], "12x smaller"),
        ([11.0, 35.0], "11x to 35x smaller"),
        ([0.5, 35.0], "2.0x larger to 35x smaller"),
        ([0.25], "4.0x larger"),
    ],
)
def test_ratios_below_one_are_called_larger(factors, text):
    assert _than_printed(factors).replace("\N{MULTIPLICATION SIGN}", "x") == text


def test_claims_and_deviations_are_shown(html):
    assert '<p class="statement">It is &lt;small&gt;</p>' in html
    assert '<a href="#table-2">Table 2</a>, <a href="#figure-1">Figure 1</a>' in html
    assert 'href="#table-2"' not in to_html(build([], CLAIMS))  # no fits, no table to go to
    text = to_markdown(build([], []))
    assert all(sentence[:40] in text for sentence in DEVIATIONS)


def test_text_from_lines_is_escaped(page, html):
    assert "no &lt;network&gt; &amp; no file" in html
    assert "<network>" not in html
    text = to_markdown(page)
    assert "over 60 s \\| &lt;b&gt;" in text
    assert "<b>" not in text
    hostile = '<script>alert("x")</script>'
    shown = to_html(
        build([line(set=hostile, method=hostile, reason=hostile, machine=hostile, profile=hostile)], CLAIMS)
    )
    assert "<script" not in shown


def test_markdown_tables_have_as_many_cells_as_headings(page):
    for table in re.findall(r"(?:^\|.*\n)+", to_markdown(page), re.M):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_files_are_whole_and_the_same_each_time(tmp_path):
    lines = [fields for fields in some_lines() if fields["experiment"] in ("rank", "starts", "load")]
    written = report.write_report(lines, tmp_path / "new" / "one")
    again = report.write_report(lines[:1] + lines, tmp_path / "two")  # a line twice is the line once
    assert {path.name for path in written} == {
        "report.html",
        "report.md",
        "summary.html",
        "summary.md",
        *(f"figure-{n}.svg" for n in ("2", "6")),
    }
    assert sorted((tmp_path / "two").iterdir()) == sorted(again)  # nothing half-written is left
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    shown = re.findall(r"\]\((.*?)\)", (tmp_path / "two" / "report.md").read_text())
    assert len(shown) == 2
    assert all((tmp_path / "two" / name).exists() for name in shown)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [
            {
                "key": "a",
                "profile": "quick",
                "experiment": "compare",
                "set": "adult",
                "method": "fm",
                "status": "crashed",
            }
        ],
        [fields | {"status": "failed", "reason": "MemoryError", "error": None} for fields in some_lines()],
        [fields for fields in some_lines() if fields["experiment"] == "load"],
    ],
    ids=["empty", "bare", "all failed", "nothing could be had"],
)
def test_without_fits_each_section_says_so(lines, tmp_path):
    written = {path.name for path in report.write_report(lines, tmp_path)}
    assert written == {"report.html", "report.md", "summary.html", "summary.md"}
    assert "No fit of the comparison has finished yet" in (tmp_path / "summary.md").read_text()
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    Tags(text)
    assert "No fit of the comparison has finished yet" in text
    assert text.count("No fits yet.") >= 6


def test_without_a_baseline_the_errors_are_still_shown():
    results = results_of([fields for fields in some_lines() if fields.get("method") != "krr"], [])
    assert table_2(results)[0].rows[0].cells[1].text == "0.300 ± 0.01"
    assert table_3(results) == table_5(results) == (NO_FITS,)


def test_a_method_that_is_not_in_the_paper_is_marked_and_counts_as_a_tensor_machine():
    lines = [*some_lines(), line(method="tm-kfac", error=0.1, seconds=2.0, param_rank=3)]
    page = build(lines, [])
    header, ours, paper = rows_of(to_html(page), "table-2")
    assert header == ["set", "KRR", "TM-Batch", "TM-kfac \N{DAGGER}", "Apple"]
    assert ours[3] == "<b>0.100</b><small>2.0 s · r = 3</small>"
    assert paper[3] == "-"
    assert "\N{DAGGER} TM-kfac, not in the paper: a Tensor Machine" in to_html(page)
    close = [*lines, line(method="fm", error=0.15)]  # better than TM-Batch, worse than TM-kfac
    assert "on 1 of 1 set, including relatives of the paper's; TM-Batch or TM-SFO has it on 0." in " ".join(
        build(close, []).lead
    )
    equal = [*lines, line(method="fm", error=0.10001)]  # to the digits that are shown
    assert [cell.strong for cell in table_2(results_of(equal, []))[0].rows[0].cells] == [
        False,
        False,
        False,
        True,
        False,
        True,
    ]
    assert page.cards[0].value == "0.300"  # of the paper's methods
    assert page.cards[0].detail.endswith("TM-kfac, which is not in the paper: 0.100.")


def shown_figures(lines):
    return {
        block.number: block
        for section in build(lines, []).sections
        for block in section.blocks
        if isinstance(block, Picture)
    }


def test_figure_3_has_the_other_sets_where_the_two_of_the_paper_have_no_fits():
    shown = shown_figures([line(), line(method="krr", major=None)])
    assert "Figure 3b" not in shown
    assert "along each method's major parameter" in shown["Figure 3"].caption
    assert "Indoor" in shown["Figure 3"].alternative


def test_figures_show_the_paper_s_own_set_where_it_has_fits():
    own = [
        fields | {"set": "slice", "key": f"own {n}"}
        for n, fields in enumerate(some_lines())
        if fields["set"] == "slice_first_rows"
    ]
    shown = {name: figure.alternative for name, figure in shown_figures([*some_lines(), *own]).items()}
    assert "Slice, TM-Batch" in shown["Figure 2"]
    assert "slice_first_rows" not in shown["Figure 2"] + shown["Figure 3"]
    assert "slice_first_rows" in shown["Figure 3b"]


def test_a_curve_that_was_ended_for_its_time_has_not_failed():
    reason = "about 90 s a fit expected, more than the 60 s of this profile"
    lines = [line(), line(major=20, status="skipped", reason=reason, error=None)]
    results = results_of(lines, [])
    assert table_2(results)[0].rows[0].cells[1] == Cell("0.500", "1.0 s", strong=True)
    assert table_6(results)[0].rows[0].cells[-1].text == reason
    told = deviations_of_run(results)
    assert any(sentence.endswith("longer than the profile allows: Indoor: TM-Batch.") for sentence in told)
    assert not any("gave no results" in sentence for sentence in told)


def test_every_method_looks_different():
    assert len({look(method) for method in METHODS}) == len(METHODS)
    assert look("another") not in {look(method) for method in METHODS}


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"tensormachines\[demo\]"):
        build(some_lines(), [])


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.00802, 3, "0.00802"),
        (3.2, 3, "3.20"),
        (1053.6, 3, "1,054"),
        (0.0000996, 1, "0.0001"),
        (0, 3, "0"),
        (None, 3, "-"),
        (2e-8, 2, "2.0e-08"),
    ],
)
def test_numbers_as_the_paper_prints_them(value, digits, text):
    assert number(value, digits) == text


def test_words():
    assert (percent(-0.125), percent(0.0001), times(10.4)) == (
        "\N{MINUS SIGN}12.5 %",
        "0.0 %",
        "10\N{MULTIPLICATION SIGN}",
    )
    assert (duration(45), duration(720), duration(5000)) == ("45 s", "12 min", "1 h 23 min")
    assert (listing([]), listing(["a"]), listing(["a", "b", "c"])) == ("", "a", "a, b and c")
    assert (major_name("tm-sfo", "max_iter"), major_name("fm", "max_iter"), major_name("krr", None)) == (
        "epochs",
        "iterations",
        "",
    )
