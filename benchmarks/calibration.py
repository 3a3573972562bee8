"""Are default probabilities calibrated as well as isotonic regression or a temperature would make them?

    TENSORMACHINES_DATA=folder python benchmarks/calibration.py [--rows 3000] [--seeds 0]

TensorMachineClassifier with its default settings, and the same model with its probabilities changed: by one
isotonic regression per class, or by a temperature. Both are fitted to predictions of five folds for rows that
the fold was not fitted to, as CalibratedClassifierCV(ensemble=False) does. Isotonic probabilities are at
least 1 / training rows: their zeros would make losses infinite. The calibration error is the mean difference
of confidence and accuracy over 15 bins of the probability of the likeliest class, weighted by their rows.
Ratios of the losses to those of the model as it is are geometric means over tables."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

from timing import one_thread

one_thread()

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import tables
from records import head, print_facts, row
from tensormachines import TensorMachineClassifier

TABLES = (
    *("ann_thyroid", "bank_churn", "coil2000", "compas", "credit_scoring", "dry_bean", "heloc", "hpc_jobs"),
    *("htru2", "mammography", "mlc_churn", "phishing", "segment", "telco_churn", "wall_robot"),
)
FOLDS, BINS, MOST_TEST_ROWS = 5, 15, 10_000
SMALLEST = np.finfo(float).tiny
Change = Callable[[np.ndarray], np.ndarray]


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], SMALLEST)).mean())


def calibration_error(p: np.ndarray, y: np.ndarray) -> float:
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    number = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(number, confidence - right, BINS)
    return float(np.abs(gaps).sum() / len(y))


def isotonic(p: np.ndarray, y: np.ndarray) -> Change:
    each = [IsotonicRegression(out_of_bounds="clip").fit(p[:, k], y == k) for k in range(p.shape[1])]

    def change(new: np.ndarray) -> np.ndarray:
        found = np.column_stack([of_class.predict(new[:, k]) for k, of_class in enumerate(each)])
        found = np.maximum(found, 1 / len(y))
        return found / found.sum(axis=1, keepdims=True)

    return change


def temperature(p: np.ndarray, y: np.ndarray) -> Change:
    logarithms = np.log(np.maximum(p, SMALLEST))

    def loss(scale: float) -> float:
        return float(-log_softmax(np.exp(scale) * logarithms, axis=1)[np.arange(len(y)), y].mean())

    scale = np.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x)
    return lambda new: softmax(scale * np.log(np.maximum(new, SMALLEST)), axis=1)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Change]] = {
    "as it is": lambda p, y: lambda new: new,
    "isotonic": isotonic,
    "temperature": temperature,
}


def measure(name: str, seed: int, n_rows: int) -> np.ndarray:
    """Return log-loss and calibration error of each method, (methods, 2)."""
    table = tables.load(name, seed, n_rows, MOST_TEST_ROWS)
    model = TensorMachineClassifier(random_state=seed)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    held_out = cross_val_predict(model, table.X, table.y, cv=folds, method="predict_proba")
    p = model.fit(table.X, table.y).predict_proba(table.X_test)
    found = [method(held_out, table.y)(p) for method in METHODS.values()]
    return np.array([(log_loss(each, table.y_test), calibration_error(each, table.y_test)) for each in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=3000, help="most training rows")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = [cell for method in METHODS for cell in (f"{method}: log-loss", "calibration error")]
    print(head(["table", *cells]))
    all_of_it = []
    for name in options.tables:
        found = np.mean([measure(name, seed, options.rows) for seed in options.seeds], axis=0)
        all_of_it.append(found)
        cells = [cell for loss, error in found for cell in (f"{loss:.4f}", f"{error:.2%}")]
        print(row([name, *cells]), flush=True)
    losses, errors = np.moveaxis(np.array(all_of_it), 2, 0)
    ratios = np.exp(np.log(losses / losses[:, :1]).mean(axis=0))
    means = zip(ratios, errors.mean(axis=0), strict=True)
    print(row(["mean", *(cell for ratio, error in means for cell in (f"{ratio:.3f}", f"{error:.2%}"))]))
    print_facts(options.seeds)


if __name__ == "__main__":
    main()
