"""The docstrings of the estimators, made from one text per parameter and attribute."""

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

or, if several outputs share their factors, the weighted sum of these products with weights of its own. The
objective is the weighted mean of the loss plus alpha / 2 times the sum of all squared
coefficients (the intercept is not penalised). In regression the target is standardised for the fit.
"""

_PARAMETERS = """
degree : "auto" or int, default="auto"
    Degree of the polynomial, 1 or more. 1 is a linear model. "auto" is 3, or with 20,000 rows and more in the
    spline basis 4 or 5, if the race of ``alpha="auto"`` says that it lowers the loss of held-out rows.
rank : "auto" or int, default="auto"
    Number of terms (products of linear forms) for each degree from 2 on, of each output or of all that share
    them. "auto" is 10; for shared factors it is 20, or 3 for every two outputs that share them if that is
    more.
alpha : "auto", "rows" or float, default="auto"
    Strength of the penalty. "rows" is 5 divided by the number of rows, and with more than two classes
    also by the number of classes, or by its square root if they share factors; at most 0.01 and at least
    0.00001. For a y whose deviation is larger than its mean, the losses "poisson", "gamma" and "tweedie"
    multiply it by the square of their ratio, and "absolute_error" by 2. "auto" is as much, or, with
    solver="adam" and 300 rows or more, the share of it that does best on held-out rows: short fits with ever
    smaller penalties race on some of the rows. That is slower, and more accurate where the target has little
    noise. ``alpha_`` is what was chosen.
loss : str or callable, default="squared_error"
    What is minimised. "squared_error" predicts the mean of y. So do "poisson" (counts, 0 or more), "gamma"
    (costs and times, above 0) and "tweedie" (zeros and costs), whose predictions are exp(f(x)), above 0 and
    at most the largest y of the fit; their loss is half the deviance of y in units of its mean. "quantile"
    predicts the ``quantile`` of y, and "absolute_error" its median; within 0.02 deviations of 0 a parabola
    takes the place of the absolute value, where a deviation is the distance of the quartiles of y divided by
    1.349, or the standard deviation if these are equal. "huber" predicts the mean, but errors beyond 1.35
    deviations of the noise count by their absolute values, so that outliers hardly matter. That deviation is
    the median of the absolute residuals of a short fit of medians, divided by 0.6745 (in `partial_fit` it is
    that of y). A function ``loss(y, z)`` takes targets and outputs, (n,), and returns losses, 0 or more, and
    their derivatives with respect to z, both (n,); such fits take about three times as long.
power : float, default=1.5
    For loss="tweedie", between 1 (as "poisson") and 2 (as "gamma"): the variance of y is proportional to this
    power of its mean.
quantile : float or sequence of float, default=0.5
    For loss="quantile": the share of the rows, between 0 and 1, that should be below the prediction. With
    several levels in rising order predictions are (n_samples, n_levels), and never cross: there is a model
    for each level, and what they predict for a row is put in order.
intervals : bool, default=False
    Whether `predict_interval` should be available: five more models are fitted, each to four fifths of the
    rows, and their errors on the rest calibrate intervals. Not with `partial_fit`.
shared_factors : "auto" or bool, default="auto"
    Whether the outputs share one set of terms, each with weights of its own for them; otherwise every output
    has its own terms. Shared factors make fits faster and files smaller, the more so the more outputs there
    are. "auto" shares them among three and more classes, but not among several targets or labels.
basis : {{"auto", "spline", "standard", "scaled", "sphere", "unit", None}}, default="auto"
    Transformation of X. "spline": each number becomes several smooth functions of its rank and a straight
    line, each category is one-hot encoded, missing values get an indicator; X may have numbers, booleans,
    strings, categories, and dates, each of which becomes several numbers. "auto": "spline", or "scaled" for
    a sparse X, which stays sparse. "standard": columns are standardised, a constant column is appended, and
    all are divided by the square root of the number of columns; the model stays a polynomial of X. "scaled":
    as "standard", but columns are divided by the root mean square of their non-zero entries, cut off at 4
    times that, and divided by the square root of the mean number of such entries in a row; so rare words and
    levels do not become large numbers. "sphere": as "standard", but clipped at 4 standard deviations, and
    each row is divided by its norm; no longer a polynomial of X, often more accurate. "unit": each column,
    then each row, is divided by its norm. None: X is not transformed.
solver : {{"adam", "kfac", "lbfgs", "sfo"}}, default="adam"
    "adam" takes a step after each minibatch, with a learning rate that falls to 0 over ``max_iter`` passes
    over the rows; about 30 passes are enough, and its models often have a smaller test error than models
    with a lower objective. "lbfgs" passes over all rows for every step. "kfac" is L-BFGS with a warm start
    (some epochs over minibatches) and a Kronecker-factored curvature estimated from a sample of the rows; it
    needs about a fifth of the passes. "sfo", the Sum-of-Functions Optimizer, deals the rows into
    max(30, sqrt(rows) / 10) minibatches and takes a step after each: fewer passes over the rows, more work
    between them. If X is a Dask collection, "adam" is left to short fits that choose the settings, and
    "lbfgs" fits all rows.
max_iter : int, optional
    Largest number of iterations. The default is 1000 for "lbfgs" and "kfac". For the others an iteration is
    one pass over the rows; the default is 30 for "adam", which always uses all of them, and 1000 for
    "sfo". With ``alpha="auto"`` a fit goes on from the best short fit of the race, and takes
    about half of them, 16 of 30. If X is a Dask collection, "lbfgs" in place of "adam" takes 50 at most.
tol : float, default={tol}
    The fit ends when ten iterations lower the objective by less than this share of it. Ignored by "adam".
history : "auto" or int, default="auto"
    Number of steps that solver="lbfgs" remembers with the changes of the gradient along them. "auto" is 100,
    or less, but at least 10, where these would take more than 256 MB. More lower the objective in fewer
    iterations.
init : {{"random", "greedy"}}, default="random"
    Start of the solver: random factors, or a greedy fit of one rank at a time, see
    `tensormachines.peers.GreedyTensorMachineRegressor`.
init_scale : "auto" or float, default="auto"
    Standard deviation of the factors at the start; "auto" adapts it to the data.
roughness : float, default={roughness}
    How fast smooth functions of a number may change with its rank, in the spline basis: more allows for
    steps, less makes for smoother functions.
relevance : "auto" or int, default="auto"
    Number of short fits before the fit that find out how much each column of X matters: columns that matter
    are then penalised less, the others more. Each takes about a third of the time of a fit. "auto" does so
    once if the race of ``alpha="auto"`` says that it lowers the loss of held-out rows, and otherwise not.
trend : "auto" or bool, default="auto"
    Whether to fit a linear model of the columns (ridge or logistic regression) first, and the terms to what
    it leaves; it becomes part of the linear part. Where it explains most of the variance of the target, it
    goes on outside the range of the training rows. Only for splines. "auto" leaves it to the race of
    ``alpha="auto"``.
jumps : "auto" or bool, default="auto"
    Whether to look for thresholds of numbers at which the target jumps, with small regression trees, and to
    add a step for each, which rises between the two training values around it: smooth functions blur them.
    True takes all that are found, "auto" only if the race of ``alpha="auto"`` says that they lower the loss
    of held-out rows. With other bases, and with other losses than squared error and that of classes, there
    are none.
categorical_features : "auto" or sequence of bool, int or str, default="auto"
    Columns that are categories although they hold numbers: by name, by number, or as a mask. "auto": columns
    of strings and of a categorical type. Only for splines.
periodic_features : dict or None, default=None
    Periods of columns of numbers, by name or by number, such as ``{{"hour": 24}}``: predictions are the same
    at the beginning and at the end of a period, and go on smoothly from one to the other. All numbers of the
    column must lie within one period. It has no jumps and no trend. Only for splines.
monotonic_cst : sequence of int, dict or None, default=None
    1 for columns with which predictions may only rise, -1 for those with which they may only fall, and 0 for
    the others; a dict has them by name. Such a column has a monotonic function of its own, and takes no part
    in interactions; missing values may have any effect. Needs solver="adam" and, in classification, two
    classes; there are no trend and no jumps then.
interaction_cst : "pairwise", "no_interactions", sequence of sets or None, default=None
    Sets of columns, by name or by number, that may meet in a term; columns in no set form one more set.
    All other coefficients are exactly 0. "pairwise" allows a degree of at most 2, "no_interactions" of
    1. Not with "kfac", nor with bases that divide rows by their norm.
n_restarts : int, default=1
    Number of random starts; the result with the lowest objective is kept. Except with "sfo" or with a
    checkpoint, they share the passes over X.
n_members : int, default=1
    Number of models, each from its own random starts, that are averaged: a Tensor Machine of as many times
    the rank, which often has a smaller test error.
max_norm : float, optional
    Largest Euclidean norm of the linear part and of each factor, in addition to the penalty; alpha=0 gives
    the purely constrained problem. Solved by projected gradients whatever ``solver`` is, which must not be
    "sfo".
early_stopping : bool, default=False
    Whether to hold out rows, or to take those that `fit` is given as ``X_val``, and to stop when the loss on
    them has not improved for ``n_iter_no_change`` iterations. The model is that of the best iteration.
validation_fraction : float, default=0.1
    Share of the rows that early stopping holds out.
n_iter_no_change : int, default=10
    Patience of early stopping.
warm_start : bool, default=False
    Whether to start where the last fit of this estimator ended, and take up to ``max_iter`` further
    iterations. ``n_iter_`` and the loss curves are those of the last fit alone.
checkpoint : str or path, optional
    A file that keeps the state of the fit. If the process is killed, the same fit on the same data continues
    from there, with the same result. The file stays after the fit, and then gives the result at once. The
    file of another fit is refused: use one file per fit, and none in cross-validation. Several quantiles
    have one each, with the level in its name.
checkpoint_every : int, optional
    Number of iterations between two writes of the file; None writes it every two minutes.
class_weight : dict or "balanced", optional
    Weights of the classes, which multiply the weights of the rows.
task : {{"auto", "regression", "classification"}}, default="auto"
    What y is. "auto": real numbers are a regression target; integers, booleans and strings are classes.
random_state : int, RandomState instance or None, default=None
    Determines the start, the rows that early stopping holds out, and the minibatches.
n_jobs : int, optional
    Number of threads; None is 1, -1 all cores. The result does not depend on it.
verbose : int, default=0
    1 prints some iterations, 2 all.
"""

ATTRIBUTES = """
intercept_ : float or ndarray of shape (n_outputs,)
linear_ : ndarray of shape (n_basis_features,) or (n_outputs, n_basis_features)
    The linear part.
coef_ : ndarray of shape (n_features_in_,) or (n_outputs, n_features_in_)
    The same; only for degree 1 and a basis with one column for each column of X (None and "unit").
factors_ : dict
    For each degree p from 2 on, an array of shape (n_outputs, rank, p, n_basis_features); with shared
    factors (1, rank, p, n_basis_features).
term_weights_ : dict
    For each degree p from 2 on the weights of the terms, (n_outputs, rank): 1 unless factors are shared.
basis_features_ : ndarray of shape (n_basis_features,)
    Names of the columns of ``linear_`` and ``factors_``, such as "age wave 2", "age line", "age > 18",
    "colour = red", "age missing" or "sold: weekday wave 1".
jumps_ : dict of str to ndarray
    The thresholds of each column of numbers that has some, see ``jumps``.
feature_importances_ : ndarray of shape (n_features_in_,)
    How much each column of X moves the outputs, interactions included: shares that add up to 1, by
    `inspection.importance` on a sample of the training rows, and averaged over the outputs. Not after
    `partial_fit`.
n_parameters_ : int
alpha_ : float
    The penalty of `fit`.
solver_ : str
    The solver of the fit to all rows: "lbfgs" in place of "adam" if X is a Dask collection.
n_iter_ : int
    Number of iterations, with early stopping up to the best one; or of blocks that `partial_fit` has seen.
objective_ : float
    Objective of the fit; after `partial_fit` that of the last block, before the model learnt from it.
loss_curve_ : ndarray of shape (n_iterations,)
    The objective, that is, the loss of the training rows plus the penalty, after each iteration of the fit.
    With "adam" it is that of the minibatches of the epoch, each before its step. Of several starts or
    members the best one is shown. After the race of ``alpha="auto"`` it is that of the fit to all rows. Not
    after `partial_fit`.
validation_loss_curve_ : ndarray of shape (n_iterations,)
    The loss of the rows that are held out or given as ``X_val``, without penalty, after each iteration; only
    if there are such rows. For classes it is the log-loss; for numbers it is in the units of the objective,
    with squared error half the mean squared error divided by the variance of y, or of what a trend leaves.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Only if the columns of X have names.
quantiles_ : ndarray of shape (n_levels,)
    The levels, only if ``quantile`` has several.
target_name_ : str or list of str
    Only if y has a name: a pandas or polars series, or a dataframe of several targets.
classes_ : ndarray of shape (n_classes,)
    If a row has several labels: their numbers, 0, 1, ...
"""


LOSS_PARAMETERS = ("power", "quantile", "intervals", "quantiles_")  # of regressors alone
LOSS = ("loss", *LOSS_PARAMETERS)  # of Tensor Machines alone
LOG_LOSS = """loss : "log_loss", default="log_loss"
    What is minimised: minus the logarithm of the probability of the class. There is no other loss."""
# Of Tensor Machines alone.
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

    ``instead`` has other texts for some of them, ``defaults`` other default values.
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
