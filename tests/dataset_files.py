"""The files of data sets as their sources publish them."""

import io
import tarfile
import zipfile

import numpy as np
from scipy import sparse


def csv(table, header=""):
    return (header + "".join(",".join(f"{x:g}" for x in row) + "\n" for row in table)).encode()


def zipped(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), body)
    return file.getvalue()


def tarred(name, body):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    return file.getvalue()


def svmlight(X, y):
    lines = []
    for row, label in zip(X, y, strict=True):
        lines.append(f"{label:+d} " + " ".join(f"{j + 1}:{x:g}" for j, x in enumerate(row) if x) + "\n")
    return "".join(lines).encode()


def rows_of(data):
    """The training rows with their targets, as a set: their order is shuffled."""
    X = data.X_train.toarray() if sparse.issparse(data.X_train) else data.X_train
    return sorted(map(tuple, np.column_stack([X, data.y_train]).tolist()))


def write(folder, name, arrays):
    np.savez(folder / f"{name}.npz", **arrays)
