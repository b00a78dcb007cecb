# hapticd: the two commands that matter are `make demo` and `make test`. Each does all of its own set-up.

VENV    ?= .venv
PYTHON  ?= python3
PIP     := $(VENV)/bin/python -m pip
RUN     := $(VENV)/bin/python
STAMP   := $(VENV)/.installed-with-tests

.DEFAULT_GOAL := help
.PHONY: help setup kernels demo test longtest lint bench clean adapters

help:  ## show this list
	@echo "hapticd: a 1 kHz daemon through which people and robots feel simulated objects"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON=/path/to/python3.12 make demo    uses another Python (3.11 or newer)"

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "hapticd needs Python 3.11 or newer, and '$(PYTHON)' is not there." >&2; \
	  echo "  Debian/Ubuntu: apt install python3 python3-venv      Fedora: dnf install python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "hapticd needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." >&2; \
	  echo "  Name a newer one:  make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "'$(PYTHON)' lacks the venv module." >&2; \
	  echo "  Debian/Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Creating the environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(VENV)/bin/python
	@$(PIP) --version >/dev/null 2>&1 || $(RUN) -m ensurepip --upgrade >/dev/null
	@echo "Installing hapticd and its libraries into $(VENV) (once; a minute or two) ..."
	@$(PIP) install --quiet --disable-pip-version-check -e '.[test]' || { \
	  echo "The libraries could not be installed: see pip's message above (network? package index?)." >&2; exit 1; }
	@touch $@

setup: $(STAMP)  ## create the environment and install everything into it

kernels: $(STAMP)  ## compile the numba kernels into their on-disk cache
	@$(RUN) -m bridge.cli compile

demo: $(STAMP)  ## a simulated hand feels a real mesh (SCENE=peg, door, motor, bolt, stack, box_on_box, gears: a task; teleop: two hands); log and pictures in out/
	@$(RUN) -m bridge.cli demo $(if $(SCENE),--scene $(SCENE))

test: kernels lint  ## everything that must pass: ruff, mypy, pytest
	@# What only computes runs on two cores; what has clocks and processes of its own gets the machine to itself.
	@$(RUN) -m pytest -n 2 --dist loadfile -m "not alone and not long"
	@$(RUN) -m pytest -m "alone and not long"

longtest: kernels  ## what `make test` leaves out because it repeats something at more cases
	@$(RUN) -m pytest -m long

adapters: kernels  ## every adapter that comes with hapticd must pass the conformance test (some minutes)
	@for name in simulated inverse force-dimension spacemouse gamepad template; do \
	  $(RUN) -m bridge.cli adapter-test $$name || exit 1; done

lint: $(STAMP)  ## ruff and mypy only
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy rtcore haptics bridge

bench: kernels  ## all benchmarks, written to docs/results.md
	@$(RUN) -m tools.bench all --report docs/results.md

clean:  ## remove the environment, caches, kernels and output
	@rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find rtcore haptics bridge tools tests -name __pycache__ -type d -prune -exec rm -rf {} +
