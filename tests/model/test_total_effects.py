"""Total effects against explicit loops, which replace each column of each row and predict again."""

import numpy as np
import pytest
from scipy import sparse

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._model.block import Block
from tensormachines._model.total_effects import shares, total_effects
from tensormachines.peers import FactorizationMachineClassifier, FactorizationMachineRegressor

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
random = np.random.default_rng(0)
X = random.normal([0, 1, 5, 0], size=(40, 4))
X[:, 3] = X[:, 3] > 0.3
SPARSE = np.where(random.random(X.shape) < 0.4, X, 0.0)
Y = X[:, 0] * X[:, 1] + X[:, 2] ** 2 + X[:, 3]
LABELS = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
QUICK = {"degree": 3, "rank": 2, "max_iter": 20, "alpha": 1e-4, "random_state": 0}


def by_loops(model, rows, weight):
    """Return what total_effects promises, by predicting every row with every column from another row."""
    dense = rows.toarray() if sparse.issparse(rows) else rows
    before = np.atleast_2d(model._machine.outputs(dense).T).T
    others = np.random.default_rng(0).permutation(len(dense))
    effects = np.zeros((before.shape[1], dense.shape[1]))
    for j in range(dense.shape[1]):
        changed = dense.copy()
        changed[:, j] = dense[others, j]
        effects[:, j] = weight @ (model._machine.outputs(changed) - before) ** 2
    return effects


def effects_of(model, rows, weight=None, **options):
    machine = model._machine
    block = Block(machine.basis.rows(rows), machine.basis, weight=weight)
    return total_effects(block, machine.layout, machine.params, **options)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (TensorMachineRegressor(**QUICK), Y),
        (TensorMachineRegressor(**QUICK, n_members=2), np.column_stack([Y, X[:, 0]])),
        (TensorMachineRegressor(**QUICK | {"degree": 1}), Y),
        (TensorMachineRegressor(**QUICK, basis="standard"), Y),
        (TensorMachineRegressor(**QUICK, basis=None), Y),
        (TensorMachineClassifier(**QUICK), LABELS),
        (TensorMachineClassifier(**QUICK, shared_factors=False), LABELS),
        (TensorMachineClassifier(**QUICK), LABELS > 0),
        (FactorizationMachineRegressor(degree=3, rank=2, random_state=0), Y),
        (FactorizationMachineClassifier(degree=2, rank=2, shared_factors=True, random_state=0), LABELS),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_effects_are_those_of_explicit_replacements(model, target, form):
    rows = form(X if form is np.asarray else SPARSE)
    if form is not np.asarray and model.basis == "auto":
        model = type(model)(**model.get_params() | {"basis": "standard"})
    model.fit(rows, target)
    weight = random.random(len(X))
    found, total = effects_of(model, rows, weight)
    assert total == pytest.approx(weight.sum())
    np.testing.assert_allclose(found, by_loops(model, rows, weight), rtol=1e-6, atol=1e-9)


def test_missing_values_and_levels_are_values_like_others():
    rows = X.copy()
    rows[::3, 0] = np.nan
    model = TensorMachineRegressor(**QUICK).fit(rows, Y)
    np.testing.assert_allclose(
        effects_of(model, rows)[0], by_loops(model, rows, np.ones(len(rows))), rtol=1e-6
    )


@pytest.mark.parametrize("basis", ["unit", "sphere"])
def test_columns_of_rows_of_unit_norm_are_those_of_the_normalised_row(basis):
    model = TensorMachineRegressor(**QUICK, basis=basis).fit(X, Y)
    machine = model._machine
    lifted = machine.basis.lift(X).explicit()
    others = np.random.default_rng(0).permutation(len(X))
    layout, params = machine.layout, machine.params

    def outputs(rows):
        linear = rows @ layout.linear(params)[:, 0]
        return linear + sum(
            np.einsum("nf,rpf->nrp", rows, factors[0]).prod(axis=2).sum(axis=1)
            for factors in layout.factors_by_degree(params).values()
        )

    expected = []
    for j in range(lifted.shape[1]):
        changed = lifted.copy()
        changed[:, j] = lifted[others, j]
        expected.append(((outputs(changed) - outputs(lifted)) ** 2).sum())
    np.testing.assert_allclose(effects_of(model, X)[0][0], expected, rtol=1e-6, atol=1e-12)


def test_fewer_rows_do_for_a_limit_of_the_work():
    rows = random.standard_normal((4000, 3))
    model = TensorMachineRegressor(**QUICK).fit(rows[:200], rows[:200] @ [3.0, 1.0, 0.0])
    exact, total = effects_of(model, rows)
    some, few = effects_of(model, rows, most_entries=1000 * 3 * model._machine.layout.n_columns)
    assert (total, few) == (4000, 1000)
    np.testing.assert_allclose(some / few, exact / total, rtol=0.2, atol=1e-2 * exact.max() / total)


def test_shares():
    np.testing.assert_allclose(shares(np.array([[1.0, 3.0], [0.0, 0.0]])), [[0.25, 0.75], [0.0, 0.0]])
