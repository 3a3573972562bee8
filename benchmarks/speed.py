"""How fast is one value and gradient, and what is built on it, against rivals and the machine's limit?

    python benchmarks/speed.py [--quick] [--shapes Year Forest]    # or: make bench

Everything runs on one thread and is measured in CPU time, in interleaved rounds, so that a busy machine
disturbs all rivals alike; what counts are ratios of medians. The limit of an evaluation is the longer of two
times measured in the same rounds: its 4 n d R floating-point operations at the speed of a 1536-square matrix
product, and the bytes of X at the speed of reading them."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from timing import interleaved, one_thread, rise_of_memory, timed

one_thread()

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from records import print_facts, table
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._fit.solvers.lbfgs import lbfgs
from tensormachines._fit.solvers.protocol import minimise
from tensormachines._model import kernel, native, numpy_kernel
from tensormachines._model.basis import AffineBasis, AffineRows
from tensormachines._model.block import Block, BlocksInMemory
from tensormachines._model.layout import Layout
from tensormachines._model.losses import LOGISTIC, SQUARED, Loss
from tensormachines._model.objective import Objective

RIVALS = {"numpy": "NumPy / scipy.sparse", "torch": "PyTorch", "jax": "JAX"}
THREADED = ("torch", "jax")


@dataclass(frozen=True)
class Shape:
    name: str
    rows: int
    columns: int
    degree: int
    rank: int
    loss: Loss
    entries: int = 0  # non-zeros a row; 0: dense
    target: float = 0.0  # share of the limit, or for sparse X the ratio to scipy.sparse


SHAPES = [
    Shape("Year", 463_715, 90, 2, 5, SQUARED, target=0.85),
    Shape("Slice", 42_291, 384, 5, 3, SQUARED, target=0.85),
    Shape("Forest", 522_910, 54, 4, 5, LOGISTIC, target=0.85),
    Shape("Cod-rna", 59_535, 8, 4, 3, LOGISTIC, target=0.60),
    Shape("Gisette", 6_000, 5_000, 3, 4, LOGISTIC, target=0.75),
    Shape("Adult", 32_561, 122, 3, 4, LOGISTIC, entries=14, target=3.0),
    Shape("Wide", 200_000, 1_000_000, 2, 8, LOGISTIC, entries=50, target=3.0),
]


def make(shape: Shape) -> tuple[Block, Layout, np.ndarray]:
    rng = np.random.default_rng(0)
    X: Any
    if shape.entries:
        indices = np.sort(rng.integers(0, shape.columns, (shape.rows, shape.entries), dtype=np.int32), axis=1)
        indptr = np.arange(shape.rows + 1, dtype=np.int32) * shape.entries
        entries = np.ones(indices.size, np.float32)
        X = sparse.csr_array((entries, indices.ravel(), indptr), shape=(shape.rows, shape.columns))
    else:
        X = rng.standard_normal((shape.rows, shape.columns), dtype=np.float32)
        X /= np.float32(np.sqrt(shape.columns))
    y = (rng.random((shape.rows, 1)) < 0.5).astype(np.float32)
    layout = Layout(shape.columns, shape.degree, shape.rank)
    params = rng.standard_normal((1, layout.size), dtype=np.float32)
    if shape.entries:
        params /= np.float32(np.sqrt(shape.entries))
    return Block(X, AffineBasis(shape.columns), y), layout, params


def numpy_rival(block: Block, layout: Layout, params: np.ndarray, loss: Loss) -> Callable[[], Any]:
    """Return a call that makes one value and gradient of all of X at once; so do the other rivals."""

    def evaluate() -> Any:
        rows = numpy_kernel.TensorRows(AffineRows(block.X), layout, params[0])
        losses, slope = loss.pointwise(block.targets, numpy_kernel.sum_up(rows, layout, params[0]))
        of_terms = np.repeat(slope[:, :, None], layout.n_terms, axis=2)
        return losses.sum(dtype=np.float64), slope.sum(), rows.gradient(slope, of_terms)

    return evaluate


def torch_rival(block: Block, layout: Layout, params: np.ndarray, loss: Loss) -> Callable[[], Any] | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    X, y = torch.from_numpy(block.X), torch.from_numpy(block.targets[:, 0])
    V = torch.from_numpy(np.ascontiguousarray(layout.factors(params)[0, :, 0])).requires_grad_()
    bias = torch.zeros(1, requires_grad=True)

    def evaluate() -> Any:
        z = X @ V
        f = bias + z[:, 0]
        for p, columns in layout.degrees():
            f = f + z[:, columns].reshape(-1, p, layout.rank).prod(dim=1).sum(dim=1)
        total = (
            0.5 * ((f - y) ** 2).sum()
            if loss is SQUARED
            else torch.nn.functional.binary_cross_entropy_with_logits(f, y, reduction="sum")
        )
        return torch.autograd.grad(total, (V, bias))

    return evaluate


def jax_rival(block: Block, layout: Layout, params: np.ndarray, loss: Loss) -> Callable[[], Any] | None:
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    X, y = jnp.asarray(block.X), jnp.asarray(block.targets[:, 0])
    V = jnp.asarray(layout.factors(params)[0, :, 0])

    def total(V: Any, bias: Any, X: Any, y: Any) -> Any:
        z = X @ V
        f = bias + z[:, 0]
        for p, columns in layout.degrees():
            f = f + z[:, columns].reshape(-1, p, layout.rank).prod(axis=1).sum(axis=1)
        return 0.5 * ((f - y) ** 2).sum() if loss is SQUARED else (jnp.logaddexp(0, f) - y * f).sum()

    compiled = jax.jit(jax.value_and_grad(total, argnums=(0, 1)))

    def evaluate() -> Any:
        return jax.block_until_ready(compiled(V, 0.0, X, y))

    evaluate()
    return evaluate


def show(title: str, names: list[str], rows: list[list[str]]) -> None:
    print(f"\n### {title}\n\n{table(names, rows)}", flush=True)


def evaluations(shapes: list[Shape], rounds: int) -> None:
    square = np.random.default_rng(0).random((1536, 1536), dtype=np.float32)
    rows, ratios = [], []
    for shape in shapes:
        block, layout, params = make(shape)
        problem = (block, layout, params, shape.loss)
        calls: dict[str, Callable[[], Any] | None] = {
            "ours": partial(kernel.value_and_gradient, *problem),
            "numpy": numpy_rival(*problem),
            "product": lambda: square @ square,
        }
        if not shape.entries:
            calls |= {"torch": torch_rival(*problem), "jax": jax_rival(*problem), "read": block.X.max}
        present = {name: call for name, call in calls.items() if call is not None}
        t = interleaved(present, rounds, THREADED)
        speed = 2 * 1536**3 / t["product"]
        limit = max(4 * shape.rows * shape.columns * layout.n_columns / speed, t.get("read", 0.0))
        slower = {name: t[name] / t["ours"] for name in RIVALS if name in t}
        cells = [f"{t[name] * 1e3:.2f} ({slower[name]:.1f}x)" if name in t else "-" for name in RIVALS]
        if shape.entries:
            cells += ["-", f"{slower['numpy']:.1f}x scipy", f"{shape.target:.0f}x"]
        else:
            cells += [f"{limit * 1e3:.2f}", f"{limit / t['ours']:.0%}", f"{shape.target:.0%}"]
            ratios.append(slower)
        cells += [f"{speed / 1e9:.0f}", f"{rise_of_memory(present['ours']):.0f}"]
        rows.append([shape.name, f"{t['ours'] * 1e3:.2f}", *cells])
    names = [
        "shape",
        "tensormachines",
        *RIVALS.values(),
        "limit",
        "reached",
        "asked",
        "GFLOP/s",
        "MB beyond X",
    ]
    show("One value and gradient, float32: CPU milliseconds, medians of interleaved rounds", names, rows)
    for name, title in RIVALS.items():
        found = [slower[name] for slower in ratios if name in slower]
        if found:
            mean = np.exp(np.mean(np.log(found)))
            print(f"\n{title}: {mean:.1f} times our time, geometric mean over the dense shapes.")


def linearity(rounds: int) -> None:
    base: dict[str, Any] = {"rows": 40_000, "columns": 64, "degree": 3, "rank": 4, "loss": SQUARED}
    cases = [
        ("rows", base, [20_000, 40_000, 80_000, 160_000]),
        ("columns", base, [64, 128, 256, 512]),
        ("rank", base, [2, 4, 8, 16]),
        ("entries", {**base, "columns": 1000, "entries": 20}, [10, 20, 40, 80]),
    ]
    rows = []
    for field, options, values in cases:
        made = {str(value): make(Shape("", **{**options, field: value})) for value in values}
        calls = {name: partial(kernel.value_and_gradient, *each, SQUARED) for name, each in made.items()}
        t = interleaved(calls, rounds)
        slope = np.polyfit(np.log(values), np.log([*t.values()]), 1)[0]
        rows.append([field, *(f"{name}: {seconds * 1e3:.2f}" for name, seconds in t.items()), f"{slope:.2f}"])
    title = "Cost over doublings: CPU milliseconds, and the slope of log time against log size"
    show(title, ["of", "", "", "", "", "slope"], rows)


def prediction(rounds: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 54)).astype(np.float32)
    y, one, times = X[:, 0] * X[:, 1], X[:1], 500
    settings: dict[str, Any] = {"degree": 4, "rank": 5, "alpha": 1e-4, "solver": "lbfgs", "max_iter": 5}
    settings |= {"random_state": 0}

    def repeated(predict: Callable[[Any], Any]) -> None:
        for _ in range(times):
            predict(one)

    models = {
        "machine": TensorMachineRegressor(basis="standard", **settings).fit(X, y),
        "ridge": Ridge().fit(X, y),
    }
    t = interleaved(
        {name: partial(repeated, model.predict) for name, model in models.items()}, max(rounds, 9)
    )
    machine, ridge = (t[name] * 1e6 / times for name in models)
    rows = [
        ["one row, microseconds", f"{machine:.1f}", f"Ridge {ridge:.1f}", f"{machine / ridge:.2f}x", "1.3x"]
    ]
    million = rng.standard_normal((1_000_000, 54), dtype=np.float32)
    for basis in (None, "standard", "sphere"):
        model = TensorMachineClassifier(basis=basis, **settings).fit(X, y > 0)
        calls = {
            "outputs": partial(model._machine.outputs, million),
            "checked": partial(model.decision_function, million),
        }
        t = interleaved(calls, rounds)
        checked = f"with scikit-learn's checks {1 / t['checked']:.1f}"
        rows.append([f"million rows a second, basis={basis!r}", f"{1 / t['outputs']:.1f}", checked, "", "10"])
    title = "Prediction, degree 4, rank 5, 54 columns, float32"
    show(title, ["what", "tensormachines", "compared with", "ratio", "asked"], rows)


def solver_share(shapes: list[Shape]) -> None:
    rows = []
    for shape in shapes:
        block, layout, params = make(shape)
        objective = Objective(BlocksInMemory([block]), layout, shape.loss, 1e-4)
        inside = 0.0

        def evaluate(points: np.ndarray, objective: Objective = objective) -> Any:
            nonlocal inside
            result, seconds = timed(partial(objective, points), time.thread_time)
            inside += seconds
            return result

        iterations = 12 if shape.columns > 100_000 else 25
        solver = lbfgs(params[0] * 0.3, max_iter=iterations, tol=0)
        _, total = timed(partial(minimise, evaluate, [solver]), time.thread_time)
        rows.append([shape.name, f"{layout.size:,}", f"{total:.2f}", f"{1 - inside / total:.1%}", "10 %"])
    names = ["shape", "parameters", "seconds", "outside", "asked"]
    show("L-BFGS: share of CPU time outside the objective", names, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, without the widest shape")
    parser.add_argument("--rounds", type=int, default=9)
    names = [shape.name for shape in SHAPES]
    parser.add_argument("--shapes", nargs="+", choices=names, help="only these, and only their evaluation")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rounds = 3 if options.quick else options.rounds
    chosen = options.shapes or [name for name in names if not (options.quick and name == "Wide")]
    shapes = [shape for shape in SHAPES if shape.name in chosen]
    evaluations(shapes, rounds)
    if not options.shapes:
        linearity(rounds)
        prediction(rounds)
        solver_share(shapes)
    print_facts([0], ("torch", "jax"))
    print(f"Instructions: {native.extension.instructions() if native.extension else 'none, NumPy kernel'}.")


if __name__ == "__main__":
    main()
