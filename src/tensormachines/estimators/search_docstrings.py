"""The docstrings of the searches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import cleandoc
from types import MappingProxyType

from .._fit.settings import DEFAULT_TOL
from .docstrings import ATTRIBUTES, entries, section

_SEARCH = """
Every combination of degree, rank, alpha, basis, relevance, trend and number of iterations is a candidate.
Every second one along each of these is fitted to few rows, the best of them to all rows; then candidates that
differ from the best one by one step in one setting are tried, and then those near the next best: few rows
favour simple models and large penalties. A candidate whose first splits are clearly worse than those of the
best one is given up; its score is not finite. Candidates that differ in alpha alone share their passes over
the rows. Everything that is learnt for a split, its basis included, is learnt from its training rows alone.

A fitted search has a ``best_estimator_``, fitted to all rows, and offers its attributes and methods.
"""

_SEARCH_PARAMETERS = """
degrees : sequence of int, default=(1, 2, 3, 4, 6)
    Degrees to choose from.
ranks : sequence of int or "auto", default="auto"
    Ranks to choose from. "auto" is the rank that "auto" is for a single fit, and twice that.
alphas : sequence of float, default=(1e-6, 3e-6, 1e-5, ..., 1e-2)
    Penalties to choose from. On fewer rows a candidate gets a larger one.
bases : sequence of str or None, default=("auto",)
    Bases to choose from.
relevances : sequence of int, default=(0, 2)
    Values of ``relevance`` to choose from.
roughnesses : sequence of float, default=(3.0, 20.0)
    Values of ``roughness`` to choose from.
trends : sequence of bool, default=(False, True)
    Values of ``trend`` to choose from.
max_iters : sequence of int, optional
    Numbers of iterations to choose from: fewer of them are a penalty, too. None: 10, 30 and 90 for "adam",
    the default of the solver otherwise.
cv : int, splitter or iterable of splits, optional
    None: 5 shuffled folds, stratified in classification; from 10,000 rows on, a fifth of the rows is held
    out. With ``halving`` only the first five splits are used, from 10,000 rows on the first three. Splits
    with a single class to train on, or without rows of positive weight, are left out.
scoring : str or callable, optional
    As in scikit-learn. None: minus the mean squared error, minus the mean deviance, pinball loss, absolute
    error or Huber loss if that is the ``loss``, or minus the mean log-loss. Scores are weighted
    with ``sample_weight`` if the scorer accepts it.
halving : bool, default=True
    False: every candidate gets all rows and all iterations, from a random start.
time_budget : float or None, default=60.0
    Most seconds, the last fits included: the search goes on for as long as there are candidates near the best
    ones. With None it ends when 24 trials in a row have not changed the best candidate. If time is short,
    candidates are left out and fits are cut; at least one candidate is tried, and the last fit is not cut
    unless it takes far longer than expected.
    Where X is not in memory, its reading counts, but the fit to all rows is never cut: it takes the time it
    takes, and there is one model of one candidate if no time is left for more.
subsample : int, default=50_000
    Largest number of rows to try candidates on if X is a source of blocks or a Dask collection. They are
    drawn at random in one pass, which keeps 5 rows of each class at least; of dense rows there are fewer if
    they would have more than 20 million entries. The best candidate is fitted to all rows, with an alpha
    that is smaller by the square root of how many times more rows these are. If no more rows than this are
    there, the search is that of the same rows in memory.
refit : bool, default=True
    Whether to fit the best candidate to all rows. Without it the search cannot predict.
n_members : int, default=3
    Number of models of the best candidate, from different starts, that are averaged; fewer if time is short.
    Up to four different candidates are averaged, with weights, if that lowers the loss of held-out rows; not
    with 1, and not with ``scoring``. If X is a Dask collection, each of these is a single model.
loss : str or callable, default="squared_error"
    See `TensorMachineRegressor`, as for the parameters below.
power : float, default=1.5
quantile : float or sequence of float, default=0.5
    All levels have the same settings, those with the lowest mean of their losses.
intervals : bool, default=False
    Whether `predict_interval` should be available, calibrated by the errors on the rows of the splits. That
    takes a little more time than ``time_budget``.
shared_factors : "auto" or bool, default="auto"
jumps : "auto" or bool, default="auto"
    "auto": all candidates have jumps if models with default settings have them. It is False if some of the
    candidates are given, because default settings are not tried then.
categorical_features : "auto" or sequence of bool, int or str, default="auto"
periodic_features : dict or None, default=None
monotonic_cst : sequence of int, dict or None, default=None
interaction_cst : "pairwise", "no_interactions", sequence of sets or None, default=None
    Candidates of too high a degree are left out.
solver : str, default="adam"
tol : float, default={tol}
init_scale : "auto" or float, default="auto"
n_restarts : int, default=1
    Number of random starts of each candidate.
class_weight : dict or "balanced", optional
    Weights of the classes, which multiply the weights of the rows. Scores are not weighted by class.
random_state : int, RandomState instance or None, default=None
    Determines the splits, the rows of a rung and of a ``subsample``, the starts and the minibatches.
n_jobs : int, optional
    Number of threads.
verbose : "auto" or int, default="auto"
    "auto" shows one line that is updated, on a terminal and in a notebook, and nothing elsewhere: how many
    candidates are left, the best score so far, and in the end what there was no time for. 0 shows nothing; 1
    prints all these lines, 2 also iterations of the last fit.
"""

_SEARCH_ATTRIBUTES = """
best_params_ : dict
    degree, rank, alpha, basis, roughness, relevance, trend, jumps and max_iter of the best candidate.
best_score_ : float
    Mean over the splits, on the last rung.
best_index_ : int
    Row of ``cv_results_`` with the best candidate.
best_estimator_ : TensorMachineRegressor or TensorMachineClassifier
    Only if ``refit``. Its model is the weighted mean of ``members_``.
members_ : list of dict
    Settings and ``weight`` of the candidates that were averaged, the best one first, as they were fitted to
    all rows. In classification the weights add up to what calibrates the probabilities on held-out rows,
    otherwise to 1.
cv_results_ : dict of arrays
    As in scikit-learn's halving searches, one row per candidate and rung: ``iter`` is the rung,
    ``n_resources`` the number of rows.
n_splits_ : int
subsample_ : int
    Number of rows that candidates were tried on, to train or to score: all rows if X was in memory.
refit_time_ : float
    Seconds of the last fit.
"""


def search_documentation(
    summary: str,
    example: str,
    leave_out: Collection[str],
    instead: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the docstring of a search, see `documentation`."""
    parameters = {**entries(_SEARCH_PARAMETERS.format(tol=DEFAULT_TOL)), **instead}
    attributes = entries(_SEARCH_ATTRIBUTES) | entries(ATTRIBUTES)
    sections = [
        summary,
        cleandoc(_SEARCH),
        section("Parameters", {name: text for name, text in parameters.items() if name not in leave_out}),
        section("Attributes", {name: text for name, text in attributes.items() if name not in leave_out}),
        "Examples\n--------\n" + cleandoc(example),
    ]
    return "\n\n".join(sections) + "\n"
