# `make help` lists the targets. Everything is installed into .venv; nothing outside the checkout is changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXAMPLE := examples/tax.csv
CASES ?= evidence inversion dc_discover check od fd key cli
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
# Processes that share the default tests; one of them runs all that needs the Spark session
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup dbt kernels demo lint types test test-sim test-spark test-readers test-cluster test-gpu wheel image readme pages docs ci bench

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# Numba first: kernels are compiled beside the rest of the installation. They need nothing else.
define install
	$(PIP) $$($(BIN)/python -c "import tomllib; print(*(d for d in tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'] if d.startswith(('numba', 'numpy'))))")
	@PYTHONPATH=src $(BIN)/python -m tuplewise.gpu_kernels.building >/dev/null 2>&1 & \
	trap "kill $$!" INT TERM; \
	echo $(PIP) -e '.$(1)' && $(PIP) -e '.$(1)'; status=$$?; wait; exit $$status
endef

$(VENV)/.installed: pyproject.toml $(VENV)/pyvenv.cfg
	$(call install,)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/pyvenv.cfg
	$(call install,[dev])
	@touch $@ $(VENV)/.installed

setup: $(VENV)/.installed-dev kernels  ## install the package and all that tests need into .venv

# Its own environment, since dbt needs an older pathspec than mypy; dbt-core 1.11 and newer fetch from outside of PyPI
dbt: setup  ## install dbt into an environment of its own, for the tests of exports to it
	$(BIN)/python -m venv $(VENV)/dbt
	$(VENV)/dbt/bin/python -m pip install --quiet --disable-pip-version-check "dbt-core>=1.10,<1.11" "dbt-duckdb>=1.10,<1.11"

kernels: $(VENV)/.installed  ## compile the kernels that have changed, on all cores
	@$(BIN)/python -m tuplewise.gpu_kernels.building

demo: $(VENV)/.installed  ## install the package and profile a small table
	$(BIN)/tuplewise profile $(EXAMPLE) --format text

lint: setup  ## ruff
	$(BIN)/ruff check .

types: setup  ## mypy, strict
	$(BIN)/mypy

test: setup  ## the default tests: no GPU needed, a few minutes
	$(PYTEST) -m "not slow and not device and not cuda and not cluster" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-sim: setup  ## the CUDA kernels in Numba's simulator
	NUMBA_ENABLE_CUDASIM=1 $(PYTEST) -m "cuda and not slow" -n $(WORKERS) --dist worksteal

test-spark: setup  ## only what starts Spark
	$(PYTEST) -m "spark or rapids"

test-readers: setup  ## the default tests with every local file read by Spark
	TUPLEWISE_TEST_READER=spark $(PYTEST) -m "not slow and not device and not cuda and not cluster and not arrow" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-cluster: setup  ## on a Spark cluster of several processes on this machine's loopback
	$(PYTEST) -m "cluster and not slow"

test-gpu: setup  ## on a machine with an NVIDIA GPU
	$(PYTEST) -m device

wheel: setup  ## build the wheel, check that nothing is missing, import it from a new environment
	$(BIN)/python tools/check_wheel.py

image: setup  ## whether what Dockerfile.cuda installs goes together, for CUDA 12 and 13; nothing is installed
	$(BIN)/python tools/check_image.py --resolve

readme: setup  ## the numbers and the first command of the README, from a clean checkout
	$(BIN)/python -m benchmarks.report --check
	.ci/clean_demo

pages: setup  ## rewrite the pages of docs/reference that are made of declarations, and the outputs of notebooks
	$(BIN)/python -m tools.options_page
	$(BIN)/python -m tools.command_page
	$(BIN)/python -m tools.json_page
	$(BIN)/python -m tools.notebooks

docs: setup  ## build the documentation into build/site; a broken link or reference is an error
	$(PIP) -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

ci: lint types test test-sim test-cluster wheel image readme docs  ## all that continuous integration runs

bench: setup  ## run benchmark cases: make bench CASES="evidence dc_discover"
	$(PIP) -e '.[peers]'
	$(BIN)/python -m benchmarks.run $(CASES) --peer
