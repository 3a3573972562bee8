# `make demo`, `make test` and `make lint` are all that a new machine needs: Python 3.11 or later with venv, make,
# and GCC or Clang.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
OLDEST_TESTS := tests/estimators tests/model tests/fit tests/peers
# Here, a kernel that cannot be built is an error: users get the package without it.
export TENSORMACHINES_EXTENSION ?= on
SOURCES := pyproject.toml CMakeLists.txt \
  $(shell find src -type f ! -name "*.so" ! -path "*/__pycache__/*")

.PHONY: demo test test-oldest lint docs bench clean

demo: $(VENV)/installed
	$(BIN)/tensormachines demo

test: $(VENV)/developing
	$(BIN)/python -m pytest -n auto --dist worksteal

test-oldest: $(OLDEST)/installed
	$(OLDEST)/bin/python -m pytest -n auto --dist worksteal -m "not slow" $(OLDEST_TESTS)

lint: $(VENV)/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Into docs/_build/html. Every warning is an error, links that lead nowhere included; no network is needed.
docs: $(VENV)/documenting
	$(BIN)/python -m sphinx -n -W --keep-going -q -c docs . docs/_build/html

bench: $(VENV)/benchmarking
	$(BIN)/python benchmarks/speed.py

$(VENV)/pip $(OLDEST)/pip: %/pip:
	$(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/installed: $(VENV)/pip $(SOURCES)
	$(BIN)/python -m pip install --quiet ".[demo]"
	touch $@

$(VENV)/developing: $(VENV)/installed
	$(BIN)/python -m pip install --quiet ".[dev]"
	touch $@

$(VENV)/documenting: $(VENV)/installed
	$(BIN)/python -m pip install --quiet ".[docs]"
	touch $@

$(VENV)/benchmarking: $(VENV)/installed
	$(BIN)/python -m pip install --quiet ".[bench]" || echo "PyTorch or JAX could not be installed: they will be left out."
	touch $@

$(OLDEST)/installed: $(OLDEST)/pip $(SOURCES) constraints/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet . pytest pytest-xdist --constraint constraints/oldest.txt
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) build dist docs/_build docs/auto_gallery docs/api/generated \
	  .mypy_cache .ruff_cache .pytest_cache
