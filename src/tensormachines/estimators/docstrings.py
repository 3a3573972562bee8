"""Docstrings of the estimators, assembled from one text per parameter and attribute."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from inspect import cleandoc
from types import MappingProxyType

from .._fit.settings import DEFAULT_TOL
from .._model.spline_column import USUAL_SHAPE

_MODEL = """
With x the row in its basis, each output is

    f(x) = intercept + <coef, x> + sum over degree p = 2..degree, rank i of
           prod over j = 1..p of <factors[p][i, j], x>

If several outputs share their factors, each output is a weighted sum of these products, with its own weights.
The objective is the weighted mean of the loss plus alpha / 2 times the sum of all squared coefficients (the
intercept is not penalised). In regression, the target is standardised for the fit.
"""

_PARAMETERS = """
degree : "auto" or int, default="auto"
    Degree of the polynomial, 1 or more. Degree 1 is a linear model. "auto" is 3. With the spline basis and at
    least 20,000 rows, "auto" is 4 or 5 if the race of ``alpha="auto"`` finds that this lowers the loss on
    held-out rows.
rank : "auto" or int, default="auto"
    Number of terms (products of linear forms) for each degree from 2 on. Each output has this many, or all
    outputs together if they share factors. "auto" is 10; with shared factors it is 20 or 1.5 times the number
    of outputs, whichever is larger.
alpha : "auto", "rows" or float, default="auto"
    Strength of the penalty. "rows" is 5 divided by the number of rows. With more than two classes, it is also
    divided by the number of classes, or by the square root of that number if the classes share factors. The
    result is clipped to the range from 1e-8 to 0.01. The losses "poisson", "gamma" and "tweedie" multiply
    it by (standard deviation of y / mean of y) squared if this is larger than 1, and "absolute_error"
    multiplies it by 2. "auto" is the same as "rows", unless solver="adam" and there are at least 300 rows:
    then short fits with ever smaller penalties race on some of the rows, and the penalty with the lowest loss
    on held-out rows wins. The race is slower, and more accurate where the target has little noise. ``alpha_``
    is the penalty that was chosen.
loss : str or callable, default="squared_error"
    Loss to minimise. "squared_error" predicts the mean of y. So do "poisson" (counts, 0 or more), "gamma"
    (costs and times, above 0) and "tweedie" (zeros and costs): their predictions are exp(f(x)), which is
    above 0 and at most the largest y of the fit, and their loss is half the deviance of y in units of its
    mean. "quantile" predicts the ``quantile`` of y, and "absolute_error" predicts the median. For errors
    below 0.02 deviations, both replace the absolute value by a parabola; a deviation here is the
    interquartile range of y divided by 1.349, or the standard deviation of y if the quartiles are equal.
    "huber" predicts the mean, but errors beyond 1.35 deviations of the noise count by their absolute values,
    so that outliers hardly matter. The deviation of the noise is the median absolute residual of a short fit
    of the median, divided by 0.6745 (`partial_fit` uses the deviation of y instead). A function
    ``loss(y, z)`` takes targets and outputs of shape (n,) and returns the losses, 0 or more, and their
    derivatives with respect to z, both of shape (n,); such fits take three to five times as long.
power : float, default=1.5
    For loss="tweedie", between 1 (as "poisson") and 2 (as "gamma"): the variance of y is proportional to this
    power of its mean.
quantile : float or sequence of float, default=0.5
    For loss="quantile": the share of the rows, between 0 and 1, that should be below the prediction. Several
    levels must be in rising order. Predictions then have the shape (n_samples, n_levels) and never cross:
    there is one model per level, and the predictions for each row are sorted.
intervals : bool, default=False
    Whether to make `predict_interval` available. Five more models are fitted, each to four fifths of the
    rows, and their errors on the remaining rows calibrate the intervals. Not available with `partial_fit`.
shared_factors : "auto" or bool, default="auto"
    Whether all outputs share one set of terms, which each output weights differently; otherwise every output
    has its own terms. Shared factors make fits faster and files smaller, especially with many outputs. "auto"
    shares factors among three or more classes, but not among several targets or labels.
basis : {{"auto", "spline", "standard", "scaled", "sphere", "unit", None}}, default="auto"
    Transformation of X. "spline": each number becomes several smooth functions of its rank and a straight
    line, each category is one-hot encoded, and missing values get an indicator. X may have numbers, booleans,
    strings, categories and dates; each date becomes several numbers. "auto": "spline", or "scaled" for a
    sparse X, which stays sparse. "standard": columns are standardised, a constant column is appended, and all
    columns are divided by the square root of their number; the model remains a polynomial of X. "scaled":
    like "standard", but each column is divided by the root mean square of its non-zero entries, clipped at 4
    times this value, and divided by the square root of the mean number of non-zero entries in a row. Rare
    words and levels therefore do not become large numbers. Columns that fewer than one row in 512 has are not
    centred. "sphere": like "standard", but clipped at 4 standard deviations, and each row is divided by its
    norm; the model is no longer a polynomial of X, but is often more accurate. "unit": each column, then each
    row, is divided by its norm. None: X is not transformed.
solver : {{"adam", "kfac", "lbfgs", "sfo"}}, default="adam"
    "adam" takes a step after each minibatch; its learning rate falls to 0 over ``max_iter`` passes over the
    rows. About 30 passes are enough, and the models often have a smaller test error than models with a lower
    objective. If the minibatches of a sparse X have few of its columns, a step changes the coefficients of
    these columns only. "lbfgs" passes over all rows for every step. "kfac" is L-BFGS with a warm start (some
    epochs over minibatches) and a Kronecker-factored curvature estimated from a sample of the rows; it needs
    about a fifth of the passes. "sfo", the Sum-of-Functions Optimizer, deals the rows into max(30, sqrt(rows)
    / 10) minibatches and takes a step after each: fewer passes over the rows, more work between them. If X is
    a Dask collection, each worker takes the steps of "adam" along its own rows, and their models are averaged
    after each pass; "lbfgs" replaces "adam" for a loss of your own, and without the compiled kernel.
max_iter : int, optional
    Maximum number of iterations. The default is 1000 for "lbfgs" and "kfac". For the other solvers an
    iteration is one pass over the rows; the default is 30 for "adam", which always makes all passes, and 1000
    for "sfo". With ``alpha="auto"``, a fit continues from the best short fit of the race and makes about half
    of the passes, 16 of 30. If X is a Dask collection, the "lbfgs" that replaces "adam" makes at most 50
    iterations.
tol : float, default={tol}
    The fit ends when ten iterations lower the objective by less than this relative amount. Ignored by "adam".
history : "auto" or int, default="auto"
    Number of past steps, with their gradient changes, that solver="lbfgs" remembers. "auto" is 100, or fewer
    (at least 10) if 100 would take more than 256 MB. With more steps, the solver lowers the objective in
    fewer iterations.
init : {{"random", "greedy"}}, default="random"
    Start of the solver: random factors, or a greedy fit of one rank at a time, see
    `tensormachines.peers.GreedyTensorMachineRegressor`.
init_scale : "auto" or float, default="auto"
    Standard deviation of the factors at the start; "auto" adapts it to the data.
roughness : float, default={roughness}
    How fast the spline basis lets smooth functions of a number change with its rank. Larger values allow
    steep changes; smaller values make functions smoother.
relevance : "auto" or int, default="auto"
    Number of short fits that measure, before the fit, how much each column of X matters: columns that matter
    are then penalised less, the others more. Each takes about a third of the time of a fit. "auto" does this
    once if the race of ``alpha="auto"`` finds that it lowers the loss on held-out rows, and not at all
    otherwise.
trend : "auto" or bool, default="auto"
    Whether to fit a linear model of the columns (ridge or logistic regression) first, and then fit the terms
    to its residuals; the linear model becomes part of the linear part. Where it explains most of the variance
    of the target, it extrapolates beyond the range of the training rows. Only for splines. "auto" lets the
    race of ``alpha="auto"`` decide.
jumps : "auto" or bool, default="auto"
    Whether to look for thresholds of numbers at which the target jumps, with small regression trees, and to
    add a step function for each, because smooth functions would blur the jump. The step rises between the two
    training values around the threshold. True uses all thresholds found; "auto" uses them only if the race of
    ``alpha="auto"`` finds that they lower the loss on held-out rows. Only for splines, and only with squared
    error or in classification.
categorical_features : "auto" or sequence of bool, int or str, default="auto"
    Columns to treat as categories although they hold numbers, by name, by index, or as a mask. "auto":
    columns of strings and of a categorical type. Only for splines.
periodic_features : dict or None, default=None
    Periods of numeric columns, by name or by index, such as ``{{"hour": 24}}``: predictions are the same at
    the beginning and the end of a period, and join smoothly. All numbers of the column must lie within one
    period. A periodic column has no jumps and no trend. Only for splines.
monotonic_cst : sequence of int, dict or None, default=None
    Monotonicity constraint of each column, in the order of the columns, or a dict by name. 1: predictions may
    only rise with the column; -1: they may only fall; 0: no constraint. A constrained column has its own
    monotonic function and takes no part in interactions; missing values may have any effect. Requires
    solver="adam" and, in classification, two classes. The model then has no trend and no jumps.
interaction_cst : "pairwise", "no_interactions", sequence of sets or None, default=None
    Sets of columns, by name or by index, that may interact in a term; columns in no set form one more set.
    All other coefficients are exactly 0. "pairwise" allows a degree of at most 2, "no_interactions" a degree
    of 1. Not available with "kfac", or with bases that divide rows by their norm.
n_restarts : int, default=1
    Number of random starts; the result with the lowest objective is kept. The starts share their passes over
    X, except with "sfo" or with a checkpoint.
n_members : int, default=1
    Number of models to average, each with its own random starts. The average is a Tensor Machine whose rank
    is ``n_members`` times as large, and often has a smaller test error.
max_norm : float, optional
    Maximum Euclidean norm of the linear part and of each factor, in addition to the penalty; alpha=0 gives
    the purely constrained problem. It is solved by projected gradients for any ``solver``; "sfo" is not
    allowed.
early_stopping : bool, default=False
    Whether to stop when the loss on validation rows has not improved for ``n_iter_no_change`` iterations, and
    to keep the model of the best iteration. The validation rows are the ``X_val`` of `fit` if given, and
    held-out training rows otherwise.
validation_fraction : float, default=0.1
    Share of the rows that early stopping holds out.
n_iter_no_change : int, default=10
    Number of iterations without improvement after which early stopping ends the fit.
warm_start : bool, default=False
    Whether to start where the last fit of this estimator ended, and make up to ``max_iter`` further
    iterations. This is meant for the same rows: others may have other levels or missing values, and are then
    refused; `partial_fit` learns from new rows. ``n_iter_`` and the loss curves describe the last fit alone.
checkpoint : str or path, optional
    File that stores the state of the fit. If the process is killed, the same fit to the same data continues
    from the file, with the same result. The file stays after the fit; repeating the fit then returns the
    result at once. A file of another fit is refused: use one file per fit, and none in cross-validation. With
    several quantiles there is one file per level, with the level in its name.
checkpoint_every : int, optional
    Number of iterations between writes of the checkpoint; None writes it every two minutes.
class_weight : dict or "balanced", optional
    Weights of the classes, which multiply the weights of the rows.
task : {{"auto", "regression", "classification"}}, default="auto"
    Type of y. "auto": real numbers are a regression target; integers, booleans and strings are classes.
random_state : int, RandomState instance or None, default=None
    Determines the start, the rows that early stopping holds out, and the minibatches.
n_jobs : int, optional
    Number of threads: None means 1, and -1 all cores. The result does not depend on it.
verbose : int, default=0
    1 prints some iterations, 2 prints all.
"""

ATTRIBUTES = """
intercept_ : float or ndarray of shape (n_outputs,)
linear_ : ndarray of shape (n_basis_features,) or (n_outputs, n_basis_features)
    The linear part.
coef_ : ndarray of shape (n_features_in_,) or (n_outputs, n_features_in_)
    Same as ``linear_``; only for degree 1 and a basis with one column per column of X (None and "unit").
factors_ : dict
    For each degree p from 2 on, an array of shape (n_outputs, rank, p, n_basis_features), or
    (1, rank, p, n_basis_features) with shared factors.
term_weights_ : dict
    For each degree p from 2 on, the weights of the terms, (n_outputs, rank); all 1 unless factors are shared.
basis_features_ : ndarray of shape (n_basis_features,)
    Names of the columns of ``linear_`` and ``factors_``, such as "age wave 2", "age line", "age > 18",
    "colour = red", "age missing" or "sold: weekday wave 1".
jumps_ : dict of str to ndarray
    Thresholds of each numeric column that has any, see ``jumps``.
feature_importances_ : ndarray of shape (n_features_in_,)
    How much each column of X moves the outputs, interactions included. The shares add up to 1; they come from
    `inspection.importance` on a sample of the training rows, averaged over the outputs. Not available after
    `partial_fit`.
n_parameters_ : int
    Number of parameters of the model.
alpha_ : float
    Penalty used by `fit`.
solver_ : str
    Solver of the fit to all rows: "lbfgs" instead of "adam" if X is a Dask collection.
n_iter_ : int
    Number of iterations (with early stopping, up to the best one), or of blocks that `partial_fit` has seen.
objective_ : float
    Objective of the fit; after `partial_fit`, the objective on the last block before the model learned from
    it.
loss_curve_ : ndarray of shape (n_iterations,)
    Objective (training loss plus penalty) after each iteration of the fit. With "adam", it is the objective
    on the minibatches of the epoch, each before its step. With several starts or members, the curve is that
    of the best one. After the race of ``alpha="auto"``, it is that of the fit to all rows. Not available
    after `partial_fit`.
validation_loss_curve_ : ndarray of shape (n_iterations,)
    Loss on the rows that are held out or given as ``X_val``, without penalty, after each iteration; only if
    there are such rows. For classes it is the log-loss. For numbers it has the units of the objective: with
    squared error, half the mean squared error divided by the variance of y, or by the variance of the
    residuals of the trend if there is one.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Only if the columns of X have names.
quantiles_ : ndarray of shape (n_levels,)
    Levels of the quantiles, only if ``quantile`` has several.
target_name_ : str or list of str
    Only if y has a name: a pandas or polars series, or a dataframe of several targets.
classes_ : ndarray of shape (n_classes,)
    Labels of the classes, in sorted order. For multilabel targets, the numbers of the labels, 0, 1, ...
"""


LOSS_PARAMETERS = ("power", "quantile", "intervals", "quantiles_")  # only in regressors
LOSS = ("loss", *LOSS_PARAMETERS)  # only in Tensor Machines
LOG_LOSS = """loss : "log_loss", default="log_loss"
    Loss to minimise: minus the logarithm of the probability of the class. There is no other loss."""
# Only in Tensor Machines.
COLUMNS = ("categorical_features", "periodic_features", "monotonic_cst", "interaction_cst")


def documentation(
    summary: str,
    example: str,
    *,
    model: str = _MODEL,
    leave_out: Collection[str],
    instead: Mapping[str, str] = MappingProxyType({}),
    defaults: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """Return a docstring with all parameters and attributes except those in ``leave_out``.

    ``instead`` replaces the texts of some of them, and ``defaults`` some default values.
    """
    parameters = entries(_PARAMETERS.format(tol=DEFAULT_TOL, roughness=USUAL_SHAPE.roughness))
    texts = {**parameters, **instead}
    for name, default in defaults.items():
        texts[name] = re.sub(
            "default=.*",
            f'default="{default}"' if isinstance(default, str) else f"default={default}",
            texts[name],
            count=1,
        )
    sections = [
        summary,
        cleandoc(model),
        section("Parameters", {name: texts[name] for name in parameters if name not in leave_out}),
        section(
            "Attributes",
            {
                name: instead.get(name, text)
                for name, text in entries(ATTRIBUTES).items()
                if name not in leave_out
            },
        ),
        "Examples\n--------\n" + cleandoc(example),
    ]
    return "\n\n".join(sections) + "\n"


def entries(text: str) -> dict[str, str]:
    """Return the text of each parameter by its name."""
    entries = re.split(r"\n(?=\w)", text.strip())
    return {entry.split(" : ")[0]: entry for entry in entries}


def section(title: str, entries: Mapping[str, str]) -> str:
    return "\n".join([title, "-" * len(title), *entries.values()])
