"""What fitted models ask of the files they are fitted to and predict: names, kinds and types of columns."""

import re

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, blocks, load

# A column of these tables is called zip.
pytestmark = pytest.mark.filterwarnings("ignore::tensormachines.ColumnWarning")

pd = pytest.importorskip("pandas")

QUICK = {"degree": 2, "rank": 2, "max_iter": 2, "random_state": 0}
FEATURES = ["size", "district", "zip"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.random(200),
            "district": rng.choice(["Harbour", "Mill"], 200),
            "zip": rng.integers(0, 5, 200),
            "rent": rng.random(200),
            "sold": rng.integers(0, 2, 200),
        }
    )


@pytest.fixture(scope="module")
def model(table):
    return TensorMachineRegressor(**QUICK).fit(table[FEATURES], table["rent"])


@pytest.fixture(params=["csv", "parquet"])
def source(request, tmp_path):
    """Write a frame to a file, and return its source."""

    def write(frame, *arguments, **options):
        path = tmp_path / f"table.{request.param}"
        if request.param == "csv":
            frame.to_csv(path, index=False)
        else:
            pytest.importorskip("pyarrow")
            frame.to_parquet(path, index=False)
        return getattr(blocks, request.param)(path, *arguments, **options)

    return write


@pytest.fixture
def path(table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


# ---- kinds that are asked for


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"number": ["sise"]}, "table.csv has no column 'sise'; did you mean 'size'?"),
        ({"category": ["zip", "zap"]}, "table.csv has no column 'zap'; did you mean 'zip'?"),
        ({"category": "zip"}, "must be lists of names, got the text 'zip'"),
        ({"number": "size"}, "must be lists of names, got the text 'size'"),
        ({"weight": "zip", "category": ["zip"]}, "'zip' is the weight, which cannot be a category"),
    ],
)
def test_kinds_are_those_of_columns_of_the_file(path, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        blocks.csv(path, "rent", **options)


def test_kinds_of_columns_that_are_not_used_may_be_given(path):
    (chunk,) = blocks.csv(path, "rent", columns=["size"], category=["zip"])
    assert chunk.X.shape == (200, 1)


# ---- names of columns


@pytest.mark.parametrize("order", [FEATURES, FEATURES[::-1], ["sold", *FEATURES[1:], "rent", "size"]])
def test_columns_are_found_by_name_whatever_else_there_is(table, model, source, order):
    found = model.predict(source(table[order]))
    np.testing.assert_allclose(found, model.predict(table[FEATURES]), rtol=1e-9)


def test_a_column_of_the_fit_that_is_not_there_is_named(table, model, source):
    with pytest.raises(ValueError, match="has no column 'zip', which the model was fitted to"):
        model.predict(source(table.drop(columns="zip")))


def test_without_names_columns_are_counted_before_they_are_read(table, source):
    unnamed = TensorMachineRegressor(**QUICK).fit(table[FEATURES].to_numpy(dtype=object), table["rent"])
    given = source(table[FEATURES])
    np.testing.assert_allclose(unnamed.predict(given), unnamed.predict(table[FEATURES].to_numpy(object)))
    with pytest.raises(ValueError, match="X has 5 columns, but the model was fitted on 3"):
        unnamed.predict(source(table))


def test_frames_of_an_iterable_are_refused_by_name_before_they_are_read(table, model):
    with pytest.raises(ValueError, match=r"item 1: the columns should be named as in the fit, \['size'"):
        model.predict(blocks.iterable([table[FEATURES[::-1]]]))


@pytest.mark.parametrize("target", ["rent", ["rent", "sold"]])
def test_the_name_of_the_target_is_known(table, source, target):
    fitted = TensorMachineRegressor(**QUICK).fit(source(table, target, columns=FEATURES))
    expected = TensorMachineRegressor(**QUICK).fit(table[FEATURES], table[target])
    assert fitted.target_name_ == expected.target_name_ == target


def test_without_rows_there_is_nothing_to_predict(model, path):
    path.write_text("size,district,zip\n")
    with pytest.raises(ValueError, match="there are no rows"):
        model.predict(blocks.csv(path))


# ---- what a prediction leaves behind


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_a_prediction_does_not_change_what_a_fit_sees(table):
    rows = blocks.iterable([(table[["zip"]], table["rent"])])
    codes = pd.DataFrame({"zip": table["zip"].astype(str)})
    TensorMachineRegressor(**QUICK).fit(codes, table["rent"]).predict(rows)
    assert isinstance(next(iter(rows)).X, np.ndarray)
    assert TensorMachineRegressor(**QUICK).fit(rows)._columns is None


def test_the_column_that_turns_into_text_is_named():
    first = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    with pytest.raises(ValueError, match="item 2: column 'a' holds text, but numbers before"):
        list(blocks.iterable([first, first.assign(a=["one", "two"])]))


# ---- targets


@pytest.mark.parametrize("labels", [[0, 1], [-3, 7], [False, True], ["no", "yes"]])
def test_classes_are_those_of_the_dataframe(table, source, labels):
    rows = table.assign(sold=np.array(labels)[table["sold"]])
    expected = TensorMachineClassifier(**QUICK).fit(rows[FEATURES], rows["sold"])
    given = source(rows, "sold", columns=FEATURES)
    found = TensorMachineClassifier(**QUICK).fit(given)
    if repr(given).startswith("<blocks.csv") and labels[0] is False:
        assert found.classes_.tolist() == ["False", "True"]  # text says nothing about its type
    else:
        assert found.classes_.dtype == expected.classes_.dtype
        assert found.classes_.tolist() == expected.classes_.tolist()
    assert set(found.predict(given)) <= set(found.classes_)


@pytest.mark.parametrize(
    ("cells", "expected"), [([0.5, 2], np.float64), ([1, 2**60], np.float64), ([2, 3], int)]
)
def test_targets_of_text_files_are_whole_where_all_are(tmp_path, cells, expected):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"1,{cell}\n" for cell in cells))
    (chunk,) = blocks.csv(tmp_path / "a.csv", "y")
    assert chunk.y.dtype == expected
    np.testing.assert_array_equal(chunk.y, np.array(cells, dtype=float))


def test_one_long_label_does_not_make_all_of_them_long(table, source):
    labels = np.array(["x" * 10_000, "short"], dtype=object)[table["sold"]]
    given = source(table.assign(sold=labels), "sold", columns=FEATURES)
    (chunk,) = given
    assert chunk.y.tolist() == labels.tolist()
    found = TensorMachineClassifier(**QUICK).fit(given).predict(given)
    assert max(chunk.y.nbytes, found.nbytes) == 8 * len(table)


# ---- numbers


@pytest.mark.parametrize("others", [["zip"], ["zip", "district"]])
def test_what_overflows_in_float32_is_named_next_to_categories_too(table, path, others):
    table.assign(size=table["size"].where(table.index != 3, 1e300)).to_csv(path, index=False)
    source = blocks.csv(path, "rent", columns=["size", *others], dtype=np.float32)
    with pytest.raises(
        ValueError, match=r"data row 4 \(counting from 1\), column 'size' in float32: infinity"
    ):
        list(source)


def test_numbers_where_the_fit_had_text_are_refused(table, model, source):
    rows = table[FEATURES].assign(district=np.arange(200))
    with pytest.raises(ValueError, match="column 'district' held strings such as 'Harbour' in the fit"):
        model.predict(rows)
    with pytest.raises(ValueError, match="column 'district' held strings such as 'Harbour' in the fit"):
        model.predict(source(rows))


def test_a_model_of_a_csv_file_remembers_how_numbers_were_written(tmp_path):
    """Like the command line, it reads other files in the notations of the fit, and in no other."""
    random = np.random.default_rng(0)
    size, rate = random.integers(500, 50_000, 200), random.uniform(0, 9, 200).round(1)
    price = size / 100 + rate

    def written(name, sizes, rates):
        lines = [f'"{a}",{b},{c!r}' for a, b, c in zip(sizes, rates, price.tolist(), strict=False)]
        (tmp_path / name).write_text("\n".join(["size,rate,price", *lines]) + "\n")
        return blocks.csv(tmp_path / name, "price")

    plain = written("plain.csv", size, rate)
    expected = TensorMachineRegressor(**QUICK).fit(plain)
    signs = written("signs.csv", [f"${each:,}" for each in size], [f"{each} %" for each in rate])
    model = TensorMachineRegressor(**QUICK).fit(signs)
    np.testing.assert_array_equal(model.predict(signs), expected.predict(plain))
    assert not hasattr(expected, "_notations")
    model.save(tmp_path / "model.tm")
    model = load(tmp_path / "model.tm")
    # Alone, 1,234 might be 1.234; and a rate without its sign might be a share of 1.
    rows = pd.DataFrame({"size": [1234.0, 700.0], "rate": [7.5, 1.0]})
    few = written("few.csv", ["1,234", "700"], ["7.5 %", "1 %"])
    np.testing.assert_array_equal(model.predict(few), model.predict(rows))
    with pytest.raises(ValueError, match=r"0.075'.*a per cent sign"):
        model.predict(written("other.csv", ["$1,234"], ["0.075"]))
    model.fit(plain)
    assert not hasattr(model, "_notations")
