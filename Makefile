# Two commands do everything: `make demo` shows it, `make test` checks it.
PYTHON ?= python3
BIN := .venv/bin
# One thread a process: there are as many processes as cores.
QUIET := OMP_NUM_THREADS=1

.PHONY: setup demo test lint types imports pytest format docs size clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

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

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup
	$(BIN)/python docs/make_cli_page.py

# Lines a file, so that growth is seen; only 400 in one file fails (tests/docs/test_tree.py).
size:
	@find unbounded -name '*.py' | xargs wc -l | sort -n

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
