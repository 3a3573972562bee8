"""`tensormachines explain --formula` where a polynomial has too many terms to list them all."""

import pytest

from commands import error_of, run


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """Return a function that fits a model to sparse rows with many columns, and writes it to wide.tm."""

    def fit(n_columns, degree):
        rows = [f"{i % 3} {i + 1}:1 {n_columns - i}:2\n" for i in range(12)]
        (tmp_path / "wide.svm").write_text("".join(rows))
        options = ["--degree", degree, "--rank", 1, "--max-iter", 2]
        assert run("fit", "wide.svm", "--task", "regression", *options, "-o", "wide.tm") == 0

    monkeypatch.chdir(tmp_path)
    return fit


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
@pytest.mark.parametrize(("n_columns", "degree", "listed"), [(30, 2, 2), (700, 2, 1), (120, 3, 2)])
def test_the_formula_goes_as_far_as_its_terms_can_be_listed(wide, capsys, n_columns, degree, listed):
    wide(n_columns, degree)
    capsys.readouterr()
    assert run("explain", "wide.tm", "--formula", "--top", "1000000") == 0
    shown = capsys.readouterr()
    note = f"terms up to degree {listed}: there are too many of degree {degree}\n"
    assert (note in shown.err) == (listed < degree)
    terms = [line.rsplit(maxsplit=1)[0].strip() for line in shown.out.splitlines()[1:]]
    degrees = [sum(int(name.partition("^")[2] or 1) for name in term.split(" * ")) for term in terms]
    assert max(degrees) == listed


def test_columns_may_be_too_many_for_a_formula(wide, capsys):
    wide(200_000, 1)
    assert "too many columns to list its terms" in error_of(capsys, "explain", "wide.tm", "--formula")
