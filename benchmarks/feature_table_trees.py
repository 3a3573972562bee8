"""What boosted trees offer of the features in feature_table_checks.py, each in the library's own way."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feature_table_checks import COLOURS, Fit

Cells = dict[str, Fit | list[tuple[str, Fit]]]
"""What to try for each feature: a function, or several with remarks, the first of which that works counts. An
empty remark leaves the mark to the check."""


def plain(
    make: Callable[[], Any], method: str = "predict", prepare: Callable[[Any], Any] = lambda X: X
) -> Fit:
    """Return ``fit(X, y)``, or with weights ``fit(X, y, weight)``, as in scikit-learn."""

    def fit(X: Any, y: Any, *weight: Any) -> Any:
        model = make()
        model.fit(prepare(X), y, **({"sample_weight": weight[0]} if weight else {}))
        return lambda rows: getattr(model, method)(prepare(rows))

    return fit


def as_categories(X: Any) -> Any:
    """Return a frame of pandas or polars whose colours are categories."""
    if "colour" not in getattr(X, "columns", ()):
        return X
    if hasattr(X, "with_columns"):
        import polars

        return X.with_columns(polars.col("colour").cast(polars.Enum(COLOURS)))
    import pandas

    return X.astype({"colour": pandas.CategoricalDtype(COLOURS)})


def usual(make: Callable[[], Any], prepare: Callable[[Any], Any] = as_categories) -> Cells:
    """Return what is tried with every library: to fit and predict what it is given."""
    fit = plain(make)
    names = ("missing", "dates", "sparse", "weights", "targets")
    text: list[tuple[str, Fit]] = [("", fit), ("as categories", plain(make, prepare=prepare))]
    return {**dict.fromkeys(names, fit), "text": text, "polars": plain(make, prepare=prepare)}


def by_column(values: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    """Return parts by column, and the constant, which is last."""
    return {**{(column,): part for column, part in enumerate(values[:, :-1].T)}, (): values[:, -1]}


def lightgbm() -> Cells:
    import lightgbm as library

    def make(kind: Any = library.LGBMRegressor, **settings: Any) -> Any:
        return kind(n_jobs=1, verbose=-1, random_state=0, **settings)

    def numbers(X: Any) -> Any:
        # Text and categories of polars end the process: "Unsupported Arrow type", and then std::terminate.
        if "colour" in X.columns:
            raise TypeError("LightGBM 4.7 takes no text nor categories of polars")
        return X

    def counts(loss: str) -> Fit:
        return plain(lambda: make(objective=loss.lower()))

    def offset(X: Any, y: Any, offset: Any) -> Any:
        model = make(objective="poisson").fit(X, y, init_score=offset)
        return lambda rows: model.predict(rows)

    def validation(X: Any, y: Any, X_val: Any, y_val: Any) -> int:
        stop = library.early_stopping(20, verbose=False)
        return make(n_estimators=500).fit(X, y, eval_X=X_val, eval_y=y_val, callbacks=[stop]).best_iteration_

    def warm_start(X: Any, y: Any) -> list[np.ndarray]:
        first = make(n_estimators=10).fit(X, y)
        return [first.predict(X), make(n_estimators=10).fit(X, y, init_model=first).predict(X)]

    class Part(library.Sequence):
        batch_size = 4096

        def __init__(self, path: Path) -> None:
            self.rows = np.load(path, mmap_mode="r")

        def __getitem__(self, index: Any) -> np.ndarray:
            return np.array(self.rows[index][..., 1:])

        def __len__(self) -> int:
            return len(self.rows)

    def files(paths: Sequence[Path]) -> Any:
        y = np.concatenate([np.load(path, mmap_mode="r")[:, 0] for path in paths])
        settings = {"num_threads": 1, "verbose": -1}
        data = library.Dataset([Part(path) for path in paths], y, params=settings)
        return library.train(settings, data, num_boost_round=20).predict

    def parts(X: Any, y: Any) -> Any:
        model = make().fit(X, y)
        return model.predict, lambda rows: by_column(model.predict(rows, pred_contrib=True))

    def ranking(X: Any, y: Any, groups: Any) -> Any:
        return make(library.LGBMRanker).fit(X, y, group=np.unique(groups, return_counts=True)[1]).predict

    return usual(make) | {
        "polars": plain(make, prepare=numbers),
        **dict.fromkeys(("classes", "labels"), plain(lambda: make(library.LGBMClassifier), "predict_proba")),
        "own_loss": lambda loss: plain(lambda: make(objective=lambda y, z: loss(y, z)[1:])),
        "counts": counts,
        "quantile": lambda level: plain(lambda: make(objective="quantile", alpha=level)),
        "ranking": ranking,
        "offset": offset,
        "monotonic": plain(lambda: make(monotone_constraints=[1, 0, 0])),
        "limits": plain(lambda: make(interaction_constraints=[[0, 1], [2, 3]])),
        "validation": validation,
        "warm_start": warm_start,
        "files": [("as bins in memory", files)],
        "parts": parts,
    }


def xgboost() -> Cells:
    import xgboost as library

    def make(kind: Any = library.XGBRegressor, **settings: Any) -> Any:
        return kind(n_jobs=1, random_state=0, **{"n_estimators": 50, "max_depth": 4, **settings})

    def offset(X: Any, y: Any, offset: Any) -> Any:
        model = make(objective="count:poisson", n_estimators=200).fit(X, y, base_margin=offset)
        return lambda rows, given: model.predict(rows, base_margin=given)

    def counts(loss: str) -> Fit:
        name = "count:poisson" if loss == "Poisson" else f"reg:{loss.lower()}"
        return plain(lambda: make(objective=name, n_estimators=100, max_depth=3, learning_rate=0.1))

    def quantile(level: Any) -> Fit:
        return plain(lambda: make(objective="reg:quantileerror", quantile_alpha=level, learning_rate=0.1))

    def validation(X: Any, y: Any, X_val: Any, y_val: Any) -> int:
        model = make(n_estimators=500, early_stopping_rounds=20)
        return model.fit(X, y, eval_set=[(X_val, y_val)], verbose=False).best_iteration

    def warm_start(X: Any, y: Any) -> list[np.ndarray]:
        first = make(n_estimators=10).fit(X, y)
        return [first.predict(X), make(n_estimators=10).fit(X, y, xgb_model=first).predict(X)]

    class Parts(library.DataIter):
        def __init__(self, paths: Sequence[Path]) -> None:
            self.paths, self.number = paths, 0
            super().__init__(cache_prefix=str(paths[0].parent / "cache"))

        def next(self, input_data: Callable[..., Any]) -> bool:
            if self.number == len(self.paths):
                return False
            rows = np.load(self.paths[self.number])
            self.number += 1
            input_data(data=rows[:, 1:], label=rows[:, 0])
            return True

        def reset(self) -> None:
            self.number = 0

    def files(paths: Sequence[Path]) -> Any:
        data = library.ExtMemQuantileDMatrix(Parts(paths), max_bin=256, nthread=1)
        model = library.train({"nthread": 1, "max_depth": 4}, data, num_boost_round=10)
        return model.inplace_predict

    def parts(X: Any, y: Any) -> Any:
        model = make().fit(X, y)
        booster = model.get_booster()
        return model.predict, lambda rows: by_column(
            booster.predict(library.DMatrix(rows), pred_contribs=True)
        )

    def ranking(X: Any, y: Any, groups: Any) -> Any:
        return make(library.XGBRanker).fit(X, y, qid=groups).predict

    return usual(lambda: make(enable_categorical=True)) | {
        **dict.fromkeys(("classes", "labels"), plain(lambda: make(library.XGBClassifier), "predict_proba")),
        "own_loss": lambda loss: plain(lambda: make(objective=lambda y, z: loss(y, z)[1:])),
        "counts": counts,
        "quantile": quantile,
        "quantiles": quantile,
        "ranking": ranking,
        "offset": offset,
        "monotonic": plain(lambda: make(monotone_constraints=(1, 0, 0))),
        "limits": plain(lambda: make(interaction_constraints="[[0, 1], [2, 3]]")),
        "validation": validation,
        "warm_start": warm_start,
        "files": files,
        "parts": parts,
    }


def catboost() -> Cells:
    import catboost as library

    def make(kind: Any = library.CatBoostRegressor, **settings: Any) -> Any:
        usual = {"iterations": 200, "verbose": False, "allow_writing_files": False, "thread_count": 1}
        return kind(random_seed=0, **{**usual, **settings})

    def coloured(X: Any, y: Any) -> Any:
        return make(cat_features=["colour"] if "colour" in X.columns else None).fit(X, y).predict

    def counts(loss: str) -> Fit | None:
        names = {"Poisson": "Poisson", "Tweedie": "Tweedie:variance_power=1.5"}
        if loss not in names:
            return None

        def fit(X: Any, y: Any) -> Any:
            model = make(loss_function=names[loss]).fit(X, y)
            return lambda rows: model.predict(
                rows, prediction_type="Exponent"
            )  # with Tweedie, not the default

        return fit

    def offset(X: Any, y: Any, offset: Any) -> Any:
        model = make(loss_function="Poisson").fit(X, y, baseline=offset)
        return lambda rows, given: model.predict(library.Pool(rows, baseline=given))

    def validation(X: Any, y: Any, X_val: Any, y_val: Any) -> int:
        model = make(iterations=500).fit(X, y, eval_set=(X_val, y_val), early_stopping_rounds=20)
        return model.get_best_iteration()

    def warm_start(X: Any, y: Any) -> list[np.ndarray]:
        first = make(iterations=10).fit(X, y)
        return [first.predict(X), make(iterations=10).fit(X, y, init_model=first).predict(X)]

    def intervals(coverage: float) -> Fit:
        from scipy.stats import norm

        deviations = norm.ppf((1 + coverage) / 2) * np.array([-1, 1])

        def fit(X: Any, y: Any) -> Any:
            model = make(loss_function="RMSEWithUncertainty").fit(X, y)

            def bounds(rows: Any) -> np.ndarray:
                mean, variance = model.predict(rows).T
                return mean[:, None] + np.sqrt(variance)[:, None] * deviations

            return bounds

        return fit

    def parts(X: Any, y: Any) -> Any:
        model = make().fit(X, y)
        return model.predict, lambda rows: by_column(
            model.get_feature_importance(library.Pool(rows), type="ShapValues")
        )

    def own_loss(loss: Any) -> Fit:
        class Objective:
            def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> list[tuple[float, float]]:
                _, slopes, seconds = loss(np.array(targets), np.array(approxes))
                return list(zip(-slopes, -seconds, strict=True))

        return plain(lambda: make(loss_function=Objective(), eval_metric="RMSE"))

    def export(X: Any, y: Any, folder: Path) -> Any:
        model = make(iterations=20).fit(X, y)
        model.save_model(str(folder / "model.cpp"), format="cpp")
        return model.predict, {"C++": compiled(folder, "g++", "model.cpp", CATBOOST_MAIN)}

    def ranking(X: Any, y: Any, groups: Any) -> Any:
        return make(library.CatBoostRanker, loss_function="YetiRank").fit(X, y, group_id=groups).predict

    return usual(make) | {
        "text": [("", plain(make)), ("if named", coloured)],
        "polars": coloured,
        "targets": plain(lambda: make(loss_function="MultiRMSE")),
        "classes": plain(lambda: make(library.CatBoostClassifier), "predict_proba"),
        "labels": plain(
            lambda: make(library.CatBoostClassifier, loss_function="MultiLogloss"), "predict_proba"
        ),
        "own_loss": own_loss,
        "counts": counts,
        "quantile": lambda level: plain(lambda: make(loss_function=f"Quantile:alpha={level}")),
        "quantiles": lambda levels: plain(
            lambda: make(loss_function="MultiQuantile:alpha=" + ",".join(map(str, levels)))
        ),
        "ranking": ranking,
        "offset": offset,
        "monotonic": plain(lambda: make(monotone_constraints=[1, 0, 0])),
        "intervals": [("for normal noise", intervals)],
        "validation": validation,
        "warm_start": warm_start,
        "parts": parts,
        "export": export,
    }


CATBOOST_MAIN = """
#include <iostream>
#include "model.cpp"
int main() {
    std::vector<float> row(3);
    std::cout.precision(17);
    while (std::cin >> row[0] >> row[1] >> row[2]) std::cout << ApplyCatboostModel(row) << "\\n";
}
"""


def compiled(folder: Path, compiler: str, model: str, main: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that runs a compiled program, which reads rows and writes predictions."""
    source = folder / ("main" + Path(model).suffix)
    source.write_text(main)
    program = str(folder / compiler)
    subprocess.run([compiler, str(source), "-o", program, "-lm"], check=True, capture_output=True)

    def run(rows: np.ndarray) -> np.ndarray:
        lines = "\n".join(" ".join(map(repr, row)) for row in rows.tolist())
        found = subprocess.run([program], input=lines, text=True, check=True, capture_output=True)
        return np.array(found.stdout.split(), dtype=float)

    return run


def histogram_trees() -> Cells:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    def make(**settings: Any) -> Any:
        return HistGradientBoostingRegressor(random_state=0, **settings)

    def counts(loss: str) -> Fit | None:
        return None if loss == "Tweedie" else plain(lambda: make(loss=loss.lower()))

    def validation(X: Any, y: Any, X_val: Any, y_val: Any) -> int:
        model = make(early_stopping=True, max_iter=500)
        return model.fit(X, y, X_val=X_val, y_val=y_val).n_iter_

    def warm_start(X: Any, y: Any) -> list[np.ndarray]:
        model = make(max_iter=10, warm_start=True).fit(X, y)
        first = model.predict(X)
        return [first, model.set_params(max_iter=20).fit(X, y).predict(X)]

    return usual(make) | {
        **dict.fromkeys(
            ("classes", "labels"),
            plain(lambda: HistGradientBoostingClassifier(random_state=0), "predict_proba"),
        ),
        "counts": counts,
        "quantile": lambda level: plain(lambda: make(loss="quantile", quantile=level)),
        "monotonic": plain(lambda: make(monotonic_cst=[1, 0, 0])),
        "limits": plain(lambda: make(interaction_cst=[{0, 1}, {2, 3}])),
        "validation": validation,
        "warm_start": warm_start,
    }
