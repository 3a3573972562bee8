"""Whatever bytes a file has, a reader returns rows or a model, or refuses it by a ValueError: nothing else.

    pip install atheris
    python fuzz/readers.py READER [options of libFuzzer, such as -max_total_time=600]

READER is one of checkpoint, model, arrow, parquet, csv, svmlight and npy. Mutations that no checksum of the
format would let through are given the right one, so that they reach what reads the content.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["tensormachines"]):
    import numpy as np

    import tensormachines
    from tensormachines import TensorMachineRegressor, blocks
    from tensormachines.persistence import container

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = X[:, 0] * X[:, 1]
QUICK = {"degree": 2, "rank": 1, "alpha": 1e-3, "basis": "standard", "max_iter": 3, "random_state": 0}


def _read(source: Any) -> None:
    for chunk in source:
        assert chunk.X.shape[0] == (chunk.X.shape[0] if chunk.y is None else len(chunk.y))


def _resume(path: Path) -> None:
    TensorMachineRegressor(**QUICK, solver="sfo", checkpoint=path).fit(X, Y)


def _load_and_predict(path: Path) -> None:
    path.write_bytes(_sealed(path.read_bytes()))
    model = tensormachines.load(path)
    if getattr(model, "n_features_in_", None) == X.shape[1]:
        with contextlib.suppress(ValueError, TypeError):  # a model of text, for one, takes no numbers
            model.predict(X)


def _sealed(content: bytes) -> bytes:
    header = container.HEADER.pack(container.MAGIC, container.VERSION, 0, len(content), len(content))
    return header + sha256(header + content).digest() + content


READERS: dict[str, Callable[[Path], None]] = {
    "checkpoint": _resume,
    "model": _load_and_predict,
    "arrow": lambda path: _read(blocks.arrow(path, target="y")),
    "parquet": lambda path: _read(blocks.parquet(path, target="y")),
    "csv": lambda path: _read(blocks.csv(path, target="y")),
    "svmlight": lambda path: _read(blocks.svmlight(path)),
    "npy": lambda path: _read(blocks.npy(path)),
}


def seed(reader: str, path: Path) -> None:
    """Write a good file."""
    if reader == "checkpoint":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _resume(path)
    elif reader == "model":
        model = TensorMachineRegressor(**QUICK).fit(X, Y)
        model.save(path)
        content = container._content(path.read_bytes())
        path.write_bytes(content)
    elif reader in ("arrow", "parquet"):
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet

        table = pyarrow.table({"a": X[:, 0], "text": ["b", None] * 20, "y": Y})
        if reader == "arrow":
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
        else:
            pyarrow.parquet.write_table(table, path)
    elif reader == "csv":
        path.write_text('a,when,town,y\n1,2024-01-01,north,3\n1.5 %,2024-02-01,,4\n"1,234",,"a""b",5\n')
    elif reader == "svmlight":
        path.write_text("1 qid:1 1:0.5 3:2 # comment\n-1 2:1e3\n0 1:-4\n")
    else:
        file = io.BytesIO()
        np.save(file, X)
        path.write_bytes(file.getvalue())


def main() -> None:
    reader, options = sys.argv[1], sys.argv[2:]
    warnings.simplefilter("ignore")
    zipfile.ZipExtFile._update_crc = lambda self, data: None  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus"
        corpus.mkdir()
        suffix = {"checkpoint": "npz", "model": "tm"}.get(reader, reader)
        path = folder / f"file.{suffix}"
        seed(reader, corpus / f"seed.{suffix}")

        def try_it(data: bytes) -> None:
            path.write_bytes(data)
            with contextlib.suppress(ValueError):
                READERS[reader](path)

        atheris.Setup([sys.argv[0], *options, str(corpus)], try_it)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
