# `make demo`, `make test` and `make lint` are all that a new machine needs: Python 3.11 or later with venv, make,
# and GCC or Clang.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
NEWEST := .venv-newest
OLDEST_TESTS := tests/estimators tests/model tests/fit tests/peers tests/persistence
OLDEST_EXTRAS := hypothesis pandas pytest pytest-xdist
NEWEST_TESTS := tests
NEWEST_EXTRAS := duckdb hypothesis matplotlib pandas polars pyarrow pytest pytest-xdist sympy
# What calls compiled code in every way, and what does so from several threads.
SANITIZE_address := address,undefined
PRELOAD_address := libasan.so libubsan.so libstdc++.so.6
TESTS_address := tests/model/test_kernel.py tests/model/test_packed_shares.py tests/model/test_spline_basis.py \
  tests/model/test_compiled.py tests/data/test_svmlight_source.py tests/fit/test_adam.py \
  tests/fit/test_packed_epochs.py tests/fit/test_sparse_epochs.py tests/fit/test_sfo.py \
  tests/fit/test_sfo_models.py tests/fit/test_forged_checkpoints.py tests/peers/test_hadamard.py \
  tests/peers/test_online_polynomial.py tests/estimators/test_any_input.py tests/estimators/test_determinism.py
SANITIZE_thread := thread
PRELOAD_thread := libtsan.so libstdc++.so.6
TESTS_thread := -k "(thread or epochs) and not fork" tests/model/test_packed_shares.py tests/fit/test_adam.py \
  tests/fit/test_packed_epochs.py tests/fit/test_sparse_epochs.py tests/fit/test_kfac.py \
  tests/fit/test_sfo.py tests/estimators/test_determinism.py
# Here, a kernel that cannot be built is an error: users get the package without it.
export TENSORMACHINES_EXTENSION ?= on
SOURCES := pyproject.toml CMakeLists.txt \
  $(shell find src -type f ! -name "*.so" ! -path "*/__pycache__/*")

.PHONY: demo test test-oldest test-newest wheel sanitize lint docs bench clean

demo: $(VENV)/installed
	$(BIN)/tensormachines demo

test: $(VENV)/developing
	$(BIN)/python -m pytest -n auto --dist worksteal --ignore tests/test_site.py

test-oldest: $(OLDEST)/installed
	$(OLDEST)/bin/python -m pytest -n auto --dist worksteal -m "not slow" $(OLDEST_TESTS)

# The newest releases of everything, whatever was installed before.
test-newest: $(NEWEST)/pip
	$(NEWEST)/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager . $(NEWEST_EXTRAS)
	$(NEWEST)/bin/python -m pytest -n auto --dist worksteal -m "not (browser or cluster or slow)" $(NEWEST_TESTS)

# The kernel compiled with sanitizers of GCC: for memory and undefined behaviour, then for races. A finding
# ends the tests. Python itself is not compiled so: hence the preloaded libraries, and no search for leaks, of
# which Python has many at exit. The threads of BLAS, whose locks are not seen, would look like races. A child
# that starts threads after the fork of a process with threads is ended by ThreadSanitizer, so none is tested.
sanitize: sanitize-address sanitize-thread

sanitize-%: $(VENV)/developing
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target build/sanitize/$*/package . \
	  -C cmake.define.SANITIZE=$(SANITIZE_$*) -C build-dir=build/sanitize/$*/objects
	preload="$(foreach library,$(PRELOAD_$*),$(shell $(CXX) -print-file-name=$(library)))" && \
	env LD_PRELOAD="$$preload" PYTHONPATH=build/sanitize/$*/package OPENBLAS_NUM_THREADS=1 \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(BIN)/python -m pytest -m "not slow" $(TESTS_$*)

lint: $(VENV)/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Into docs/_build/html. Every warning is an error, links that lead nowhere included; no network is needed.
docs: $(VENV)/documenting
	$(BIN)/python -m sphinx -n -W --keep-going -q -c docs . docs/_build/html

# Into dist/, tried in a clean environment.
wheel: $(VENV)/pip
	$(BIN)/python -m pip install --quiet build
	PYTHON=$(abspath $(BIN))/python .ci/wheel

bench: $(VENV)/benchmarking
	$(BIN)/python benchmarks/speed.py

$(VENV)/pip $(OLDEST)/pip $(NEWEST)/pip: %/pip:
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
	$(OLDEST)/bin/python -m pip install --quiet . $(OLDEST_EXTRAS) --constraint constraints/oldest.txt
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) $(NEWEST) build dist docs/_build docs/auto_gallery docs/api/generated \
	  .mypy_cache .ruff_cache .pytest_cache
