"""Whatever arrays X, y and weights are, the compiled kernel computes what the NumPy kernel computes, or they
are refused by a ValueError: nothing else.

    pip install atheris
    python fuzz/kernel.py [options of libFuzzer, such as -max_total_time=600]

Values, strides, alignment, and the arrays of CSR matrices are arbitrary. Run it with the package of
`make sanitize-address` to notice every read outside an array (see the Makefile).
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any

import atheris

with atheris.instrument_imports(include=["tensormachines"]):
    import numpy as np
    from scipy import sparse

    from tensormachines._model import kernel, native
    from tensormachines._model.affine_basis import AffineBasis
    from tensormachines._model.block import Block, canonical
    from tensormachines._model.layout import Layout
    from tensormachines._model.losses import LOGISTIC, SQUARED

COMPILED = native.extension
Data = Any  # atheris.FuzzedDataProvider


def _array(data: Data, length: int, dtype: type) -> np.ndarray:
    """Return so many numbers, with steps between them, backwards, or at odd addresses."""
    step, offset = data.PickValueInList([1, 1, 2, -1]), data.PickValueInList([0, 0, 1])
    size = np.dtype(dtype).itemsize
    n_bytes = 2 * length * size
    content = data.ConsumeBytes(n_bytes).ljust(n_bytes + 1, b"\0")
    array = np.frombuffer(content, np.uint8)[offset : offset + n_bytes].view(dtype)
    return array[:length] if step == 1 else array[::step][:length]


def _indices(data: Data, most: int) -> np.ndarray:
    """Return integers of 32 or 64 bits, most of them from -1 to ``most``."""
    dtype = data.PickValueInList([np.int32, np.int64])
    length = data.ConsumeIntInRange(0, 20)
    high = data.PickValueInList([most, most, 2**31 - 1])
    return np.array([data.ConsumeIntInRange(-1, high) for _ in range(length)], dtype)


def _rows(data: Data, dtype: type) -> Any:
    n_rows, n_columns = data.ConsumeIntInRange(0, 40), data.ConsumeIntInRange(1, 9)
    if data.ConsumeBool():
        X = _array(data, n_rows * n_columns, dtype).reshape(n_rows, n_columns)
        return data.PickValueInList([X, X[::-1], np.asfortranarray(X), X[:, ::-1]])
    X = sparse.csr_array((n_rows, n_columns), dtype=dtype)
    X.indices, X.indptr = _indices(data, n_columns - 1), _indices(data, 20)
    if data.ConsumeBool():
        borders = np.sort(np.clip(np.resize(X.indptr, n_rows + 1), 0, len(X.indices)))
        borders[0] = 0
        X.indptr = borders.astype(X.indices.dtype)
    X.data = _array(data, data.PickValueInList([len(X.indices), 3]), dtype)
    return X


def _evaluate(block: Block, layout: Layout, loss: Any, params: np.ndarray, threads: int) -> list[np.ndarray]:
    value, gradient = kernel.value_and_gradient(block, layout, params, loss, threads)
    found = [value, gradient, kernel.outputs(block, layout, params, threads)]
    return [*found, kernel.terms(block, layout, params, threads)]


def _is_tame(numbers: np.ndarray) -> bool:
    """Tell whether powers of the numbers neither overflow nor vanish, where the kernels may differ."""
    sizes = np.abs(numbers[numbers != 0])
    return bool(((sizes > 1e-6) & (sizes < 1e3)).all())


def _compare(data: Data) -> None:
    dtype = data.PickValueInList([np.float32, np.float64])
    X = canonical(_rows(data, dtype))
    n_rows, n_columns = X.shape
    y = _array(data, n_rows, dtype).reshape(-1, 1)
    weight = _array(data, n_rows, dtype) if data.ConsumeBool() else None
    basis = AffineBasis(n_columns, constant=1.0, unit_rows=data.ConsumeBool()).astype(np.dtype(dtype))
    layout = Layout(basis.width, data.ConsumeIntInRange(1, 4), data.ConsumeIntInRange(1, 3))
    shape = data.ConsumeIntInRange(1, 2), layout.size  # one or two models
    params = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    threads, loss = data.ConsumeIntInRange(1, 3), data.PickValueInList([SQUARED, LOGISTIC])
    y = y if loss is SQUARED else (y > 0).astype(dtype)
    found = []
    for extension in (COMPILED, None):
        native.extension = extension
        found.append(_evaluate(Block(X, basis, y, weight), layout, loss, params, threads))
    tame = all(map(_is_tame, (X.data if sparse.issparse(X) else X, y)))
    tame = tame and (weight is None or (_is_tame(weight) and (weight >= 0).all()))
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        if tame:
            size = np.abs(theirs).max(initial=1)
            np.testing.assert_allclose(ours / size, theirs / size, atol=1e-3 if dtype == np.float32 else 1e-9)


def try_it(content: bytes) -> None:
    with contextlib.suppress(ValueError), np.errstate(all="ignore"):
        _compare(atheris.FuzzedDataProvider(content))


def main() -> None:
    warnings.simplefilter("ignore")
    assert COMPILED is not None, "the package has no compiled kernel"
    atheris.Setup(sys.argv, try_it)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
