"""Docstrings of the searches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import cleandoc
from types import MappingProxyType

from .._fit.settings import DEFAULT_TOL
from .docstrings import ATTRIBUTES, entries, section

_SEARCH = """
Every combination of degree, rank, alpha, basis, relevance, trend and number of iterations is a candidate. The
search first fits every second value of each setting to few rows, and the best of these candidates to all
rows. Then it tries candidates that differ from the best one by one step in one setting, and then the
neighbours of the next best, because few rows favour simple models and large penalties. A candidate is
abandoned if its first splits are clearly worse than those of the best one; its mean score is then NaN.
Candidates that differ only in alpha share their passes over the rows. Everything that is learned for a split,
including its basis, is learned from its training rows alone.

A fitted search has a ``best_estimator_``, fitted to all rows, and offers its attributes and methods.
"""

_SEARCH_PARAMETERS = """
degrees : sequence of int, default=(1, 2, 3, 4, 6)
    Degrees to choose from.
ranks : sequence of int or "auto", default="auto"
    Ranks to choose from. "auto" stands for the rank of a single fit with rank="auto", and twice that rank.
alphas : sequence of float, default=(1e-6, 3e-6, 1e-5, ..., 1e-2)
    Penalties to choose from. On fewer rows a candidate gets a larger penalty.
bases : sequence of str or None, default=("auto",)
    Bases to choose from.
relevances : sequence of int, default=(0, 2)
    Values of ``relevance`` to choose from.
roughnesses : sequence of float, default=(3.0, 20.0)
    Values of ``roughness`` to choose from, for splines.
trends : sequence of bool, default=(False, True)
    Values of ``trend`` to choose from.
max_iters : sequence of int, optional
    Numbers of iterations to choose from; fewer iterations also act as a penalty. None: 10, 30 and 90 for
    "adam", the default of the solver otherwise.
cv : int, splitter or iterable of splits, optional
    None: 5 shuffled folds, stratified in classification; with 10,000 rows or more, a single held-out fifth of
    the rows. If `fit` gets ``groups``, None means 5 folds of whole groups. With ``halving`` only the first
    five splits are used, or the first three with 10,000 rows or more. Splits with a single class to train on,
    or without rows of positive weight, are left out.
scoring : str or callable, optional
    As in scikit-learn. None: minus the mean of the measure that belongs to the ``loss``: squared error,
    deviance, pinball loss, absolute error, Huber loss or log-loss. Scores are weighted with ``sample_weight``
    if the scorer accepts it.
halving : bool, default=True
    False: every candidate gets all rows and all iterations, from a random start.
time_budget : float or None, default=60.0
    Maximum time in seconds, including the last fits. The search continues as long as there are candidates
    near the best ones. With None it ends when 24 trials in a row have not changed the best candidate. If time
    is short, candidates are skipped and fits are cut short. At least one candidate is tried, and the last fit
    is not cut short unless it takes far longer than expected. If X is not in memory, the time to read it
    counts, but the fit to all rows is never cut short. If no time is left for more, the result is one model
    of one candidate.
subsample : int, default=50_000
    Maximum number of rows to try candidates on if X is a source of blocks or a Dask collection. One pass
    draws them at random and keeps at least 5 rows of each class. Fewer dense rows are drawn if they would
    have more than 20 million entries. The best candidate is fitted to all rows, with alpha divided by the
    square root of (number of all rows / number of drawn rows). If X has no more than ``subsample`` rows, the
    search is the same as for these rows in memory.
refit : bool, default=True
    Whether to fit the best candidate to all rows. If False, the search cannot predict.
n_members : int, default=3
    Number of models of the best candidate, from different starts, to average; fewer if time is short. Up to
    four different candidates are averaged, with weights, if this lowers the loss on held-out rows, but not
    with n_members=1 or with ``scoring``. If X is a Dask collection, each of these candidates is a single
    model.
loss : str or callable, default="squared_error"
    See `TensorMachineRegressor` for this parameter and those below.
power : float, default=1.5
quantile : float or sequence of float, default=0.5
    All levels get the same settings: those with the lowest mean loss over the levels.
intervals : bool, default=False
    Whether to make `predict_interval` available. The errors on the held-out rows of the splits calibrate the
    intervals; this takes a little more time than ``time_budget``.
shared_factors : "auto" or bool, default="auto"
jumps : "auto" or bool, default="auto"
    "auto": all candidates have jumps if models with default settings have them. If some of the candidates are
    given, "auto" means False, because default settings are then not tried.
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
    Determines the splits, the rows of a rung and of a ``subsample``, the starts and the minibatches. Results
    repeat exactly only with ``time_budget=None``: otherwise they also depend on how fast the machine is.
n_jobs : int, optional
    Number of threads.
verbose : "auto" or int, default="auto"
    "auto" shows one line, updated in place, in a terminal or a notebook, and nothing elsewhere: how many
    candidates are left, the best score so far, and at the end what there was no time for. 0 shows nothing, 1
    prints every update on its own line, and 2 also prints iterations of the last fit.
"""

_SEARCH_ATTRIBUTES = """
best_params_ : dict
    degree, rank, alpha, basis, roughness, relevance, trend, jumps and max_iter of the best candidate.
best_score_ : float
    Mean over the splits, on the last rung.
best_index_ : int
    Row index of the best candidate in ``cv_results_``.
best_estimator_ : TensorMachineRegressor or TensorMachineClassifier
    Only if ``refit``. Its model is the weighted mean of ``members_``.
members_ : list of dict
    Settings and ``weight`` of the averaged candidates as they were fitted to all rows, the best one first.
    The weights add up to 1, or in classification to the factor that calibrates the probabilities on held-out
    rows.
cv_results_ : dict of arrays
    As in scikit-learn's halving searches, one row per candidate and rung: ``iter`` is the rung,
    ``n_resources`` the number of rows.
n_splits_ : int
subsample_ : int
    Number of rows that candidates were trained or scored on: all rows if X was in memory.
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
