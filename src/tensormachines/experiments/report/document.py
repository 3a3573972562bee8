"""A page as data, and its two forms: HTML that needs nothing beside it, and Markdown with its figures as
files beside it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from pathlib import Path

STYLE = Path(__file__).with_name("page.css")


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its figure, a smaller line below it, and whether it is the best of its row."""

    text: str
    detail: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Row:
    """Its first cell is the row's heading. `kind` is a class of page.css: "ours", "paper" or nothing."""

    cells: tuple[Cell, ...]
    kind: str = ""


@dataclass(frozen=True)
class Table:
    number: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    wordy: bool = False  # cells hold sentences, which may wrap


@dataclass(frozen=True)
class Picture:
    number: str
    caption: str
    alternative: str
    file: str
    svg: bytes


@dataclass(frozen=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    statement: str
    verdict: str
    figures: str
    shown_in: str


@dataclass(frozen=True)
class Verdicts:
    items: tuple[Verdict, ...]


NO_FITS = "No fits yet."
Block = str | Table | Picture | Bullets | Verdicts


@dataclass(frozen=True)
class Section:
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Card:
    title: str
    value: str
    detail: str


@dataclass(frozen=True)
class Page:
    title: str
    lead: tuple[str, ...]
    cards: tuple[Card, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]


SIGNS = {
    "confirmed": "\N{CHECK MARK}",
    "refuted": "\N{MULTIPLICATION X}",
    "mixed": "\N{ALMOST EQUAL TO}",
    "not testable here": "?",
}


def anchor(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


# HTML


def to_html(page: Page) -> str:
    contents = "".join(
        f'<li><a href="#{anchor(section.title)}">{escape(section.title)}</a></li>'
        for section in page.sections
    )
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in page.facts
    )
    cards = "".join(_html_card(card) for card in page.cards)
    labels = {
        block.number
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Table | Picture)
    }
    sections = "\n".join(_html_section(section, labels) for section in page.sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(page.title)}</title>
<style>
{STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<header>
<h1>{escape(page.title)}</h1>
<div class="lead">{"".join(f"<p>{escape(sentence)}</p>" for sentence in page.lead)}</div>
{f'<ul class="cards">{cards}</ul>' if cards else ""}
<dl class="facts">{facts}</dl>
<nav aria-label="Contents"><ol>{contents}</ol></nav>
</header>
<main>
{sections}
</main>
</body>
</html>
"""


def _html_card(card: Card) -> str:
    return f'<li><h3>{escape(card.title)}</h3><p class="value">{escape(card.value)}</p><p>{escape(card.detail)}</p></li>'


def _html_section(section: Section, labels: set[str]) -> str:
    blocks = "\n".join(_html_block(block, labels) for block in section.blocks)
    return f'<section id="{anchor(section.title)}">\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>'


def _html_block(block: Block, labels: set[str]) -> str:
    match block:
        case str():
            return f"<p>{escape(block)}</p>"
        case Bullets():
            return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in block.items) + "</ul>"
        case Verdicts():
            return (
                '<ul class="verdicts">'
                + "".join(_html_verdict(item, labels) for item in block.items)
                + "</ul>"
            )
        case Picture():
            return (
                f'<figure id="{anchor(block.number)}">'
                f'<img src="data:image/svg+xml;base64,{b64encode(block.svg).decode("ascii")}" alt="{escape(block.alternative)}">'
                f"<figcaption><strong>{escape(block.number)}.</strong> {escape(block.caption)}</figcaption></figure>"
            )
        case Table():
            return _html_table(block)


def _html_verdict(item: Verdict, labels: set[str]) -> str:
    def link(match: re.Match[str]) -> str:
        """To a table or figure that is on this page; one that has no fits yet is named and no more."""
        return f'<a href="#{anchor(match[0])}">{match[0]}</a>' if match[0] in labels else match[0]

    shown = re.sub(r"(?:Table|Figure) \d+[a-z]?", link, escape(item.shown_in))
    return (
        f'<li class="{anchor(item.verdict)}">'
        f'<p class="badge"><span aria-hidden="true">{SIGNS.get(item.verdict, "")}</span> {escape(item.verdict)}</p>'
        f'<div><p class="statement">{escape(item.statement)}</p><p>{escape(item.figures)} {shown}</p></div></li>'
    )


def _html_table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    rows = "\n".join(_html_row(row) for row in table.rows)
    notes = (
        f'<div class="notes">{"".join(f"<p>{escape(note)}</p>" for note in table.notes)}</div>'
        if table.notes
        else ""
    )
    kind = ' class="wordy"' if table.wordy else ""
    return (
        f'<div class="table" id="{anchor(table.number)}" role="region" tabindex="0" aria-label="{escape(table.number)}"><table{kind}>'
        f"<caption><span><strong>{escape(table.number)}.</strong> {escape(table.caption)}</span></caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>{notes}"
    )


def _html_row(row: Row) -> str:
    heading, *cells = row.cells
    kind = f' class="{row.kind}"' if row.kind else ""
    return (
        f'<tr{kind}><th scope="row">{_html_cell(heading)}</th>'
        + "".join(f"<td>{_html_cell(cell)}</td>" for cell in cells)
        + "</tr>"
    )


def _html_cell(cell: Cell) -> str:
    text = f"<b>{escape(cell.text)}</b>" if cell.strong else escape(cell.text)
    return f"{text}<small>{escape(cell.detail)}</small>" if cell.detail else text


# Markdown


def to_markdown(page: Page) -> str:
    parts = [f"# {_plain(page.title)}", *(_plain(sentence) for sentence in page.lead)]
    if page.cards:
        parts.append(
            "\n".join(
                f"- **{_plain(card.title)}: {_plain(card.value)}** {_plain(card.detail)}"
                for card in page.cards
            )
        )
    parts.append("\n".join(f"- {_plain(name)}: {_plain(value)}" for name, value in page.facts))
    for section in page.sections:
        parts.append(f"## {_plain(section.title)}")
        parts.extend(_markdown_block(block) for block in section.blocks)
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_block(block: Block) -> str:
    match block:
        case str():
            return _plain(block)
        case Bullets():
            return "\n".join(f"- {_plain(item)}" for item in block.items)
        case Verdicts():
            rows = tuple(
                Row(
                    (
                        Cell(item.statement),
                        Cell(item.verdict, strong=True),
                        Cell(item.figures),
                        Cell(item.shown_in),
                    )
                )
                for item in block.items
            )
            return _markdown_rows(("claim", "verdict", "figures", "shown in"), rows)
        case Picture():
            return f"![{_plain(block.alternative)}]({block.file})\n\n**{_plain(block.number)}.** {_plain(block.caption)}"
        case Table():
            notes = "".join(f"\n\n{_plain(note)}" for note in block.notes)
            return f"**{_plain(block.number)}.** {_plain(block.caption)}\n\n{_markdown_rows(block.header, block.rows)}{notes}"


def _markdown_rows(header: tuple[str, ...], rows: tuple[Row, ...]) -> str:
    lines = ["| " + " | ".join(_plain(name) for name in header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_markdown_cell(cell) for cell in row.cells) + " |" for row in rows]
    return "\n".join(lines)


def _markdown_cell(cell: Cell) -> str:
    text = f"**{_plain(cell.text)}**" if cell.strong else _plain(cell.text)
    return f"{text}<br>{_plain(cell.detail)}" if cell.detail else text


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: no markup of its own, no HTML, no break of a table's row."""
    return (
        re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", " ".join(text.split()))
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
