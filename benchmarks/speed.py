"""Speed of the kernel and of what is built on it, against rivals and against the machine's limit.

    python benchmarks/speed.py [--quick]

Everything runs on one thread and is measured in CPU time, in interleaved rounds, so that a busy machine
disturbs all rivals alike; what counts are ratios of medians. The limit of an evaluation is the longer of two
times measured in the same rounds: its 4 n d R floating-point operations at the speed of a 1536-square matrix
product, and the bytes of X at the speed of reading them."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._fit.solvers.lbfgs import lbfgs
from tensormachines._fit.solvers.protocol import minimise
from tensormachines._model import kernel, native, numpy_kernel
from tensormachines._model.basis import Basis, Lifted
from tensormachines._model.block import Block, BlocksInMemory
from tensormachines._model.layout import Layout
from tensormachines._model.losses import LOGISTIC, SQUARED, Loss
from tensormachines._model.objective import Objective

warnings.simplefilter("ignore", ConvergenceWarning)


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


def make(shape: Shape, dtype: Any = np.float32) -> tuple[Block, Layout, np.ndarray]:
    rng = np.random.default_rng(0)
    X: Any
    if shape.entries:
        indices = np.sort(rng.integers(0, shape.columns, (shape.rows, shape.entries), dtype=np.int32), axis=1)
        indptr = np.arange(shape.rows + 1, dtype=np.int32) * shape.entries
        X = sparse.csr_array(
            (np.ones(indices.size, dtype), indices.ravel(), indptr), shape=(shape.rows, shape.columns)
        )
    else:
        X = rng.standard_normal((shape.rows, shape.columns), dtype=np.float32).astype(dtype) / dtype(
            np.sqrt(shape.columns)
        )
    y = (rng.random((shape.rows, 1)) < 0.5).astype(dtype)
    layout = Layout(shape.columns, shape.degree, shape.rank)
    params = rng.standard_normal((1, layout.size), dtype=np.float32).astype(dtype)
    if shape.entries:
        params /= np.sqrt(shape.entries)
    return Block(X, Basis(shape.columns), y), layout, params


# ---- rivals: one value and gradient each, all of X at once


def numpy_rival(block: Block, layout: Layout, params: np.ndarray, loss: Loss) -> Callable[[], Any]:
    def evaluate() -> Any:
        rows = numpy_kernel.TensorRows(Lifted(block.X), layout, params[0])
        losses, slope = loss.pointwise(block.targets, numpy_kernel.sum_up(rows, layout, params[0]))
        return losses.sum(dtype=np.float64), slope.sum(), rows.gradient(slope)

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


# ---- measurement


def cpu(call: Callable[[], Any], clock: Callable[[], float] = time.thread_time) -> float:
    began = clock()
    call()
    return clock() - began


def interleaved(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each call, measured in turn, after one round that is not counted.

    PyTorch and JAX compute in threads of their own, so theirs is the time of the process; for the others that
    would count what is left of the rivals' threads."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_number in range(rounds + 1):
        for name, call in calls.items():
            seconds = cpu(call, time.process_time if name in ("torch", "jax") else time.thread_time)
            if round_number:
                times[name].append(seconds)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}


def memory(field: str) -> float:
    """A field of this process's status, in MB; 0 where the system has none."""
    status = Path("/proc/self/status")
    found = re.search(rf"{field}:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else 0.0


def peak_memory(call: Callable[[], Any]) -> float:
    """How far the resident memory rises above its level before the call, in MB."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")
    before = memory("VmRSS")
    call()
    return memory("VmHWM") - before


def table(title: str, header: list[str], rows: list[list[str]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


# ---- the tables


def evaluations(shapes: list[Shape], rounds: int) -> None:
    square = np.random.default_rng(0).random((1536, 1536), dtype=np.float32)
    rows, ratios = [], []
    for shape in shapes:
        block, layout, params = make(shape)
        calls: dict[str, Callable[[], Any] | None] = {
            "tensormachines": partial(kernel.value_and_gradient, block, layout, params, shape.loss),
            "numpy": numpy_rival(block, layout, params, shape.loss),
            "product": lambda: square @ square,
        }
        if not shape.entries:
            calls["torch"] = torch_rival(block, layout, params, shape.loss)
            calls["jax"] = jax_rival(block, layout, params, shape.loss)
            calls["read"] = block.X.max
        present = {name: call for name, call in calls.items() if call is not None}
        t = interleaved(present, rounds)
        ours = t["tensormachines"]
        speed = 2 * 1536**3 / t["product"]
        limit = (
            0.0
            if shape.entries
            else max(4 * shape.rows * shape.columns * layout.n_projections / speed, t["read"])
        )
        extra = peak_memory(present["tensormachines"])
        rows.append(
            [
                shape.name,
                f"{ours * 1e3:.2f}",
                *(
                    f"{t[name] * 1e3:.2f} ({t[name] / ours:.1f}x)" if name in t else "-"
                    for name in ("numpy", "torch", "jax")
                ),
                f"{limit * 1e3:.2f}" if limit else "-",
                f"{limit / ours:.0%}" if limit else f"{t['numpy'] / ours:.1f}x scipy",
                f"{shape.target:.0%}" if limit else f"{shape.target:.0f}x",
                f"{speed / 1e9:.0f}",
                f"{extra:.0f}",
            ]
        )
        if not shape.entries:
            ratios.append({name: t[name] / ours for name in ("numpy", "torch", "jax") if name in t})
    table(
        "One value and gradient, float32, one thread: CPU milliseconds, medians of interleaved rounds",
        [
            "shape",
            "tensormachines",
            "NumPy / scipy.sparse",
            "PyTorch",
            "JAX",
            "limit",
            "reached",
            "asked",
            "GFLOP/s of the product",
            "MB beyond X",
        ],
        rows,
    )
    for name in ("numpy", "torch", "jax"):
        found = [ratio[name] for ratio in ratios if name in ratio]
        if found:
            print(
                f"\n{name}: {np.exp(np.mean(np.log(found))):.1f} times our time, geometric mean over the dense shapes."
            )


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
        calls = {}
        for value in values:
            shape = Shape("", **{**options, field: value})
            block, layout, params = make(shape)
            calls[str(value)] = partial(kernel.value_and_gradient, block, layout, params, SQUARED)
        t = list(interleaved(calls, rounds).values())
        slope = np.polyfit(np.log(values), np.log(t), 1)[0]
        rows.append(
            [
                field,
                *(f"{value}: {seconds * 1e3:.2f}" for value, seconds in zip(values, t, strict=True)),
                f"{slope:.2f}",
            ]
        )
    table(
        "Cost over doublings: CPU milliseconds, and the slope of log time against log size",
        ["of", "", "", "", "", "slope"],
        rows,
    )


def prediction(rounds: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 54)).astype(np.float32)
    y = X[:, 0] * X[:, 1]
    rows = []
    one = X[:1]
    machine, ridge = (
        TensorMachineRegressor(degree=4, rank=5, max_iter=5, random_state=0).fit(X, y),
        Ridge().fit(X, y),
    )

    def repeated(predict: Callable[[Any], Any]) -> None:
        for _ in range(500):
            predict(one)

    t = interleaved(
        {"machine": partial(repeated, machine.predict), "ridge": partial(repeated, ridge.predict)},
        max(rounds, 9),
    )
    rows.append(
        [
            "one row, microseconds",
            f"{t['machine'] * 2000:.1f}",
            f"Ridge {t['ridge'] * 2000:.1f}",
            f"{t['machine'] / t['ridge']:.2f}x Ridge",
            "1.3x",
        ]
    )
    million = rng.standard_normal((1_000_000, 54), dtype=np.float32)
    for basis in (None, "standard", "sphere"):
        model = TensorMachineClassifier(degree=4, rank=5, basis=basis, max_iter=5, random_state=0).fit(
            X, y > 0
        )
        seconds = interleaved(
            {
                "outputs": partial(model._machine.outputs, million),
                "decision_function": partial(model.decision_function, million),
            },
            rounds,
        )
        rows.append(
            [
                f"a million rows, basis={basis!r}, million rows a second",
                f"{1 / seconds['outputs']:.1f}",
                f"with scikit-learn's checks {1 / seconds['decision_function']:.1f}",
                "",
                "10",
            ]
        )
    table(
        "Prediction, degree 4, rank 5, 54 columns, float32, one thread",
        ["what", "tensormachines", "beside", "ratio", "asked"],
        rows,
    )


def solver_share(shapes: list[Shape]) -> None:
    rows = []
    for shape in shapes:
        block, layout, params = make(shape)
        objective = Objective(BlocksInMemory([block]), layout, shape.loss, 1e-4)
        inside = 0.0

        def timed(points: np.ndarray, objective: Objective = objective) -> Any:
            nonlocal inside
            began = time.thread_time()
            result = objective(points)
            inside += time.thread_time() - began
            return result

        iterations = 12 if shape.columns > 100_000 else 25
        total = cpu(partial(minimise, timed, [lbfgs(params[0] * 0.3, max_iter=iterations, tol=0)]))
        rows.append([shape.name, f"{layout.size:,}", f"{total:.2f}", f"{1 - inside / total:.1%}", "10 %"])
    table(
        "L-BFGS: share of CPU time outside the objective",
        ["shape", "parameters", "seconds", "outside", "asked"],
        rows,
    )


def facts() -> None:
    cpu_info = Path("/proc/cpuinfo")
    name = re.search(r"model name\s*:\s*(.*)", cpu_info.read_text()) if cpu_info.exists() else None
    versions = [
        f"Python {platform.python_version()}",
        f"NumPy {np.__version__}",
        f"SciPy {scipy.__version__}",
        f"scikit-learn {sklearn.__version__}",
    ]
    for module in ("torch", "jax"):
        if module in sys.modules:
            versions.append(f"{module} {sys.modules[module].__version__}")
    instructions = native.extension.instructions() if native.extension else "NumPy kernel"
    print(
        f"\n{name[1] if name else platform.processor()}, {os.cpu_count()} cores, instructions {instructions}; {', '.join(versions)}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed against rivals and against the machine's limit.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, without the widest shape")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--shapes", nargs="*", help="only these shapes, and only their evaluation")
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds
    shapes = [shape for shape in SHAPES if not (options.quick and shape.columns > 100_000)]
    if options.shapes:
        return evaluations([shape for shape in SHAPES if shape.name in options.shapes], rounds)
    evaluations(shapes, rounds)
    linearity(rounds)
    prediction(rounds)
    solver_share(shapes)
    facts()


if __name__ == "__main__":
    main()
