"""Pose the problem of a fit: read the training rows twice, to learn basis and units, and to make blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._data.row_assignment import part_count
from .._data.summary import Summarise, Summary, TrainingSample, ValidationRows
from .._data.training import Recipe, TrainingRows
from .._model.basis import Basis, fit_basis
from .._model.layout import AnovaLayout, Layout
from .._model.losses import LOGISTIC, MULTINOMIAL, SQUARED, Loss, in_units
from .._model.moments import Moments
from .._model.spline_basis import SplineBasis, wave_sizes
from .._model.spline_column import USUAL_SHAPE
from .._model.spline_learning import NO_PERIODS, learn_splines
from .constraints import Constraints
from .jumps import find_jumps
from .problem import PartCount, Problem
from .target_units import TargetUnits, target_units

SPLINE = "spline"
ROWS_SAMPLED = 4096  # for the scale of the start, and for further samples
FEATURES_OF_ROW, FEWEST_PARTS = 8, 30
FEWEST_ROWS_FOR_THREADS = 4096  # that process columns and parts: fewer rows are done before threads start

FindConstraints = Callable[[TrainingRows], Constraints | None]
FindPeriods = Callable[[TrainingRows, TrainingSample | None], Mapping[int, float]]

# Class weights, from the labels and the total weights of their rows.
ClassFactors = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Target:
    """The contents of y: numbers with a given ``loss``, or class labels.

    If the ``labels`` are known, y holds their indices 0, 1, ...; otherwise it holds the labels themselves.
    Multilabel targets are numbers, 0 and 1, with the logistic loss; each label is then an output.
    """

    classification: bool = False
    labels: np.ndarray | None = None
    class_factors: ClassFactors | None = None
    loss: Loss = SQUARED


@dataclass(frozen=True)
class Bases:
    """Names of the bases for dense and for sparse rows."""

    dense: str | None
    sparse: str | None


def pose(
    training: TrainingRows,
    target: Target,
    validation: ValidationRows,
    *,
    bases: Bases,
    layout: Callable[..., Layout],
    parts: PartCount | None,
    seed: int,
    most_parts: int | None = None,
    single: bool = False,
    roughness: float = USUAL_SHAPE.roughness,
    fingerprint: bool = False,
    measure_columns: bool = True,
    threads: int = 1,
    jumps: bool | str | Sequence[np.ndarray] = False,
    constraints: FindConstraints | None = None,
    periods: FindPeriods | None = None,
) -> Problem:
    """Read the training rows twice: to learn basis and units, then to make the blocks for the kernel.

    ``layout(n_features=..., n_outputs=..., n_meetings=..., of_classes=...)`` makes the shape of the model; it
    has, for each degree, at least one term per set of columns that may interact by the ``constraints``.
    ``parts`` gives the number of parts into which the rows are dealt, by ``seed``; without it, rows in memory
    stay in one part, uncopied. After ``most_parts`` parts, the other rows are one part. ``single``: whether
    to fit splines in float32; ``roughness``: how rough their waves are expected to be. ``fingerprint``:
    whether to compute a checksum of the data. ``measure_columns``: whether a solver asks for `step_units`;
    otherwise dense columns that the basis does not scale are not measured. ``threads`` share columns and
    parts of rows in memory. ``jumps``: whether splines have jumps; "auto" leaves that to a race, and
    thresholds of each column are taken as they are. ``periods`` finds the periods of columns; it gets a
    sample of the rows if the basis will be splines.
    """
    by_label = target.class_factors is not None
    sampled = bases.dense == SPLINE
    measured = not sampled and (measure_columns or bases.dense is not None)
    summary = training.total(
        Summarise(
            target.classification,
            by_label,
            validation,
            fingerprint,
            sampled,
            measured,
            target.loss,
            targets=jumps is True or jumps == "auto",
        )
    )
    threads = threads if summary.n_rows >= FEWEST_ROWS_FOR_THREADS else 1
    classes, labels = _classes(summary, target)
    factors = _class_factors(summary, target, classes, labels)
    columns = summary.moments({} if factors is None else dict(zip(classes.tolist(), factors, strict=True)))
    _require_rows(columns.weight, summary.validation_weight)
    loss = _loss(target, classes)
    units = target_units(summary, loss)
    if units.size is not None:
        loss = in_units(
            loss, shift=units.shift, center=units.center, deviation=units.deviation, size=units.size
        )
    found = None if constraints is None else constraints(training)
    if found is not None and found.monotonic and loss == MULTINOMIAL:
        raise ValueError("monotonic_cst needs two classes: with more, no class has an effect of its own.")
    targets = _targets_of_sample(summary, classes, loss, units)
    thresholds = None if isinstance(jumps, bool | str) else jumps
    ramps = frozenset[int]() if found is None else found.monotonic
    of_columns = NO_PERIODS if periods is None else periods(training, summary.sample)
    basis = _learn_basis(bases, summary, columns, threads, targets, thresholds, ramps, of_columns)
    jumping = basis if isinstance(basis, SplineBasis) and basis.n_jumps else None
    if jumping is not None and jumps == "auto":
        basis = jumping.without_jumps()
    unscaled = basis.scale is None and not isinstance(basis, SplineBasis)
    n_parts = 1 if parts is None and not training.streams else (parts or part_count)(summary.n_rows)
    if isinstance(basis, SplineBasis):
        n_parts = fewer_if_wide(n_parts, summary.n_rows, basis.width)
    dtype = np.dtype(np.float32) if single and isinstance(basis, SplineBasis) else summary.dtype
    n_outputs = len(classes) if loss == MULTINOMIAL else len(units.center)
    n_meetings = 1 if found is None else found.n_meetings
    of_classes = loss == MULTINOMIAL
    shape = layout(n_features=basis.width, n_outputs=n_outputs, n_meetings=n_meetings, of_classes=of_classes)
    recipe = Recipe(
        basis=basis.astype(dtype),
        n_parts=n_parts,
        stride=-(-summary.n_rows // ROWS_SAMPLED),
        seed=seed,
        validation=validation,
        center=units.shift,
        deviation=units.scale,
        largest_weight=summary.largest_weight,
        classes=classes if target.classification else None,
        class_factors=factors,
        packed=not isinstance(shape, AnovaLayout),
        threads=1 if training.streams else threads,
        most_parts=most_parts,
    )
    blocks, sample, held_out = training.blocks(recipe)
    if not sample.weights.sum() > 0:  # all sampled rows are held out, or of classes of weight 0
        sample = blocks
    return Problem(
        n_rows=summary.n_rows,
        flat=training.flat,
        checksum=summary.checksum,
        dtype=dtype,
        machine_dtype=summary.dtype,
        sparse=summary.sparse,
        labels=labels,
        center=units.center,
        deviation=units.deviation,
        loss=loss,
        basis=basis,
        layout=shape,
        parts=parts,
        column_squares=columns.mean_squares if unscaled and (summary.sparse or measured) else None,
        recipe=recipe,
        blocks=blocks,
        sample=sample,
        held_out=held_out,
        sizes=wave_sizes(basis, roughness) if isinstance(basis, SplineBasis) else None,
        noise=units.noise,
        largest=units.largest,
        jumping=jumping if jumps == "auto" else None,
        constraints=found,
    )


def fewer_if_wide(n_parts: int, n_rows: int, n_features: int) -> int:
    """Return the number of parts, such that each part has at least one row for every few features.

    A step changes the coefficients of all levels, however few rows it uses."""
    return min(n_parts, max(FEWEST_PARTS, FEATURES_OF_ROW * n_rows // n_features))


def _loss(target: Target, classes: np.ndarray) -> Loss:
    """Choose the loss: the loss of the target for numbers, logistic for two classes, multinomial for more."""
    if not target.classification:
        return target.loss
    return LOGISTIC if len(classes) == 2 else MULTINOMIAL


def _targets_of_sample(
    summary: Summary, classes: np.ndarray, loss: Loss, units: TargetUnits
) -> np.ndarray | None:
    """Return the targets of sampled rows, (rows, outputs), for the search for jumps: standardised numbers, or
    indicators of classes and labels. Return None if there is no sample, or for any other loss."""
    sample = summary.target_sample
    if sample is None or not (loss == SQUARED or loss.of_classes):
        return None
    if not loss.of_classes:
        return (sample.X - units.shift) / units.scale
    if not len(classes):
        return sample.X
    shown = classes[1:] if loss == LOGISTIC else classes
    return (shown == sample.X).astype(np.float64)


def _learn_basis(
    bases: Bases,
    summary: Summary,
    columns: Moments,
    threads: int,
    targets: np.ndarray | None,
    thresholds: Sequence[np.ndarray] | None,
    ramps: Collection[int],
    periods: Mapping[int, float],
) -> Basis:
    if summary.sparse and bases.sparse == SPLINE:
        raise ValueError(
            'basis="spline" needs dense rows, but X is sparse: use basis="auto", which keeps X sparse.'
        )
    if summary.sparse or bases.dense != SPLINE:
        return fit_basis(bases.sparse if summary.sparse else bases.dense, columns, summary.dtype)
    assert summary.sample is not None
    n_codes = summary.n_codes or (None,) * summary.sample.X.shape[1]
    sample = summary.sample
    if thresholds is not None and len(thresholds) != len(n_codes):
        thresholds = None  # thresholds of a model of other columns, which cannot be continued
    if targets is not None:
        thresholds = find_jumps(sample.X, targets, sample.weight, n_codes)
    return learn_splines(
        sample.X,
        sample.weight,
        n_codes,
        summary.dtype,
        threads=threads,
        thresholds=thresholds,
        ramps=ramps,
        periods=periods,
    )


def _classes(summary: Summary, target: Target) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the classes as they appear in y, in order, and their labels.

    In regression and for multilabel targets, return an empty array and None."""
    if not target.classification:
        return np.empty(0), target.labels
    if target.labels is not None:
        return np.arange(len(target.labels), dtype=np.float64), target.labels
    labels = np.array(sorted(summary.label_weights))
    if labels.dtype.kind == "U":  # its width is that of the longest label, and predictions would inherit it
        labels = labels.astype(object)
    if len(labels) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {labels.tolist()[0]!r}.")
    return labels, labels


def _class_factors(
    summary: Summary, target: Target, classes: np.ndarray, labels: np.ndarray | None
) -> np.ndarray | None:
    """Return the factor of the row weights for each class."""
    if target.class_factors is None or labels is None:
        return None
    totals = np.array([summary.label_weights.get(label, 0.0) for label in classes.tolist()])
    factors = target.class_factors(labels, totals)
    return factors / factors.max()


def _require_rows(training: float, validation: float | None) -> None:
    if validation is not None and not (training > 0 and validation > 0):
        raise ValueError("early_stopping needs rows of positive weight both to train on and to hold out.")
    if not training > 0:
        raise ValueError("sample_weight and class_weight leave no row with a positive weight.")
