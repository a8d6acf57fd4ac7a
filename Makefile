# `make demo` and `make test` do all of their own set-up: a virtual environment in .venv, with the
# versions of constraints.txt. Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
JOBS ?= 2

.PHONY: demo test check format pages clean

demo: $(READY)
	$(BIN)/shiftsort demo

test: $(READY)
	$(BIN)/pytest -n $(JOBS) -q

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The parts of README and docs that commands make.
pages: $(READY)
	$(BIN)/python tests/pages.py

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "shiftsort needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv out build dist
