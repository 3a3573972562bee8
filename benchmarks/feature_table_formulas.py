"""What models with a formula offer of the features in feature_table_checks.py, in the library's own way."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feature_table_checks import Fit
from feature_table_trees import Cells, by_column, compiled, plain, usual


def tensormachines() -> Cells:
    from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks
    from tensormachines.export import to_c, to_sql
    from tensormachines.inspection import contributions

    def make(**settings: Any) -> Any:
        return TensorMachineRegressor(random_state=0, **settings)

    def offset(X: Any, y: Any, offset: Any) -> Any:
        model = make(loss="poisson").fit(X, y, offset=offset)
        return lambda rows, given: model.predict(rows, offset=given)

    def quantile(level: Any) -> Fit:
        return plain(lambda: make(loss="quantile", quantile=level))

    def own_loss(loss: Any) -> Fit:
        return plain(lambda: make(loss=lambda y, z: loss(y, z)[:2]))

    def intervals(coverage: float) -> Fit:
        def fit(X: Any, y: Any) -> Any:
            model = make(intervals=True).fit(X, y)
            return lambda rows: model.predict_interval(rows, coverage)

        return fit

    def validation(X: Any, y: Any, X_val: Any, y_val: Any) -> int:
        return make(early_stopping=True).fit(X, y, X_val=X_val, y_val=y_val).n_iter_

    def warm_start(X: Any, y: Any) -> list[np.ndarray]:
        model = make(alpha=1e-5, max_iter=3, warm_start=True).fit(X, y)
        first = model.predict(X)
        return [first, model.fit(X, y).predict(X)]

    def files(paths: Sequence[Path]) -> Any:
        def parts() -> Any:
            for path in paths:
                rows = np.load(path, mmap_mode="r")
                yield rows[:, 1:], rows[:, 0]

        class Parts:
            def __iter__(self) -> Any:
                return parts()

        return make(max_iter=2, alpha=1e-4).fit(blocks.iterable(Parts())).predict

    def parts(X: Any, y: Any) -> Any:
        model = make().fit(X, y)

        def split(rows: Any) -> dict[tuple[int, ...], np.ndarray]:
            found = contributions(model, rows, order=4)
            numbers = [tuple(int(name[1:]) for name in names) for names in found.parts]
            return dict(zip(numbers, found.values.T, strict=True))

        return model.predict, split

    def export(X: Any, y: Any, folder: Path) -> Any:
        model = make(degree=2, rank=2).fit(X, y)
        (folder / "model.c").write_text(to_c(model, "model"))

        def run_query(rows: np.ndarray) -> np.ndarray:
            database = sqlite3.connect(":memory:")
            database.execute("CREATE TABLE things (x0, x1, x2)")
            database.executemany("INSERT INTO things VALUES (?, ?, ?)", rows.tolist())
            found = database.execute(to_sql(model, "things")).fetchall()
            database.close()
            return np.array(found)[:, 0]

        return model.predict, {"SQL": run_query, "C": compiled(folder, "gcc", "model.c", OUR_MAIN)}

    return usual(make) | {
        **dict.fromkeys(
            ("classes", "labels"), plain(lambda: TensorMachineClassifier(random_state=0), "predict_proba")
        ),
        "own_loss": own_loss,
        "counts": lambda loss: plain(lambda: make(loss=loss.lower())),
        "quantile": quantile,
        "quantiles": quantile,
        "offset": offset,
        "monotonic": plain(lambda: make(monotonic_cst=[1, 0, 0])),
        "limits": plain(lambda: make(interaction_cst=[{0, 1}, {2, 3}])),
        "intervals": intervals,
        "validation": validation,
        "warm_start": warm_start,
        "files": files,
        "parts": parts,
        "export": export,
    }


OUR_MAIN = """
#include <stdio.h>
#include "model.c"
int main(void) {
    double row[3], prediction;
    while (scanf("%lf %lf %lf", row, row + 1, row + 2) == 3) {
        model_predict(row, NULL, &prediction);
        printf("%.17g\\n", prediction);
    }
    return 0;
}
"""


def ebm() -> Cells:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    def make(**settings: Any) -> Any:
        usual = {"outer_bags": 2, "interactions": 3}
        return ExplainableBoostingRegressor(random_state=0, n_jobs=1, **{**usual, **settings})

    def counts(loss: str) -> Fit:
        return plain(lambda: make(objective=f"{loss.lower()}_deviance"))

    def offset(X: Any, y: Any, offset: Any) -> Any:
        model = make(objective="poisson_deviance").fit(X, y, init_score=offset)
        return lambda rows, given: model.predict(rows, init_score=given)

    def monotonic(X: Any, y: Any) -> Any:
        return make(interactions=[(0, 1)]).fit(X, y).monotonize(0, increasing=True).predict

    def without_interactions(X: Any, y: Any) -> Any:
        return make(interactions=0).fit(X, y).monotonize(0, increasing=True).predict

    def validation(X: Any, y: Any, X_val: Any, y_val: Any) -> int:
        bags = np.repeat([1, -1], [len(X), len(X_val)])[:, None].astype(np.int8)
        model = make(outer_bags=1, interactions=0)
        model.fit(np.concatenate([X, X_val]), np.concatenate([y, y_val]), bags=bags)
        return int(np.sum(model.best_iteration_))

    def warm_start(X: Any, y: Any) -> list[np.ndarray]:
        first = make(max_rounds=100).fit(X, y)
        second = make(max_rounds=100).fit(X, y, init_score=first)
        return [first.predict(X), second.predict(X, init_score=first)]

    def parts(X: Any, y: Any) -> Any:
        model = make().fit(X, y)

        def split(rows: Any) -> dict[tuple[int, ...], np.ndarray]:
            terms = dict(zip(map(tuple, model.term_features_), model.eval_terms(rows).T, strict=True))
            return {**terms, (): np.full(len(rows), model.intercept_)}

        return model.predict, split

    return usual(make) | {
        **dict.fromkeys(
            ("classes", "labels"),
            plain(lambda: ExplainableBoostingClassifier(outer_bags=2, n_jobs=1), "predict_proba"),
        ),
        "counts": counts,
        "offset": offset,
        "monotonic": [("", monotonic), ("", without_interactions)],
        "limits": plain(lambda: make(interactions=[(0, 1), (2, 3)])),
        "validation": [("as bags of -1", validation)],
        "warm_start": [("as a second model", warm_start)],
        "parts": parts,
    }


def glum() -> Cells:
    from glum import GeneralizedLinearRegressor

    def make(**settings: Any) -> Any:
        return GeneralizedLinearRegressor(**{"alpha": 1e-4, **settings})

    def framed(X: Any) -> Any:
        import pandas

        return pandas.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])])

    def counts(loss: str) -> Fit:
        family = "tweedie (1.5)" if loss == "Tweedie" else loss.lower()
        return plain(lambda: make(family=family, link="log"))

    def offset(X: Any, y: Any, offset: Any) -> Any:
        model = make(family="poisson").fit(X, y, offset=offset)
        return lambda rows, given: model.predict(rows, offset=given)

    def monotonic() -> Any:
        formula = "bs(x0, df=8, extrapolation='clip') + x1 + x2"
        return make(formula=formula, monotonic_constraints={"x0": "increasing"})

    def warm_start(X: Any, y: Any) -> list[np.ndarray]:
        model = make(family="poisson", max_iter=1, warm_start=True).fit(X, y)
        first = model.predict(X)
        return [first, model.fit(X, y).predict(X)]

    def parts(X: Any, y: Any) -> Any:
        model = make().fit(X, y)

        def split(rows: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
            return by_column(np.column_stack([rows * model.coef_, np.full(len(rows), model.intercept_)]))

        return model.predict, split

    return usual(make) | {
        "labels": plain(lambda: make(family="binomial")),
        "counts": counts,
        "offset": offset,
        "monotonic": plain(monotonic, prepare=framed),
        "limits": [("by a formula", plain(lambda: make(formula="x0 * x1 + x2 * x3"), prepare=framed))],
        "warm_start": warm_start,
        "parts": parts,
    }


def pygam() -> Cells:
    from pygam import ExpectileGAM, GammaGAM, LinearGAM, LogisticGAM, PoissonGAM, s, te

    def weighted(X: Any, y: Any, weight: Any) -> Any:
        return LinearGAM().fit(X, y, weights=weight).predict

    def counts(loss: str) -> Fit | None:
        kinds = {"Poisson": PoissonGAM, "gamma": GammaGAM}
        return plain(kinds[loss]) if loss in kinds else None

    def offset(X: Any, y: Any, offset: Any) -> Any:
        model = PoissonGAM().fit(X, y, exposure=np.exp(offset))
        return lambda rows, given: model.predict(rows, exposure=np.exp(given))

    def quantile(level: float) -> Fit:
        return lambda X, y: ExpectileGAM().fit_quantile(X, y, quantile=level).predict

    def intervals(coverage: float) -> Fit:
        def fit(X: Any, y: Any) -> Any:
            model = LinearGAM().fit(X, y)
            return lambda rows: model.prediction_intervals(rows, width=coverage)

        return fit

    def warm_start(X: Any, y: Any) -> list[np.ndarray]:
        model = PoissonGAM(max_iter=1).fit(X, y)
        first = model.predict(X)
        return [first, model.fit(X, y).predict(X)]

    def parts(X: Any, y: Any) -> Any:
        model = LinearGAM(s(0) + s(1) + s(2) + s(3) + te(0, 1)).fit(X, y)
        columns = [(0,), (1,), (2,), (3,), (0, 1)]

        def split(rows: Any) -> dict[tuple[int, ...], np.ndarray]:
            found = {part: model.partial_dependence(term, rows) for term, part in enumerate(columns)}
            return {**found, (): np.full(len(rows), model.coef_[-1])}

        return model.predict, split

    return usual(LinearGAM) | {
        "weights": weighted,
        "labels": plain(LogisticGAM, "predict_proba"),
        "counts": counts,
        "quantile": quantile,
        "offset": offset,
        "monotonic": plain(lambda: LinearGAM(s(0, constraints="monotonic_inc") + s(1) + s(2))),
        "limits": [("by a formula", plain(lambda: LinearGAM(te(0, 1) + te(2, 3))))],
        "intervals": intervals,
        "warm_start": warm_start,
        "parts": parts,
    }
