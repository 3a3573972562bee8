# `make demo` and `make test` are all a new machine needs: Python 3.11 or later with venv, make and a C++17 compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find src -name "*.[ch]pp" -o -name "*.py")

.PHONY: demo test lint bench clean

demo: $(VENV)/installed
	$(BIN)/python -m tensormachines demo

test: $(VENV)/developing
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/benchmarking
	$(BIN)/python benchmarks/speed.py

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/installed: $(VENV)/pip $(SOURCES)
	$(BIN)/python -m pip install --quiet ".[demo]"
	touch $@

$(VENV)/developing: $(VENV)/installed
	$(BIN)/python -m pip install --quiet ".[dev]"
	touch $@

$(VENV)/benchmarking: $(VENV)/installed
	$(BIN)/python -m pip install --quiet ".[bench]" || echo "PyTorch or JAX could not be installed: they will be left out."
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
