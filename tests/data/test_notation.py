"""Numbers with thousands separators, currencies and per cent signs."""

import numpy as np
import pytest

from tensormachines import blocks
from tensormachines._data.files.cells import Spelling, TextCells, WrongCellError
from tensormachines._data.files.notation import Notation, decide

DECIDED = [
    (["1,234.50", "17", "-2,000,000"], ".", Notation(","), [1234.5, 17, -2e6]),
    ([f"{350 * k:,}" for k in range(1, 14)], ".", Notation(","), [350 * k for k in range(1, 14)]),
    (["$1,234", "$5,678"], ".", Notation(",", "$"), [1234, 5678]),
    (["$ 12", "-$3.50", "$-4"], ".", Notation("", "$"), [12, -3.5, -4]),
    (["12 €", "7€"], ".", Notation("", "€"), [12, 7]),
    (["1.234,50 €", "2,5 €"], ",", Notation(".", "€"), [1234.5, 2.5]),
    (["7.5 %", "12%", "-1 %"], ".", Notation("", "%"), [7.5, 12, -1]),
    (["1'234", "12'000"], ".", Notation("'"), [1234, 12000]),
    (["1 234,5", "12\u00a0000"], ",", Notation(" "), [1234.5, 12000]),
]
DOUBTFUL = [
    (["1,234", "5,678"], "."),  # perhaps decimal commas
    (["1,234", "950"] * 20, "."),
    ([f"{1000 + k:,}" for k in range(50)], "."),
    (["1,234 %", "5,678 %"], "."),
    (["1.234", "5.678"], ","),
    (["0,123", "0,456"], "."),
    (["1,234", "1234"], "."),  # two ways of writing thousands
    (["12,34", "1,234,567"], "."),
    (["$5", "€5"], "."),
    (["$5", "5"], "."),
    (["5 %", "0.05"], "."),
    (["5 %", "five"], "."),
    (["$5€", "$6"], "."),
    (["--5", "1,234.5"], "."),
    (["2024-01-02", "2024-01-03"], "."),
    (["$", "$5"], "."),
    ([], "."),
    (["1", "2.5"], "."),
]


@pytest.mark.parametrize(("texts", "decimal", "notation", "values"), DECIDED)
def test_certain_columns(texts, decimal, notation, values):
    assert decide(texts, decimal) == notation
    assert [float(notation.plain(text, decimal)) for text in texts] == values
    assert Notation.parse(str(notation)) == notation
    spelling = Spelling()
    cells = TextCells([*texts, "", "NA"], decimal, spelling=spelling)
    np.testing.assert_array_equal(cells.numbers(), [*values, np.nan, np.nan])
    assert spelling == Spelling(notation, decided=True)


@pytest.mark.parametrize(("texts", "decimal"), DOUBTFUL)
def test_doubtful_columns_are_left_alone(texts, decimal):
    assert decide(texts, decimal) is None


def test_the_first_rows_decide():
    plain, marked = Spelling(), Spelling()
    TextCells(["", "?"], spelling=plain).numbers()
    assert not plain.decided
    TextCells(["17", "950"], spelling=plain).numbers()
    with pytest.raises(WrongCellError, match=r"'1,234\.5', where a number is needed"):
        TextCells(["1,234.5"], spelling=plain).numbers()
    TextCells(["1,234.5"], spelling=marked).numbers()
    assert TextCells(["1,234", "5"], spelling=marked).numbers().tolist() == [1234, 5]


def test_a_known_notation_is_read_and_no_other():
    money = Spelling(Notation(",", "$"), decided=True)
    assert TextCells(["1,234", "$5", "6"], spelling=money).numbers().tolist() == [1234, 5, 6]
    for wrong in ("5 %", "1.234,5", "€5", "x"):
        with pytest.raises(WrongCellError, match=r"the sign \$ and commas between thousands"):
            TextCells(["$5", wrong], spelling=money).numbers()
    share = Spelling(Notation("", "%"), decided=True)
    with pytest.raises(WrongCellError, match=r"'0\.05', in a column with a per cent sign"):
        TextCells(["0.05"], spelling=share).numbers()


@pytest.mark.parametrize("text", ["", "x", "%%", "$x", ",,"])
def test_a_notation_that_does_not_exist(text):
    with pytest.raises(ValueError, match="unknown notation"):
        Notation.parse(text)


def test_a_source_of_blocks_reads_them(tmp_path):
    path = tmp_path / "table.csv"
    lines = [f'"{700 * i:,}",{i} %,${i}.50,"{i},{i}{i}{i}"' for i in range(1, 20)]
    path.write_text("\n".join(["worth,share,price,code", *lines]) + "\n", encoding="utf-8")
    source = blocks.csv(path, target="price", rows=15, columns=["worth", "share"])
    for _ in range(2):
        chunks = list(source)
        X, y = np.concatenate([chunk.X for chunk in chunks]), np.concatenate([chunk.y for chunk in chunks])
        np.testing.assert_array_equal(X, [[700 * i, i] for i in range(1, 20)])
        np.testing.assert_array_equal(y, [i + 0.5 for i in range(1, 20)])
    (block,) = blocks.csv(path, columns=["code"])
    assert block.X.column("code").names[0] == "1,111"
