# Two commands do everything: `make demo` shows it, `make test` checks it.
PYTHON ?= python3
BIN := .venv/bin
# One thread a process: there are as many processes as cores.
QUIET := OMP_NUM_THREADS=1

.PHONY: setup native sanitize arm wheel demo test check lint types imports pytest torture format docs paper bench size clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# The extension again after an edit in native/ (what has not changed is not compiled again).
native: setup

# The test program of all kernels under AddressSanitizer and UBSan; needs no Python.
sanitize:
	cmake -S . -B build/sanitize -DUNBOUNDED_TESTS=ON -DUNBOUNDED_SANITIZE=ON >/dev/null
	cmake --build build/sanitize --parallel 2 >/dev/null
	./build/sanitize/native_tests

# The same on ARM, for real: Debian's g++-aarch64-linux-gnu and qemu-user.
arm:
	cmake -S . -B build/arm -DUNBOUNDED_TESTS=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
		-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_EXE_LINKER_FLAGS=-static >/dev/null
	cmake --build build/arm --parallel 2 >/dev/null
	qemu-aarch64 ./build/arm/native_tests

# A wheel, installed where there is no compiler, and used.
wheel: setup
	PYTHON=$(PYTHON) sh tests/wheel.sh

demo: setup
	$(BIN)/unbounded demo

test: lint types imports pytest

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

pytest: setup
	$(QUIET) $(BIN)/python -m pytest -n 2 --dist loadgroup -q

# All attacks with all their cases, and one table of them (docs/reliability.md). A row's seed plays
# it again: TORTURE_SEED=123 make torture ONLY=tests/torture/test_damage.py
ONLY ?= tests
torture: setup
	$(QUIET) UNBOUNDED_TORTURE=5 nice $(BIN)/python -m pytest -m torture --torture -n 2 -q $(ONLY)

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The lab, which is not in the wheel. CORPORA is the folder of the texts (experiments/README.md).
CORPORA ?= corpora
SCALE ?= small
paper: setup
	$(BIN)/python -m experiments all --corpora $(CORPORA) --scale $(SCALE)

bench: setup
	$(BIN)/python -m benchmarks read
	$(BIN)/python -m benchmarks search

docs: setup
	$(BIN)/python docs/make_cli_page.py

# Lines a file, so that growth is seen; only 400 in one file fails (tests/docs/test_tree.py).
size:
	@find unbounded -name '*.py' | xargs wc -l | sort -n

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
