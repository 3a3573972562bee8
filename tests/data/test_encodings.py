"""Text files in other encodings than UTF-8."""

import gzip
import os
import threading

import pytest

from tensormachines import blocks
from tensormachines._data.files.csv import CsvFile

TEXT = "Größe,Straße\n1.5,Hauptstraße\n2,Café\n3,€uro-Platz\n"
LEVELS = ["Hauptstraße", "Café", "€uro-Platz"]


def levels(path, **settings):
    file = CsvFile(str(path), **settings)
    (block,) = file.blocks(file.names)
    return file.names, block.cells[file.names[1]].levels().names


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("opened", [open, gzip.open])
def test_unicode_is_recognised(tmp_path, encoding, opened):
    path = tmp_path / "table.csv"
    with opened(path, "wb") as file:
        file.write(TEXT.encode(encoding))
    assert levels(path) == (["Größe", "Straße"], LEVELS)


@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_big_endian(tmp_path, mark):
    path = tmp_path / "table.csv"
    path.write_bytes((mark + TEXT).encode("utf-16-be"))
    names, found = levels(path, encoding=None if mark else "utf-16-be")
    assert (names, found) == (["Größe", "Straße"], LEVELS)


def test_western_european_text_is_read_with_a_warning(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    with pytest.warns(UserWarning, match=r"table\.csv is not text in UTF-8: it is read as Windows-1252"):
        found = levels(path)
    assert found == levels(path, encoding="cp1252") == (["Größe", "Straße"], LEVELS)


def test_bytes_that_windows_does_not_have(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("a,b\n1,x\xe9\x81\n".encode("latin-1"))
    with pytest.warns(UserWarning, match="it is read as Latin-1"):
        assert levels(path) == (["a", "b"], ["xé\x81"])


def test_a_far_byte_decides_for_the_whole_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 400_000 + "1,Café\n".encode("cp1252"))
    with pytest.warns(UserWarning, match="Windows-1252"):
        file = CsvFile(str(path))
    names = {name for block in file.blocks(["b"]) for name in block.cells["b"].levels().names}
    assert names == {"x", "Café"}


def test_a_wrong_encoding_is_an_error_that_says_what_to_do(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    with pytest.raises(ValueError, match=r"line 1 of the file .* is not text in UTF-8: pass its encoding"):
        CsvFile(str(path), encoding="UTF8")
    with pytest.raises(ValueError, match="is not text in utf-16: pass its encoding"):
        CsvFile(str(path), encoding="utf-16")


@pytest.mark.parametrize("encoding", ["klingon", "base64", "rot13"])
def test_an_encoding_that_does_not_exist(tmp_path, encoding):
    path = tmp_path / "table.csv"
    path.write_text(TEXT, encoding="utf-8")
    with pytest.raises(ValueError, match=rf'such as "utf-8".* got \'{encoding}\''):
        blocks.csv(path, encoding=encoding)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_are_told_by_their_mark(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[TEXT.encode("utf-16")])
    writer.start()
    assert levels(pipe) == (["Größe", "Straße"], LEVELS)
    writer.join()


def test_a_source_of_blocks(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(TEXT.encode("latin-1", errors="replace"))
    (block,) = blocks.csv(path, target="Größe", encoding="latin-1")
    assert block.y.tolist() == [1.5, 2, 3]


def test_cells_of_any_length(tmp_path):
    long = "x" * 300_000
    path = tmp_path / "table.csv"
    path.write_text(f'a,b\n1,"{long}"\n2,"y"\n', encoding="utf-8")
    assert levels(path)[1] == [long, "y"]
    path.write_text(f'a,"b{long}"\n1,"z"\n', encoding="utf-8")
    assert levels(path) == (["a", f"b{long}"], ["z"])
