"""The docstring that the estimators share."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from inspect import cleandoc
from types import MappingProxyType

_MODEL = """
With x the row in its basis, each output is

    f(x) = intercept + <coef, x> + sum over degree p = 2..degree, rank i of  prod over j = 1..p of <factors[p][i, j], x>

and the objective is the weighted mean of the loss plus alpha / 2 times the sum of all squared
coefficients (the intercept is free). In regression the target is standardised for the fit.
"""

_PARAMETERS = """
degree : int, default=3
    Degree of the polynomial, 1 or more. 1 is a linear model.
rank : int, default=10
    Number of terms (products of linear forms) for each degree from 2 on.
alpha : "auto" or float, default="auto"
    Strength of the penalty. "auto" is 5 divided by the number of rows, and where there are more than two classes by their number
    too, at most 0.01 and at least 0.00001.
basis : {{"auto", "spline", "standard", "sphere", "unit", None}}, default="auto"
    What is done to X first. "spline": every number becomes some smooth functions of its rank and a straight line, every category
    one indicator a level, missing values another; X may be a table of numbers, booleans, strings and categories. "auto": "spline",
    or "standard" for a sparse X, which stays sparse. "standard": columns to mean 0 and variance 1, a constant column appended,
    all divided by the square root of the number of columns; the model stays a polynomial of X. "sphere": the same, clipped at 4
    standard deviations, and each row divided by its norm; no polynomial of X, often more accurate. "unit": each column, then each
    row, divided by its norm. None: X as it is.
solver : {{"adam", "kfac", "lbfgs", "sfo", "sfo-subset"}}, default="adam"
    "adam" takes a step after each of many minibatches, with a rate that ends at 0 after ``max_iter`` passes over the rows: some
    30 of them are enough, and its models often err less on new rows than those of lower objective. "lbfgs" goes over all rows
    for every step. "kfac" is the same with two additions, which get as low in a fifth of the passes: a start that is improved by
    some epochs over minibatches, and a curvature, estimated from a sample of the rows, that its steps are scaled with. "sfo", the
    Sum-of-Functions Optimizer, deals the rows into max(30, sqrt(rows) / 10) minibatches and takes a step after each: far fewer
    passes over the rows, more work between them. "sfo-subset" is the same with a head start: what would be the first pass goes
    over an eighth of the minibatches several times.
max_iter : int, optional
    Most iterations. For "lbfgs" and "kfac" the default is 1000. For the others an iteration is one pass over the rows, and the
    default is 30 for "adam", which always uses all of them, and 1000 for "sfo" and "sfo-subset".
tol : float, default={tol}
    The fit ends when ten iterations have lowered the objective by less than this share of it; "adam" does not look at it.
init : {{"random", "greedy"}}, default="random"
    Where the solver begins: at random factors; or where fitting the terms one rank at a time ends, see
    `tensormachines.peers.GreedyTensorMachineRegressor`.
init_scale : "auto" or float, default="auto"
    Standard deviation of the factors at the start; "auto" fits it to the data.
relevance : int, default=0
    Rounds before the fit in which a short fit shows how much each column of X matters: columns that matter are penalised less,
    the others more. Takes about a third of the time of a fit for each round.
n_restarts : int, default=1
    Number of random starts, of which the one with the lowest objective is kept. With "lbfgs" or "kfac" and without a checkpoint they share
    the passes over X.
n_members : int, default=1
    Number of models, each from its own random starts, whose mean is the result: a Tensor Machine of as many times the rank, which
    often errs less.
max_norm : float, optional
    Largest Euclidean norm that the linear part and each factor may have, beside the penalty: alpha=0 gives the purely
    constrained problem. Solved by projected gradients over all rows whatever ``solver`` is, which must not be "sfo".
early_stopping : bool, default=False
    Whether to hold out rows and stop when the loss on them has not improved for ``n_iter_no_change`` iterations.
validation_fraction : float, default=0.1
    Share of the rows that early stopping holds out.
n_iter_no_change : int, default=10
    Patience of early stopping.
warm_start : bool, default=False
    Whether to begin where the last fit of this estimator ended.
checkpoint : str or path, optional
    A file that keeps the state of the fit. If the process is killed, the same fit on the same data goes on from there, to the same
    result. It stays when the fit has ended, and then gives the result again at once. A file of another fit is refused: one file
    for one fit, and none in cross-validation.
checkpoint_every : int, optional
    Iterations between two writings of the file; None writes it every two minutes.
class_weight : dict or "balanced", optional
    Weights that multiply those of the rows, by class.
task : {{"auto", "regression", "classification"}}, default="auto"
    What y is. "auto": a y of real numbers is a regression target; integers, booleans and strings are classes.
random_state : int, RandomState instance or None, default=None
    For the start, for the rows that early stopping holds out, and for the minibatches of "sfo" and "kfac".
n_jobs : int, optional
    Number of threads; None is 1, -1 all cores. The result does not depend on it.
verbose : int, default=0
    1 prints some iterations, 2 all.
"""

_ATTRIBUTES = """
intercept_ : float or ndarray of shape (n_outputs,)
coef_ : ndarray of shape (n_basis_features,) or (n_outputs, n_basis_features)
    The linear part.
factors_ : dict
    For each degree p from 2 on, an array of shape (n_outputs, rank, p, n_basis_features).
basis_features_ : ndarray of shape (n_basis_features,)
    What the columns of ``coef_`` and ``factors_`` stand for, such as "age wave 2", "age line", "colour = red" or "age missing".
n_parameters_ : int
n_iter_ : int
    Iterations, or blocks that `partial_fit` has seen.
objective_ : float
    Of the fit; after `partial_fit` that of the last block before the model had learnt from it.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Only where the columns of X have names.
target_name_ : str or list of str
    Only where y has a name: a series of pandas or polars, or a frame of several targets.
classes_ : ndarray of shape (n_classes,)
"""

_SEARCH = """
Every combination of degree, rank, alpha, basis, relevance and number of iterations is a candidate. Every second one along each of
these is fitted to few rows, the best of them to all rows; then those that differ from the best one by one step in one of these are
tried, as long as that helps: few rows favour simple models and large penalties. Candidates that differ in alpha alone share their
passes over the rows. What is learnt for a split, its basis included, is learnt from its training rows alone.

Once fitted, it is the best candidate fitted to all rows, and has its attributes and methods.
"""

_SEARCH_PARAMETERS = """
degrees : sequence of int, default=(2, 3, 4, 6)
    Degrees to choose from.
ranks : sequence of int, default=(10, 20)
    Ranks to choose from.
alphas : sequence of float, default=(1e-6, 3e-6, 1e-5, ..., 1e-2)
    Strengths of the penalty to choose from. On fewer rows a candidate has a larger one, as these ask for.
bases : sequence of str or None, default=("auto",)
    Input bases to choose from.
relevances : sequence of int, default=(0, 2)
    Numbers of rounds to choose from in which the columns are weighed before the fit. In the search it is the smallest candidate that
    weighs them, once for each split and basis.
max_iters : sequence of int, optional
    Numbers of iterations to choose from: fewer of them are a penalty, too. None: 10 and 30 for "adam", for the others their default.
    Where there is no time to try more of them, the last fit has the most.
cv : int, splitter or iterable of splits, optional
    None: 5 shuffled folds; from 5,000 rows on a fifth of the rows held out; with all classes in all
    parts. With ``halving``, the first five splits are used, and from 5,000 rows on the first three. Those with a single class to train
    on, or with no row of positive weight to train or to score on, are left out.
scoring : str or callable, optional
    As in scikit-learn. None: minus the mean squared error, or minus the mean log-loss. Scores are weighted with ``sample_weight``
    where the scorer can do it.
halving : bool, default=True
    False: each candidate gets all rows and all iterations, from a random start.
time_budget : float, optional
    Seconds, the last fit included. When they are short, rungs are left out and fits are cut; at least one candidate is tried, and the
    last fit is not cut, unless it takes far longer than expected.
refit : bool, default=True
    Whether to fit the best candidate to all rows. Without that there is nothing to predict with.
n_members : int, default=3
    Number of models that are fitted to all rows, from different starts, and whose mean is the result; fewer where time is short.
solver : str, default="adam"
    See the Tensor Machine of that kind, as for all that follow.
tol : float, default={tol}
init_scale : "auto" or float, default="auto"
n_restarts : int, default=1
    Random starts of each candidate, of which the best goes on.
class_weight : dict or "balanced", optional
    Weights that multiply those of the rows, by class. Scores do not know them.
random_state : int, RandomState instance or None, default=None
    For the splits, the rows of a rung, the starts and the solver.
n_jobs : int, optional
    Number of threads.
verbose : int, default=0
    1 prints how many candidates are left and how long they may take; 2 some iterations of the last fit, too.
"""

_SEARCH_ATTRIBUTES = """
best_params_ : dict
    degree, rank, alpha, basis, relevance and max_iter.
best_score_ : float
    Mean over the splits, on the last rung.
best_index_ : int
    Of the row of ``cv_results_`` that this comes from.
best_estimator_ : TensorMachineRegressor or TensorMachineClassifier
cv_results_ : dict of arrays
    As in scikit-learn's halving searches, one row a candidate and rung: ``iter`` is the rung, ``n_resources`` the number of rows.
n_splits_ : int
refit_time_ : float
    Seconds of the last fit.
"""


def search_documentation(summary: str, example: str, leave_out: Collection[str]) -> str:
    """A docstring for a search."""
    from .polynomial_model import DEFAULT_TOL

    parameters = _entries(_SEARCH_PARAMETERS.format(tol=DEFAULT_TOL))
    attributes = _entries(_SEARCH_ATTRIBUTES) | _entries(_ATTRIBUTES)
    sections = [
        summary,
        cleandoc(_SEARCH),
        _section("Parameters", {name: text for name, text in parameters.items() if name not in leave_out}),
        _section("Attributes", {name: text for name, text in attributes.items() if name not in leave_out}),
        "Examples\n--------\n" + cleandoc(example),
    ]
    return "\n\n".join(sections) + "\n"


def documentation(
    summary: str,
    example: str,
    *,
    model: str = _MODEL,
    leave_out: Collection[str],
    instead: Mapping[str, str] = MappingProxyType({}),
    defaults: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """A docstring with all parameters and attributes but those that the class has not.

    ``instead`` has other texts for some of them, and ``defaults`` what some are by default where the usual
    text says something else."""
    from .polynomial_model import DEFAULT_TOL

    parameters = _entries(_PARAMETERS.format(tol=DEFAULT_TOL))
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
        _section("Parameters", {name: texts[name] for name in parameters if name not in leave_out}),
        _section(
            "Attributes",
            {
                name: instead.get(name, text)
                for name, text in _entries(_ATTRIBUTES).items()
                if name not in leave_out
            },
        ),
        "Examples\n--------\n" + cleandoc(example),
    ]
    return "\n\n".join(sections) + "\n"


def _entries(text: str) -> dict[str, str]:
    """Names of parameters, and the lines on each."""
    entries = re.split(r"\n(?=\w)", text.strip())
    return {entry.split(" : ")[0]: entry for entry in entries}


def _section(title: str, entries: Mapping[str, str]) -> str:
    return "\n".join([title, "-" * len(title), *entries.values()])
