"""The effect of columns, in units of the output or of the target.

The effect e of some columns is their part of the output (`decomposition`), a deviation from the mean output
m. With the link g of the model, the two scales are

    link      e
    target    g^-1(m + e)

On the scale of the target, an effect is what the model predicts if all other parts are 0: a number in the
units of y, m + e or exp(m + e), or the probability of a class or label. On this scale, the probability of one
of several classes depends on the effects on all outputs. It is represented by its log-odds against all other
classes, so that a single number represents it on both sides of the link. An effect of 0 gives the base,
g^-1(m)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import expit, logsumexp

from .._data.raw_columns import is_a
from .decomposition import effect_at, effect_on, title_of
from .displacements import ColumnForms, column_forms
from .forms import check_rows, framed, output_keys, output_name, output_number, prediction_name

Scale = Literal["link", "target"]


@dataclass(frozen=True)
class EffectScale:
    """The scale on which effects on an output are given.

    A *height* is the number by which effects are compared, and of which bands are made; `shown` is an
    increasing function of it. ``outputs`` are the values of ``output`` that select the outputs on which a
    height depends, and ``place`` is the position of the explained output among them. ``link`` is None for
    effects on the output itself."""

    outputs: tuple[Any, ...]
    place: int
    means: np.ndarray
    link: str | None
    largest: float = np.inf

    def heights(self, effects: np.ndarray) -> np.ndarray:
        """Return the heights (points,) of effects on the outputs (len(outputs), points)."""
        if self.link is None:
            return effects[self.place]
        outputs = self.means[:, None] + effects
        if self.link != "softmax":
            return outputs[self.place]
        return outputs[self.place] - logsumexp(np.delete(outputs, self.place, axis=0), axis=0)

    def shown(self, heights: np.ndarray) -> np.ndarray:
        """Return heights in the units of the scale."""
        if self.link == "log":
            return np.exp(np.minimum(heights, self.largest))
        return expit(heights) if self.link in ("logistic", "sigmoid", "softmax") else heights

    @property
    def base(self) -> float:
        """Return the value that is shown for no effect."""
        return float(self.shown(self.heights(np.zeros((len(self.outputs), 1))))[0])


@dataclass(frozen=True)
class Effects:
    """The effects of columns of a model on one output, as heights of a scale."""

    scale: EffectScale
    forms: tuple[ColumnForms, ...]  # one for each output of the scale

    @property
    def own_forms(self) -> ColumnForms:
        """Return the forms of the explained output."""
        return self.forms[self.scale.place]

    def numbers(self, columns: Any) -> list[int]:
        """Return the indices of one or several columns, given by name or index."""
        names = columns if isinstance(columns, tuple | list) else (columns,)
        return [self.own_forms.column(name) for name in names]

    def at(self, values: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return the heights of the effects of columns at given values."""
        return self._of(lambda forms: effect_at(forms, values))

    def on(self, columns: list[int], rows: Any) -> np.ndarray:
        """Return the heights of the effects of columns in checked rows."""
        return self._of(lambda forms: effect_on(forms, columns, rows))

    def _of(self, effect_of: Callable[[ColumnForms], np.ndarray]) -> np.ndarray:
        return self.scale.heights(np.stack([effect_of(forms) for forms in self.forms]))


def effects_of(model: Any, output: Any, reference: Any, scale: Scale) -> Effects:
    """Return the effects of a model on one of its outputs; the arguments are those of `effect`."""
    if scale not in get_args(Scale):
        raise ValueError(f"scale must be one of {list(get_args(Scale))}, got {scale!r}.")
    number = output_number(model, output)
    if scale == "link":
        forms = column_forms(model, output, reference)
        return Effects(EffectScale((output,), 0, np.zeros(1), None), (forms,))
    described = model._description()
    several = described.link == "softmax"
    outputs = tuple(output_keys(model)) if several else (output,)
    all_forms = tuple(column_forms(model, each, reference) for each in outputs)
    largest = np.inf if described.largest_outputs is None else float(described.largest_outputs[number])
    means = np.array([forms.mean_output for forms in all_forms])
    return Effects(EffectScale(outputs, number if several else 0, means, described.link, largest), all_forms)


def unit_of_effects(model: Any, output: Any, scale: Scale) -> str:
    """Return what effects on this scale measure."""
    number = output_number(model, output)
    return prediction_name(model, number) if scale == "target" else f"change of {output_name(model, number)}"


def effects_of_member(member: Any, of_model: Effects, reference: Any) -> Effects:
    """Return the effects of a bootstrap member on the scale of the model, about the model's mean outputs."""
    forms = tuple(column_forms(member, output, reference) for output in of_model.scale.outputs)
    return Effects(of_model.scale, forms)


def effect(
    model: Any,
    columns: Any,
    X: Any,
    *,
    reference: Any = None,
    output: Any = None,
    scale: Scale = "link",
) -> Any:
    """Return the part of one column, or of several together, for rows of X: the effect curve of the model.

    The values of the other columns do not matter.

    Parameters
    ----------
    model : fitted Tensor Machine
    columns : name or number of a column, or tuple of these
    X, reference, output
        As in `contributions`.
    scale : {"link", "target"}, default="link"
        "link" returns the part itself, as in `contributions`: a change of the prediction, of its logarithm
        (losses "poisson", "gamma" and "tweedie"), or of the log-odds or score of a class. "target" returns
        what the model predicts if all other parts are 0, so that the output is the mean output plus this
        part: a number in the units of y, or the probability of the class or label.

    Returns
    -------
    ndarray of shape (n_samples,), or Series
        A Series if X is a pandas DataFrame.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> effect(model, "bmi", X).shape
    (442,)
    """
    found = effects_of(model, output, reference, scale)
    numbers, names = found.numbers(columns), found.own_forms.columns
    values = found.scale.shown(found.on(numbers, check_rows(model, X)))
    if not is_a("pandas", X):
        return values
    return framed(X, values[:, None], [title_of(names[k] for k in numbers)]).iloc[:, 0]
