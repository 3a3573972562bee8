"""A page as data, and its two forms: HTML in a single file, and Markdown with figures in other files."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from .claims import CONFIRMED, MIXED, NOT_TESTABLE, REFUTED, UNDECIDED, Claim

STYLE = Path(__file__).with_name("page.css")


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, a smaller line below it, and whether it is the best of its row."""

    text: str
    detail: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table; the first cell is its heading, `kind` a class of page.css: "ours", "paper" or ""."""

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
class Verdicts:
    items: tuple[Claim, ...]


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
    CONFIRMED: "\N{CHECK MARK}",
    REFUTED: "\N{MULTIPLICATION X}",
    MIXED: "\N{ALMOST EQUAL TO}",
    UNDECIDED: "\N{PLUS-MINUS SIGN}",
    NOT_TESTABLE: "?",
}


def anchor(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


# HTML


def to_html(page: Page) -> str:
    titles = [section.title for section in page.sections]
    contents = "".join(f'<li><a href="#{anchor(title)}">{escape(title)}</a></li>' for title in titles)
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in page.facts
    )
    cards = "".join(_html_card(card) for card in page.cards)
    blocks = [block for section in page.sections for block in section.blocks]
    labels = {block.number for block in blocks if isinstance(block, Table | Picture)}
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
    value = f'<p class="value">{escape(card.value)}</p>'
    return f"<li><h3>{escape(card.title)}</h3>{value}<p>{escape(card.detail)}</p></li>"


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
            items = "".join(_html_verdict(item, labels) for item in block.items)
            return f'<ul class="verdicts">{items}</ul>'
        case Picture():
            source = f"data:image/svg+xml;base64,{b64encode(block.svg).decode('ascii')}"
            caption = f"<strong>{escape(block.number)}.</strong> {escape(block.caption)}"
            return (
                f'<figure id="{anchor(block.number)}"><img src="{source}" alt="{escape(block.alternative)}">'
                f"<figcaption>{caption}</figcaption></figure>"
            )
        case Table():
            return _html_table(block)


def _html_verdict(item: Claim, labels: set[str]) -> str:
    def link(match: re.Match[str]) -> str:
        """Link a table or figure if it is on this page, which it is not without fits."""
        return f'<a href="#{anchor(match[0])}">{match[0]}</a>' if match[0] in labels else match[0]

    shown = re.sub(r"(?:Table|Figure) \d+[a-z]?", link, escape(item.shown_in))
    return (
        f'<li class="{anchor(item.verdict)}"><p class="badge">'
        f'<span aria-hidden="true">{SIGNS.get(item.verdict, "")}</span> {escape(item.verdict)}</p>'
        f'<div><p class="statement">{escape(item.statement)}</p>'
        f"<p>{escape(item.figures)} {shown}</p></div></li>"
    )


def _html_table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    rows = "\n".join(_html_row(row) for row in table.rows)
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    notes = f'<div class="notes">{notes}</div>' if notes else ""
    kind = ' class="wordy"' if table.wordy else ""
    return (
        f'<div class="table" id="{anchor(table.number)}" role="region" tabindex="0" '
        f'aria-label="{escape(table.number)}"><table{kind}>'
        f"<caption><span><strong>{escape(table.number)}.</strong> {escape(table.caption)}</span></caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>{notes}"
    )


def _html_row(row: Row) -> str:
    heading, *cells = row.cells
    kind = f' class="{row.kind}"' if row.kind else ""
    rest = "".join(f"<td>{_html_cell(cell)}</td>" for cell in cells)
    return f'<tr{kind}><th scope="row">{_html_cell(heading)}</th>{rest}</tr>'


def _html_cell(cell: Cell) -> str:
    text = f"<b>{escape(cell.text)}</b>" if cell.strong else escape(cell.text)
    return f"{text}<small>{escape(cell.detail)}</small>" if cell.detail else text


# Markdown


def to_markdown(page: Page) -> str:
    parts = [f"# {_plain(page.title)}", *(_plain(sentence) for sentence in page.lead)]
    cards = [f"- **{_plain(card.title)}: {_plain(card.value)}** {_plain(card.detail)}" for card in page.cards]
    facts = [f"- {_plain(name)}: {_plain(value)}" for name, value in page.facts]
    parts += ["\n".join(cards), "\n".join(facts)]
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
            rows = []
            for item in block.items:
                verdict = Cell(item.verdict, strong=True)
                rows.append(Row((Cell(item.statement), verdict, Cell(item.figures), Cell(item.shown_in))))
            return _markdown_rows(("claim", "verdict", "evidence", "shown in"), rows)
        case Picture():
            image = f"![{_plain(block.alternative)}]({block.file})"
            return f"{image}\n\n**{_plain(block.number)}.** {_plain(block.caption)}"
        case Table():
            title = f"**{_plain(block.number)}.** {_plain(block.caption)}"
            notes = [_plain(note) for note in block.notes]
            return "\n\n".join([title, _markdown_rows(block.header, block.rows), *notes])


def _markdown_rows(header: Sequence[str], rows: Sequence[Row]) -> str:
    lines = ["| " + " | ".join(_plain(name) for name in header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_markdown_cell(cell) for cell in row.cells) + " |" for row in rows]
    return "\n".join(lines)


def _markdown_cell(cell: Cell) -> str:
    text = f"**{_plain(cell.text)}**" if cell.strong else _plain(cell.text)
    return f"{text}<br>{_plain(cell.detail)}" if cell.detail else text


def _plain(text: str) -> str:
    """Escape text for Markdown: no markup, no HTML, no line break in a table's row."""
    return escape(re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", " ".join(text.split())), quote=False)
