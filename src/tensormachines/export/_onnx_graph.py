"""Linear forms and the sums of their products as nodes of an ONNX graph.

Do not multiply a matrix product by a number that is not exact in float32: onnxruntime fuses the two into one
node, which keeps the number in float32 even if everything else is in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._data.frame import is_number
from .._model.affine_basis import AffineBasis
from .._model.linear_forms import LinearForms


def require_skl2onnx() -> None:
    try:
        import skl2onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Exports to ONNX need onnx and skl2onnx: pip install "tensormachines[onnx]".'
        ) from error


def labels_array(forms: LinearForms) -> np.ndarray:
    """Return the classes in ONNX types: strings, floats, or int64 for integers and booleans."""
    labels = forms.labels
    if isinstance(labels[0], str | float):
        return np.array(labels)
    if any(isinstance(label, int) and label > np.iinfo(np.int64).max for label in labels):
        raise NotImplementedError(
            f"to_onnx writes classes as int64, which cannot hold all of {labels}: use other labels."
        )
    return np.array(labels, dtype=np.int64)


class Graph:
    """A container of skl2onnx to which nodes are added; a node is identified by the name of its output."""

    def __init__(self, scope: Any, container: Any):
        self.scope = scope
        self.container = container

    def node(
        self, operator: str, *inputs: str, name: str | None = None, domain: str = "", **attributes: Any
    ) -> str:
        name = name or self.scope.get_unique_variable_name("tm_" + operator.lower())
        version = {"": None, "ai.onnx.ml": 2}[domain]
        self.container.add_node(
            operator, list(inputs), name, op_domain=domain, op_version=version, **attributes
        )
        return name

    def constant(self, array: np.ndarray) -> str:
        from onnx import TensorProto

        kind = {"f": TensorProto.DOUBLE, "i": TensorProto.INT64, "U": TensorProto.STRING}[array.dtype.kind]
        content = (
            [text.encode() for text in array.tolist()] if array.dtype.kind == "U" else array.ravel().tolist()
        )
        name = self.scope.get_unique_variable_name("tm_constant")
        self.container.add_initializer(name, kind, list(array.shape), content)
        return name

    def cast(self, value: str, kind: str, name: str | None = None) -> str:
        from onnx import TensorProto

        return self.node("Cast", value, name=name, to=getattr(TensorProto, kind))

    def sorted(self, values: str, width: int) -> str:
        """Sort each row of values (rows, width)."""
        names = [self.scope.get_unique_variable_name(f"tm_{of}") for of in ("sorted", "places")]
        inputs = [values, self.constant(np.array([width]))]
        self.container.add_node("TopK", inputs, names, op_version=None, axis=1, largest=0)
        return names[0]

    def sum(self, *values: str) -> str:
        total, *others = values
        for value in others:
            total = self.node("Add", total, value)
        return total


def outputs_of(forms: LinearForms, graph: Graph, inputs: Any) -> str:
    """Add the outputs to the graph, (rows, n_outputs), in float64."""
    described, n_outputs = forms.description, forms.n_outputs
    columns = list(_columns(forms, graph, inputs))
    entries = None
    if forms.affine:
        entries = _affine(forms, forms.affine, graph, columns)
        row = graph.node("MatMul", entries, graph.constant(forms.weights))
    else:
        row = _spline(forms, graph, columns)
    linear = _gather(graph, row, np.arange(n_outputs))
    sums = [linear, graph.constant(described.intercept.astype(np.float64))]
    first = n_outputs
    for p, factors in described.factors.items():
        counts = forms.n_terms.get(p, [described.layout.rank] * described.layout.n_sets)
        n_terms = sum(counts)
        if n_terms == 0:
            continue
        if entries is None or described.terms == "products":
            terms = _gather(graph, row, first + p * np.arange(n_terms))
            for j in range(1, p):
                terms = graph.node("Mul", terms, _gather(graph, row, first + p * np.arange(n_terms) + j))
            first += p * n_terms
        else:
            terms = _sums_over_sets(graph, entries, factors.reshape(n_terms, -1).astype(np.float64), p)
        outputs = (
            forms.term_weights[p].T if forms.term_weights else np.repeat(np.eye(n_outputs), counts, axis=0)
        )
        sums.append(graph.node("MatMul", terms, graph.constant(outputs)))
    return graph.sum(*sums)


def _gather(graph: Graph, values: str, columns: np.ndarray) -> str:
    return graph.node("Gather", values, graph.constant(columns.astype(np.int64)), axis=1)


def _columns(forms: LinearForms, graph: Graph, inputs: Any) -> Iterator[str]:
    """Yield each column, (rows, 1): numbers in float64, categories as the index of their state in int64."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    widths = [variable.type.shape[1] if len(inputs) > 1 else forms.n_columns for variable in inputs]
    if sum(widths) != forms.n_columns:
        raise ValueError(
            f"The inputs must have {forms.n_columns} columns in all, as in the fit, got {sum(widths)}."
        )
    places = [
        (variable, k, width) for variable, width in zip(inputs, widths, strict=True) for k in range(width)
    ]
    for j, (variable, k, width) in enumerate(places):
        value = variable.full_name if width == 1 else _gather(graph, variable.full_name, np.array([k]))
        column, text = forms.description.columns[j], isinstance(variable.type, StringTensorType)
        if column.levels is None:
            if text:
                name = forms.description.names[j]
                raise ValueError(f"The input of column {name!r} must be numbers, got strings.")
            yield graph.cast(value, "DOUBLE")
            continue
        missing = len(forms.tables[j]) - 1
        states = {"": missing}
        numeric = isinstance(variable.type, FloatTensorType | DoubleTensorType)
        if numeric:
            states["NaN"] = missing
        states |= {level: code for code, level in enumerate(column.levels)}
        if numeric:
            single = isinstance(variable.type, FloatTensorType)
            for code, level in enumerate(column.levels):
                for text_of_number in _as_cast(level, single):
                    states.setdefault(text_of_number, code)
        yield graph.node(
            "LabelEncoder",
            value if text else graph.cast(value, "STRING"),
            domain="ai.onnx.ml",
            keys_strings=list(states),
            values_int64s=list(states.values()),
            default_int64=len(column.levels),
        )


def _as_cast(level: str, single: bool) -> list[str]:
    """Return how ONNX Runtime may spell a level that is a number: with 8 or 17 digits, by its version."""
    if not is_number(level):
        return []
    with np.errstate(over="ignore"):
        value = float(np.float32(level)) if single else float(level)
    return [f"{value:.{digits}g}" for digits in (8, 17)]


def _affine(forms: LinearForms, basis: AffineBasis, graph: Graph, columns: list[str]) -> str:
    numbers = graph.node("Concat", *columns, axis=1)
    entries = graph.node("Sub", numbers, graph.constant(forms.center))
    if forms.n_columns == 1:
        entries = graph.node("MatMul", entries, graph.constant(forms.scale[:, None]))
    else:
        entries = graph.node("Mul", entries, graph.constant(forms.scale))
    if np.isfinite(basis.clip):
        entries = graph.node(
            "Clip", entries, graph.constant(np.array(-basis.clip)), graph.constant(np.array(basis.clip))
        )
    if basis.constant:  # appended to all rows by a product with an identity that has one more column
        widened = graph.node("MatMul", entries, graph.constant(np.eye(len(columns), basis.width)))
        entries = graph.node("Add", widened, graph.constant(basis.constant * np.eye(basis.width)[-1]))
    if basis.unit_rows:
        squares = graph.node(
            "MatMul", graph.node("Mul", entries, entries), graph.constant(np.ones((basis.width, 1)))
        )
        norm = graph.node("Sqrt", squares)
        is_zero = graph.cast(graph.node("Not", graph.cast(norm, "BOOL")), "DOUBLE")
        entries = graph.node("Div", entries, graph.node("Add", norm, is_zero))
    return entries


def _spline(forms: LinearForms, graph: Graph, columns: list[str]) -> str:
    parts = [graph.constant(forms.offset)]
    numbers = {j: knots for j in range(forms.n_columns) if (knots := forms.knots(j)) is not None}
    for j, value in enumerate(columns):
        if j not in numbers:
            state = graph.node("Reshape", value, graph.constant(np.array([-1])))
            parts.append(graph.node("Gather", graph.constant(forms.tables[j]), state, axis=0))
    if numbers:
        given = graph.node("Concat", *(columns[j] for j in numbers), axis=1)
        parts.append(
            _straight_lines(graph, given, list(numbers.values()), [forms.tables[j] for j in numbers])
        )
    return graph.sum(*parts)


def _straight_lines(graph: Graph, given: str, knots: list[np.ndarray], tables: list[np.ndarray]) -> str:
    """Return the parts of all numbers together.

    Between two knots lies a ramp from 0 to 1, multiplied by the difference of the forms at these knots. A
    missing number counts as a number at the first knot, plus the difference between its form and that at the
    knot."""
    missing = graph.node("IsNaN", given)
    at_missing = np.array([table[-1] - table[0] for table in tables])
    forms = graph.node("MatMul", graph.cast(missing, "DOUBLE"), graph.constant(at_missing))
    forms = graph.node("Add", forms, graph.constant(np.sum([table[0] for table in tables], axis=0)))
    halves = [0.5 * of_column for of_column in knots]  # the difference of two large numbers would overflow
    column_of_ramp = np.repeat(np.arange(len(knots)), [len(of_column) - 1 for of_column in knots])
    if not len(column_of_ramp):
        return forms
    present = graph.node(
        "Where", missing, graph.constant(np.array([of_column[0] for of_column in knots])), given
    )
    x = _gather(graph, graph.node("Mul", present, graph.constant(np.array(0.5))), column_of_ramp)
    above = graph.node("Sub", x, graph.constant(np.concatenate([half[:-1] for half in halves])))
    ramps = graph.node("Div", above, graph.constant(np.concatenate([np.diff(half) for half in halves])))
    ramps = graph.node("Clip", ramps, graph.constant(np.array(0.0)), graph.constant(np.array(1.0)))
    rises = np.vstack([np.diff(table[:-1], axis=0) for table in tables])
    return graph.node("Add", forms, graph.node("MatMul", ramps, graph.constant(rises)))


def _sums_over_sets(graph: Graph, entries: str, factors: np.ndarray, p: int) -> str:
    """Return the sums over all sets of p columns of the products of their entries. The sets that end with a
    column are this column times all sets of p - 1 earlier columns.

    Sums of powers (Newton's identities) would need less memory, but lose all digits if one entry is far
    larger than the others."""
    column = graph.node("Reshape", entries, graph.constant(np.array([-1, 1, factors.shape[1]])))
    single = graph.node("Mul", column, graph.constant(factors))  # (rows, terms, columns)
    sums = single
    for _ in range(1, p):
        sums = graph.node("Mul", single, graph.node("CumSum", sums, graph.constant(np.array(2)), exclusive=1))
    return graph.node("MatMul", sums, graph.constant(np.ones(factors.shape[1])))
