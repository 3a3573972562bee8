"""The code of an exported Python module; `python` writes the data that it reads."""

NUMBERS = """

def _missing(entry):
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or bool(entry != entry)


def _number(column):
    column = np.asarray(column)
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    if column.dtype.kind in "mM":
        raise ValueError("dates and durations must be given as numbers: see docs/export.md of tensormachines")
    return np.array([np.nan if _missing(entry) else float(entry) for entry in column.tolist()])


def _columns(rows):
    if isinstance(rows, dict) or hasattr(rows, "columns"):
        known = list(rows if isinstance(rows, dict) else rows.columns)
        absent = [name for name in COLUMNS if name not in known]
        if absent:
            raise ValueError(f"rows has no column {absent[0]!r}.")
        return [rows[name] for name in COLUMNS]
    rows = rows if isinstance(rows, np.ndarray) else np.array(rows, dtype=object)
    if rows.ndim != 2 or rows.shape[1] != len(COLUMNS):
        raise ValueError(f"rows must be a table of {len(COLUMNS)} columns, got an array of shape \
{rows.shape}.")
    return list(rows.T)
"""

NO_LEVELS = """

def _numbers(rows):
    return np.column_stack([_number(column) for column in _columns(rows)])
"""

LEVELS = """

def _name(entry):
    if type(entry).__name__ in ("Decimal", "Fraction"):
        entry = float(entry)
    if isinstance(entry, (float, np.floating)) and entry.is_integer():
        entry = int(entry)
    return str(entry)


def _code(j, column):
    numbers = np.asarray(column)
    own_type = numbers.dtype.kind == "f"  # a float32 has the digits of its own type
    entries = list(numbers) if own_type else np.asarray(column, dtype=object).tolist()
    return np.array([np.nan if _missing(entry) else LEVELS[j].get(_name(entry), UNKNOWN[j]) \
for entry in entries], dtype=np.float64)


def _numbers(rows):
    return np.column_stack([_code(j, column) if j in LEVELS else _number(column) \
for j, column in enumerate(_columns(rows))])
"""

AFFINE = """

def _lift(numbers):
    if np.isnan(numbers).any():
        raise ValueError("rows has missing values, which this model does not take.")
    # t
    return t


def _forms(t):
    return t @ WEIGHTS
"""

UNIT_ROWS = """\
    norm = np.linalg.norm(t, axis=1, keepdims=True)
    t = t / np.where(norm == 0, 1.0, norm)
"""

TABLES = """\
KNOTS, TABLES = {}, {}  # by column; a row of a table is by knot or level, the last is for missing
"""

SPLINE = """

def _lift(numbers):
    return numbers


def _forms(numbers):
    forms = np.tile(OFFSET, (len(numbers), 1))
    for j, table in TABLES.items():
        x = numbers[:, j]
        missing = np.isnan(x)
        if j not in KNOTS:
            forms += table[np.where(missing, len(table) - 1, x).astype(np.intp)]
        elif len(KNOTS[j]) == 1:
            forms += table[missing.astype(np.intp)]
        else:
            knots = KNOTS[j]
            below = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
            low, high = 0.5 * knots[below], 0.5 * knots[below + 1]
            above = np.clip((0.5 * x - low) / (high - low), 0, 1)[:, None]
            forms += np.where(missing[:, None], table[-1], \
(1 - above) * table[below] + above * table[below + 1])
    return forms
"""

PRODUCTS = """

def _outputs(rows):
    forms = _forms(_lift(_numbers(rows)))
    outputs = INTERCEPT + forms[:, :N_OUTPUTS]
    first = N_OUTPUTS
    for p, counts in N_TERMS.items():
        for k, count in enumerate(counts):
            last = first + p * count
            outputs[:, k] += forms[:, first:last].reshape(len(forms), count, p).prod(axis=2).sum(axis=1)
            first = last
    return outputs
"""

SHARED_PRODUCTS = """

def _outputs(rows):
    forms = _forms(_lift(_numbers(rows)))
    outputs = INTERCEPT + forms[:, :N_OUTPUTS]
    first = N_OUTPUTS
    for p, weights in TERM_WEIGHTS.items():
        last = first + p * len(weights)
        outputs += forms[:, first:last].reshape(len(forms), len(weights), p).prod(axis=2) @ weights
        first = last
    return outputs
"""

ANOVA = """

def _outputs(rows):
    t = _lift(_numbers(rows))
    outputs = INTERCEPT + _forms(t)
    for p, factors in FACTORS.items():
        # The sums of the products of the entries of all sets of 0, 1, ..., p columns, \
one column after the other.
        sums = np.zeros((p + 1, len(t), *factors.shape[:2]))
        sums[0] = 1.0
        for j in range(t.shape[1]):
            sums[1:] += t[:, j, None, None] * factors[:, :, j] * sums[:-1]
        # add
    return outputs
"""

ANOVA_ADD = """        outputs += sums[p].sum(axis=2)
"""

SHARED_ANOVA_ADD = """        outputs += sums[p][:, 0] @ TERM_WEIGHTS[p]
"""

LOG_LINK = '''

def predict(rows):
    """Predictions, a number a row; with several targets (rows, targets)."""
    return np.exp(np.minimum(_outputs(rows), LARGEST))
'''

REGRESSOR = '''

def predict(rows):
    """Predictions, a number a row; with several targets (rows, targets)."""
    return _outputs(rows)
'''

SORTED = '''

def predict(rows):
    """The quantiles of each row, (rows, levels), in the order of QUANTILES."""
    return np.sort(_outputs(rows), axis=1)
'''

LOGISTIC = '''

def decision_function(rows):
    """Log-odds of the second class, a number a row."""
    return _outputs(rows)[:, 0]


def predict_proba(rows):
    """Probabilities (rows, classes), in the order of CLASSES."""
    outputs = decision_function(rows)
    small = np.exp(-np.abs(outputs))
    less, more = small / (1 + small), 1 / (1 + small)
    return np.where((outputs > 0)[:, None], np.column_stack([less, more]), np.column_stack([more, less]))


def predict(rows):
    """The more probable class of each row."""
    return CLASSES[(decision_function(rows) > 0).astype(np.intp)]
'''

SIGMOID = '''

def decision_function(rows):
    """The log-odds of each label, (rows, labels)."""
    return _outputs(rows)


def predict_proba(rows):
    """The probability of each label, (rows, labels)."""
    outputs = decision_function(rows)
    small = np.exp(-np.abs(outputs))
    return np.where(outputs > 0, 1.0, small) / (1 + small)


def predict(rows):
    """The labels of each row, 0 and 1, (rows, labels)."""
    return (decision_function(rows) > 0).astype(np.int64)
'''

SOFTMAX = '''

def decision_function(rows):
    """The outputs of the classes, (rows, classes)."""
    return _outputs(rows)


def predict_proba(rows):
    """Probabilities (rows, classes), in the order of CLASSES."""
    outputs = decision_function(rows)
    powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def predict(rows):
    """The most probable class of each row."""
    return CLASSES[decision_function(rows).argmax(axis=1)]
'''
