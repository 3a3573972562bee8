"""Fit, predict, save, load and export with an installed package; run it from any folder but the sources.

With `--kernel`, a package without its compiled kernel fails.
"""

import contextlib
import io
import sys
import tempfile
from pathlib import Path

import numpy as np

import tensormachines
from tensormachines import TensorMachineClassifier, TensorMachineRegressor, export
from tensormachines._model import native
from tensormachines.cli import main

sources = Path(__file__).resolve().parents[1]
installed = Path(tensormachines.__file__).resolve()
assert sources / "src" not in installed.parents, f"{installed} is not the installed package"
if "--kernel" in sys.argv:
    assert native.extension is not None, "the wheel has no compiled kernel"

X = np.random.default_rng(0).standard_normal((500, 4))
y = X[:, 0] * X[:, 1] + X[:, 2]
model = TensorMachineRegressor(random_state=0).fit(X, y)
assert model.score(X, y) > 0.95
assert TensorMachineClassifier(random_state=0).fit(X, y > 0).score(X, y > 0) > 0.9
with tempfile.TemporaryDirectory() as name:
    path = Path(name, "model.tm")
    model.save(path)
    np.testing.assert_array_equal(tensormachines.load(path).predict(X), model.predict(X))
    assert "double" in export.to_c(model)
    table, fitted = Path(name, "flats.csv"), Path(name, "rent.tm")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["demo", "--table", str(table)]) == 0
        assert main(["fit", str(table), "--target", "rent", "--ignore", "id", "-o", str(fitted)]) == 0
        assert main(["report", str(fitted), str(table), "-o", str(Path(name, "report.html"))]) == 0
print(f"tensormachines {tensormachines.__version__} works from {installed.parent}")
