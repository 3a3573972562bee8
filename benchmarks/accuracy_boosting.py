"""The boosted rivals of accuracy.py: LightGBM, XGBoost, CatBoost, HistGradientBoosting, and explainable
boosting machines.

Trees are stopped early on the held-out rows, with a patience of 5 / learning rate rounds, and refitted to all
training rows with the number of rounds that was best there. Where the clock ends a trial before that, the
refit goes on for as long as the budget lasts, up to twice the rounds of the trial, or eight times if the loss
was still falling steeply; in that case larger learning rates are tried. Categories are given as categories
or, where the search prefers it, as cross-fitted means of the target."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.preprocessing import TargetEncoder

from accuracy_search import Fitted, Params, Rival, Trial
from default_rivals import text_columns, text_for_catboost
from measures import loss_of, pickled_bytes
from sets import Sample

MOST_ROUNDS = 10_000


@dataclass
class Encoded:
    """An encoder of the categories, and what a library makes of the encoded rows; all candidates share it."""

    encoder: Any
    learn: Any
    held_out: Any


class TreeRival(Rival):
    encodings: tuple[str, ...] = ("native", "target")

    @cached_property
    def kept(self) -> dict[str, Encoded]:
        return {}

    def prepare(self, X: Any, y: np.ndarray, reference: Any = None) -> Any:
        """Return what the library trains on."""
        raise NotImplementedError

    def encoded(self, encoding: str) -> Encoded:
        if encoding not in self.kept:
            learn, held_out = self.parts
            encoder, X = self.encode(encoding, learn)
            prepared = self.prepare(X, learn.y)
            X_held_out = held_out.X if encoder is None else encoder.transform(held_out.X)
            self.kept[encoding] = Encoded(encoder, prepared, self.prepare(X_held_out, held_out.y, prepared))
        return self.kept[encoding]

    def encode(self, encoding: str, sample: Sample) -> tuple[Any, Any]:
        if encoding == "native":
            return None, sample.X
        of_categories = TargetEncoder(random_state=self.seed), text_columns(sample.X)
        encoder = make_column_transformer(of_categories, remainder="passthrough")
        return encoder, encoder.fit_transform(sample.X, sample.y).astype(np.float32)

    def settings(self, params: Params) -> Params:
        return {**self.fixed, **{name: value for name, value in params.items() if name != "encoding"}}

    @property
    def fixed(self) -> Params:
        return {}

    def space(self) -> Params:
        raise NotImplementedError

    def defaults(self) -> Params:
        raise NotImplementedError

    def learning_rate(self) -> float:
        return self.log_uniform(0.1, 0.5) if self.hurried else self.log_uniform(0.02, 0.3)

    def candidates(self) -> Iterator[Params]:
        encodings = self.encodings if self.data.categories else ("native",)
        for encoding in encodings:
            yield {"encoding": encoding, **self.defaults()}
        while True:
            yield {"encoding": self.choice(*encodings), **self.space()}

    def fitted(self, predict: Callable[[Any], np.ndarray], encoder: Any, n_bytes: int) -> Fitted:
        if encoder is None:
            return Fitted(predict, n_bytes)
        return Fitted(lambda X: predict(encoder.transform(X)), n_bytes + pickled_bytes(encoder))


def patience(learning_rate: float) -> int:
    return max(20, round(5 / learning_rate))


class Clock:
    """Tells a fit of many rounds when its CPU seconds are over, but not before `least` rounds."""

    def __init__(self, seconds: float, least: int = 1) -> None:
        self.until, self.least, self.rang = time.process_time() + seconds, least, False

    def rings(self, rounds: int) -> bool:
        self.rang = rounds >= self.least and time.process_time() > self.until
        return self.rang


def trial_of(params: Params, losses: Sequence[float], cut_short: bool) -> Trial:
    """Return the trial that these held-out losses, one for each round, belong to.

    A fit that the clock cut short is complete all the same if its best round is long past.
    """
    best = int(np.argmin(losses))
    unfinished = cut_short and best + 1 >= 0.9 * len(losses)
    falling = losses[best] < 0.95 * losses[2 * best // 3]
    return Trial(params, float(losses[best]), best + 1, reach=1 if not unfinished else 8 if falling else 2)


class LightGBMRival(TreeRival):
    def defaults(self) -> Params:
        return {"learning_rate": 0.1}

    def space(self) -> Params:
        return {
            "learning_rate": self.learning_rate(),
            "num_leaves": self.log_integer(8, 256),
            "min_data_in_leaf": self.log_integer(2, 100),
            "feature_fraction": self.uniform(0.4, 1),
            "bagging_fraction": self.uniform(0.5, 1),
            "bagging_freq": 1,
            "lambda_l2": self.log_uniform(1e-3, 10),
        }

    @property
    def fixed(self) -> Params:
        n = self.data.n_classes
        objective = "regression" if not n else "binary" if n == 2 else "multiclass"
        params = {"objective": objective, "seed": self.seed, "num_threads": 1, "verbosity": -1}
        return {**params, "feature_pre_filter": False, **({"num_class": n} if n > 2 else {})}

    def prepare(self, X: Any, y: np.ndarray, reference: Any = None) -> Any:
        import lightgbm

        return lightgbm.Dataset(X, y, reference=reference, params=self.fixed).construct()

    def train(self, params: Params, prepared: Any, rounds: int, clock: Clock, **options: Any) -> Any:
        import lightgbm
        from lightgbm.callback import EarlyStopException

        def stop(environment: Any) -> None:
            if clock.rings(environment.iteration + 1):
                raise EarlyStopException(environment.iteration, environment.evaluation_result_list or [])

        stop.order = 40  # type: ignore[attr-defined]  # after the others, which record the round
        callbacks = [*options.pop("callbacks", []), stop]
        return lightgbm.train(self.settings(params), prepared, rounds, callbacks=callbacks, **options)

    def trial(self, params: Params, seconds: float) -> Trial:
        import lightgbm

        clock = Clock(seconds)
        encoded = self.encoded(params["encoding"])
        history: dict[str, dict[str, list[float]]] = {}
        callbacks = [
            lightgbm.record_evaluation(history),
            lightgbm.early_stopping(patience(params["learning_rate"]), verbose=False),
        ]
        self.train(
            params,
            encoded.learn,
            MOST_ROUNDS,
            clock,
            valid_sets=[encoded.held_out],
            valid_names=["held_out"],
            callbacks=callbacks,
        )
        (losses,) = history["held_out"].values()
        return trial_of(params, losses, clock.rang)

    def refit(self, trial: Trial, seconds: float) -> Fitted:
        clock = Clock(seconds, trial.rounds)
        encoder, X = self.encode(trial.params["encoding"], self.data.train)
        model = self.train(trial.params, self.prepare(X, self.data.train.y), trial.most_rounds, clock)
        trial.rounds = model.current_iteration()
        model = type(model)(model_str=model.model_to_string(num_iteration=-1))  # without its training rows
        n_bytes = min(len(model.model_to_string(num_iteration=-1).encode()), pickled_bytes(model))
        return self.fitted(lambda X: model.predict(X, num_iteration=-1, num_threads=1), encoder, n_bytes)


class XGBoostRival(TreeRival):
    def defaults(self) -> Params:
        return {"learning_rate": 0.3}

    def space(self) -> Params:
        return {
            "learning_rate": self.learning_rate(),
            "max_depth": int(self.rng.integers(3, 11)),
            "min_child_weight": self.log_uniform(0.5, 64),
            "subsample": self.uniform(0.5, 1),
            "colsample_bytree": self.uniform(0.4, 1),
            "reg_lambda": self.log_uniform(1e-2, 10),
        }

    @property
    def fixed(self) -> Params:
        n = self.data.n_classes
        objective = "reg:squarederror" if not n else "binary:logistic" if n == 2 else "multi:softprob"
        params = {"objective": objective, "seed": self.seed, "nthread": 1, "verbosity": 0}
        return {**params, "tree_method": "hist", **({"num_class": n} if n > 2 else {})}

    def prepare(self, X: Any, y: np.ndarray, reference: Any = None) -> Any:
        import xgboost

        return xgboost.QuantileDMatrix(X, y, ref=reference, enable_categorical=True, nthread=1)

    def train(self, params: Params, prepared: Any, rounds: int, clock: Clock, **options: Any) -> Any:
        import xgboost

        class Stop(xgboost.callback.TrainingCallback):
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                return clock.rings(epoch + 1)

        options |= {"callbacks": [Stop()], "verbose_eval": False}
        return xgboost.train(self.settings(params), prepared, rounds, **options)

    def trial(self, params: Params, seconds: float) -> Trial:
        clock = Clock(seconds)
        encoded = self.encoded(params["encoding"])
        history: dict[str, dict[str, list[float]]] = {}
        self.train(
            params,
            encoded.learn,
            MOST_ROUNDS,
            clock,
            evals=[(encoded.held_out, "held_out")],
            evals_result=history,
            early_stopping_rounds=patience(params["learning_rate"]),
        )
        (losses,) = history["held_out"].values()
        return trial_of(params, losses, clock.rang)

    def refit(self, trial: Trial, seconds: float) -> Fitted:
        clock = Clock(seconds, trial.rounds)
        encoder, X = self.encode(trial.params["encoding"], self.data.train)
        model = self.train(trial.params, self.prepare(X, self.data.train.y), trial.most_rounds, clock)
        trial.rounds = model.num_boosted_rounds()
        n_bytes = min(len(model.save_raw("ubj")), len(model.save_raw("json")), pickled_bytes(model))
        return self.fitted(model.inplace_predict, encoder, n_bytes)


class CatBoostRival(TreeRival):
    encodings = ("native",)  # its own statistics of the target

    def defaults(self) -> Params:
        return {}

    def space(self) -> Params:
        return {
            "learning_rate": self.learning_rate(),
            "depth": int(self.rng.integers(4, 9)),
            "l2_leaf_reg": self.log_uniform(1, 10),
            "random_strength": self.log_uniform(0.1, 10),
            "bagging_temperature": self.uniform(0, 1),
            "one_hot_max_size": self.log_integer(2, 64),
            "leaf_estimation_iterations": self.log_integer(1, 10),
        }

    @property
    def fixed(self) -> Params:
        n = self.data.n_classes
        loss = "RMSE" if not n else "Logloss" if n == 2 else "MultiClass"
        params = {"loss_function": loss, "random_seed": self.seed, "thread_count": 1, "verbose": False}
        return {**params, "allow_writing_files": False}

    def prepare(self, X: Any, y: np.ndarray, reference: Any = None) -> Any:
        import catboost

        return catboost.Pool(self.readable(X), y, cat_features=text_columns(X) or None)

    def readable(self, X: Any) -> Any:
        return text_for_catboost(X, text_columns(X))

    def train(self, params: Params, prepared: Any, rounds: int, clock: Clock, **options: Any) -> Any:
        import catboost

        class Stop:
            def after_iteration(self, info: Any) -> bool:
                return not clock.rings(info.iteration)

        model = catboost.CatBoost({**self.settings(params), "iterations": rounds})
        return model.fit(prepared, callbacks=[Stop()], **options)

    def trial(self, params: Params, seconds: float) -> Trial:
        clock = Clock(seconds)
        encoded = self.encoded(params["encoding"])
        options = {"eval_set": encoded.held_out, "use_best_model": False}
        rounds = patience(params.get("learning_rate", 0.1))
        # The rate that it chooses itself depends on the number of rounds: that of its defaults.
        most = MOST_ROUNDS if "learning_rate" in params else 1000
        model = self.train(params, encoded.learn, most, clock, early_stopping_rounds=rounds, **options)
        if "learning_rate" not in params:
            params["learning_rate"] = float(model.get_all_params()["learning_rate"])
        (losses,) = model.get_evals_result()["validation"].values()
        return trial_of(params, losses, clock.rang)

    def refit(self, trial: Trial, seconds: float) -> Fitted:
        clock = Clock(seconds, trial.rounds)
        rows = self.prepare(self.data.train.X, self.data.train.y)
        model = self.train(trial.params, rows, trial.most_rounds, clock)
        trial.rounds = model.tree_count_
        kind = "Probability" if self.data.n_classes else "RawFormulaVal"

        def predict(X: Any) -> np.ndarray:
            return np.asarray(model.predict(self.readable(X), prediction_type=kind, thread_count=1))

        return Fitted(predict, pickled_bytes(model))


class HistGradientBoostingRival(TreeRival):
    """No clock can stop it: the time of the rounds so far tells how many the seconds allow."""

    encodings = ("target",)  # it takes at most 255 levels

    def defaults(self) -> Params:
        return {"learning_rate": 0.1}

    def space(self) -> Params:
        return {
            "learning_rate": self.learning_rate(),
            "max_leaf_nodes": self.log_integer(8, 256),
            "min_samples_leaf": self.log_integer(2, 100),
            "l2_regularization": self.log_uniform(1e-3, 10),
            "max_features": self.uniform(0.4, 1),
        }

    def prepare(self, X: Any, y: np.ndarray, reference: Any = None) -> Any:
        return Sample(X, y)

    def model(self, params: Params, rounds: int, **options: Any) -> Any:
        Model = HistGradientBoostingClassifier if self.data.n_classes else HistGradientBoostingRegressor
        return Model(**self.settings(params), max_iter=rounds, random_state=self.seed, **options)

    @cached_property
    def pilot(self) -> dict[str, float]:
        """Seconds for a million numbers of X, before the first round and for each, on some of the rows."""
        X, y = self.parts[0].X, self.parts[0].y
        if self.data.categories:
            X = np.random.default_rng(0).random(X.shape, dtype=np.float32)
        some = slice(max(500, int(3e6 / X.shape[1])))
        millions = X[some].size / 1e6
        moments = [time.process_time()]
        for rounds in (1, 6):
            self.model({}, rounds, early_stopping=False).fit(X[some], y[some])
            moments.append(time.process_time())
        one, six = np.diff(moments)
        a_round = (six - one) / 5
        return {"before": max(one - a_round, 0.0) / millions, "round": max(a_round, 1e-4) / millions}

    def affordable(self, sample: Sample, seconds: float) -> int:
        rounds = (seconds / (sample.X.size / 1e6) - self.pilot["before"]) / self.pilot["round"]
        return int(np.clip(rounds, 10, MOST_ROUNDS))

    def fit(self, model: Any, sample: Sample, **held_out: Any) -> Any:
        """Fit, and learn from it how long a round takes."""
        began = time.process_time()
        model.fit(sample.X, sample.y, **held_out)
        spent = (time.process_time() - began) / (sample.X.size / 1e6) - self.pilot["before"]
        self.pilot["round"] = max(spent / model.n_iter_, self.pilot["round"] / 3)
        return model

    def trial(self, params: Params, seconds: float) -> Trial:
        encoded = self.encoded(params["encoding"])
        rounds = self.affordable(encoded.learn, seconds)
        model = self.model(
            params, rounds, early_stopping=True, n_iter_no_change=patience(params["learning_rate"])
        )
        self.fit(model, encoded.learn, X_val=encoded.held_out.X, y_val=encoded.held_out.y)
        losses = -model.validation_score_[1:]  # the first is that of no tree at all
        return trial_of(params, losses, model.n_iter_ >= rounds)

    def refit(self, trial: Trial, seconds: float) -> Fitted:
        encoder, X = self.encode(trial.params["encoding"], self.data.train)
        sample = Sample(X, self.data.train.y)
        rounds = int(np.clip(self.affordable(sample, seconds), trial.rounds, trial.most_rounds))
        model = self.fit(self.model(trial.params, rounds, early_stopping=False), sample)
        trial.rounds = rounds
        return self.fitted(partial(self.outputs, model), encoder, pickled_bytes(model))


class ExplainableBoostingRival(Rival):
    """interpret's EBM, which stops early on rows of its own.

    A few rounds are timed first; bags, then pairs, then rounds are cut to fit.
    """

    def candidates(self) -> Iterator[Params]:
        yield {"outer_bags": 14, "interactions": 5.0, "learning_rate": 0.04}
        while True:
            yield {
                "outer_bags": self.choice(1, 2, 4, 8),
                "interactions": self.choice(0.0, 0.5, 1.0, 3.0, 5.0),
                "learning_rate": self.log_uniform(0.01, 0.2),
                "max_leaves": self.choice(2, 3),
                "smoothing_rounds": self.choice(0, 50, 200, 500),
                "min_samples_leaf": self.log_integer(2, 20),
                "greedy_ratio": self.choice(0.0, 2.0, 10.0),
            }

    def model(self, params: Params) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        Model = ExplainableBoostingClassifier if self.data.n_classes else ExplainableBoostingRegressor
        return Model(**{**params, "interactions": self.pairs(params)}, n_jobs=1, random_state=self.seed)

    def pairs(self, params: Params) -> int:
        """Return the number of pairs; the parameter is in units of the columns.

        The library has no pairs for several classes."""
        columns = self.data.train.X.shape[1]
        most = columns * (columns - 1) / 2 if self.data.n_classes <= 2 else 0
        return int(min(params["interactions"] * columns, most))

    def fit(self, params: Params, sample: Sample, seconds: float) -> tuple[Any, Params]:
        moments = [time.process_time()]
        pilot = {"outer_bags": 1, "interactions": 0.0, "smoothing_rounds": 0, "greedy_ratio": 0.0}
        for rounds in (1, 6):
            self.model({**params, **pilot, "max_rounds": rounds}).fit(sample.X, sample.y)
            moments.append(time.process_time())
        first, six = np.diff(moments)
        a_round, left = max((six - first) / 5, 1e-5), seconds - 2 * first - six

        def rounds_for(params: Params) -> float:
            # A step on a pair walks over 64 x 64 bins besides the rows.
            of_pairs = self.pairs(params) * (3 * a_round / sample.X.shape[1] + 4e-4)
            return left / (params["outer_bags"] * (a_round + of_pairs))

        params = dict(params)
        while rounds_for(params) < 600 and params["outer_bags"] > 1:
            params["outer_bags"] //= 2
        while rounds_for(params) < 600 and self.pairs(params):
            params["interactions"] /= 2
        params["max_rounds"] = int(np.clip(rounds_for(params), 5, 50_000))
        params["smoothing_rounds"] = min(params.get("smoothing_rounds", 500), params["max_rounds"] // 4)
        return self.model(params).fit(sample.X, sample.y), params

    def trial(self, params: Params, seconds: float) -> Trial:
        learn, held_out = self.parts
        model, params = self.fit(params, learn, seconds)
        cut_short = np.max(model.best_iteration_[0]) >= params["max_rounds"] * learn.X.shape[1]
        loss = loss_of(self.outputs(model, held_out.X), held_out.y, self.data.n_classes)
        return Trial(params, loss, reach=2 if cut_short else 1)

    def refit(self, trial: Trial, seconds: float) -> Fitted:
        """Fit to all rows; the rest of the budget goes into rounds where these were cut, else into bags."""
        spare = max(1.0, seconds / (1.25 * trial.seconds))
        if trial.reach > 1:
            trial.params["max_rounds"] = int(spare * trial.params["max_rounds"])
        else:
            trial.params["outer_bags"] = int(
                np.clip(spare * trial.params["outer_bags"], trial.params["outer_bags"], 14)
            )
        model = self.model(trial.params).fit(self.data.train.X, self.data.train.y)
        return Fitted(partial(self.outputs, model), pickled_bytes(model))
