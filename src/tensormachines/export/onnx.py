"""A model as an ONNX graph, and the converters that skl2onnx needs for pipelines with such a model."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np

from .._model.description import Description, describe
from .._model.linear_forms import linear_forms
from .._model.spline_basis import SplineBasis
from ..estimators import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
)
from ..peers import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    GreedyTensorMachineClassifier,
    GreedyTensorMachineRegressor,
)
from ._onnx_graph import Graph, labels_array, outputs_of, require_skl2onnx

NEGLIGIBLE = 1e-4  # of the spread of a column
MODELS = (
    TensorMachineRegressor,
    TensorMachineClassifier,
    TensorMachineRegressorCV,
    TensorMachineClassifierCV,
    GreedyTensorMachineRegressor,
    GreedyTensorMachineClassifier,
    FactorizationMachineRegressor,
    FactorizationMachineClassifier,
)


def to_onnx(model: Any, dtype: Any = np.float64) -> Any:
    """Return an ONNX model (``onnx.ModelProto``) that predicts like ``model``.

    This needs ``pip install "tensormachines[onnx]"``.

    If all columns are numbers, the only input is "X" (rows, columns). Otherwise there is an input for each
    column, (rows, 1), in order. It has the name of the column, with "_" in place of characters other than
    letters and digits. Categories are strings. NaN is missing, and so is the empty string unless it was a
    level in the fit.

    A regressor has the output "variable" (rows, targets), or (rows, levels) for several quantiles. A
    classifier has "label" (rows) and "probabilities" (rows, classes), both (rows, labels) for multilabel
    targets. The metadata entry "targets" holds the names of targets or labels as a JSON list, in order. The
    graph computes in float64.

    Parameters
    ----------
    model : fitted regressor or classifier
        Any Tensor Machine, search, greedy or factorization machine. For a pipeline, call
        `register_onnx_converters` and use skl2onnx.
    dtype : {float32, float64}, default=float64
        Type of the numeric inputs and outputs. In float32, numbers that are large compared with their spread,
        such as seconds since 1970, lose digits before the graph sees them; a warning names such columns.
    """
    require_skl2onnx()
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    numbers = {np.dtype(np.float32): FloatTensorType, np.dtype(np.float64): DoubleTensorType}.get(
        np.dtype(dtype)
    )
    if numbers is None:
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
    forms = linear_forms(describe(model))
    columns = forms.description.columns
    if numbers is FloatTensorType and (lossy := _lossy_in_float32(forms.description)):
        warnings.warn(
            f"float32 is too coarse for {', '.join(lossy[:5])}{' and others' * (len(lossy) > 5)}, whose "
            "numbers are large next to their spread: predictions differ from those of the model. Use "
            "dtype=np.float64.",
            UserWarning,
            stacklevel=2,
        )
    if all(column.kind == "number" for column in columns):
        inputs = [("X", numbers([None, len(columns)]))]
    else:
        kinds = {"number": numbers, "category": StringTensorType}
        inputs = [
            (name, kinds[column.kind]([None, 1]))
            for name, column in zip(forms.description.names, columns, strict=True)
        ]
    register_onnx_converters()
    options = {
        "double": numbers is DoubleTensorType,
        **({} if forms.description.kind == "regressor" else {"zipmap": False}),
    }
    # Without a name, skl2onnx draws a random one, and the model differs each time.
    graph = convert_sklearn(
        model, "tensormachines", initial_types=inputs, options={id(model): options}, doc_string=forms.about
    )
    if forms.description.target_names is not None:
        graph.metadata_props.add(key="targets", value=json.dumps(forms.description.target_names))
    return graph


def _lossy_in_float32(description: Description) -> list[str]:
    """Return the numeric columns whose rounding to float32 is not negligible compared with their spread."""
    basis, lossy = description.machine.basis, []
    for j, (name, column) in enumerate(zip(description.names, description.columns, strict=True)):
        if column.kind != "number":
            continue
        if isinstance(basis, SplineBasis):
            knots = basis.columns[j].knots
            largest, spread = np.abs(knots).max(initial=0), np.ptp(knots) if len(knots) else 0.0
        elif basis.shift is not None and basis.scale is not None:
            largest, spread = abs(basis.shift[j]), 1 / basis.scale[j] if basis.scale[j] else 0.0
        else:
            continue
        if spread and largest * np.finfo(np.float32).eps > NEGLIGIBLE * spread:
            lossy.append(name)
    return lossy


def register_onnx_converters() -> None:
    """Register the models of this package with skl2onnx, for pipelines in ``skl2onnx.to_onnx``."""
    require_skl2onnx()
    from skl2onnx import update_registered_converter

    of_all = {"double": [False, True]}  # whether outputs are float64 even if no input is
    of_classifiers = {
        "zipmap": [True, False, "columns"],
        "nocl": [True, False],
        "output_class_labels": [False, True],
    }
    for kind in MODELS:
        update_registered_converter(
            kind,
            f"TensorMachines{kind.__name__}",
            _set_output_types,
            _convert,
            options=of_all | of_classifiers if hasattr(kind, "predict_proba") else of_all,
        )


def _set_output_types(operator: Any) -> None:
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )

    forms = linear_forms(describe(operator.raw_operator))
    options = operator.scope_inst.get_options(operator.raw_operator, {"double": False})
    double = options["double"] or any(
        isinstance(variable.type, DoubleTensorType) for variable in operator.inputs
    )
    real = DoubleTensorType if double else FloatTensorType
    if forms.description.kind == "regressor":
        operator.outputs[0].type = real([None, forms.n_outputs])
        return
    if forms.description.link == "sigmoid":
        operator.outputs[0].type = Int64TensorType([None, forms.n_outputs])
        operator.outputs[1].type = real([None, forms.n_outputs])
        return
    label = {"U": StringTensorType, "i": Int64TensorType, "f": DoubleTensorType}[
        labels_array(forms).dtype.kind
    ]
    operator.outputs[0].type = label([None])
    operator.outputs[1].type = real([None, len(forms.labels)])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    forms = linear_forms(describe(operator.raw_operator))
    graph = Graph(scope, container)
    outputs = outputs_of(forms, graph, operator.inputs)
    real = "DOUBLE" if isinstance(operator.outputs[-1].type, DoubleTensorType) else "FLOAT"
    if forms.description.kind == "regressor":
        if (largest := forms.description.largest_outputs) is not None:
            outputs = graph.node("Exp", graph.node("Min", outputs, graph.constant(largest)))
        if forms.description.link == "sorted":
            outputs = graph.sorted(outputs, forms.n_outputs)
        graph.cast(outputs, real, name=operator.outputs[0].full_name)
        return
    if forms.description.link == "sigmoid":
        labels = graph.node("Greater", outputs, graph.constant(np.zeros(1)))
        graph.cast(labels, "INT64", name=operator.outputs[0].full_name)
        graph.cast(graph.node("Sigmoid", outputs), real, name=operator.outputs[1].full_name)
        return
    if forms.description.link == "logistic":
        outputs = graph.node("MatMul", outputs, graph.constant(np.array([[0.0, 1.0]])))
    best = graph.node("ArgMax", outputs, axis=1, keepdims=0)
    graph.node("Gather", graph.constant(labels_array(forms)), best, name=operator.outputs[0].full_name)
    graph.cast(graph.node("Softmax", outputs, axis=1), real, name=operator.outputs[1].full_name)
