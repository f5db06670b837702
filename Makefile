# everfold: every target makes what it needs in .venv; nothing is installed elsewhere.
# Needed on the machine: Python 3.11 or newer, pip for it, and make. No compiler.

PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$python"; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --only-binary :all:

SOURCE_ROOTS := domain projections infrastructure
PYTEST ?= -n 3 --dist loadgroup
CRASHES ?= 200

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench crash clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.run ## host, kill, restore, fork and audit a session with images
	$(BIN)/everfold demo

test: $(VENV)/.test ## run every test, on SQLite and on a real PostgreSQL
	$(BIN)/python -m pytest $(PYTEST) $(ARGS)

check: $(VENV)/.check ## format, lint, layers and types
	@for root in $(SOURCE_ROOTS); do \
		if [ -e $$root/everfold/__init__.py ]; then \
			echo "$$root/everfold/__init__.py breaks the namespace package: delete it" >&2; exit 1; \
		fi; done
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/pyright

format: $(VENV)/.check ## format the code and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.bench ## measure everfold against the raw database drivers
	$(BIN)/python -m tests.bench $(ARGS)

crash: $(VENV)/.test ## kill writers and agents 200 times on each database, and the server
	EVERFOLD_CRASHES=$(CRASHES) $(BIN)/python -m pytest tests/crash -k "killed or restarted" --timeout 0 $(ARGS)

clean: ## remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench-results
	find $(SOURCE_ROOTS) tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A Python without ensurepip (Debian's without python3-venv) still has a pip that can fill the environment.
$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "everfold needs Python 3.11 or newer: install it, or say where it is with PYTHON=" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 \
		|| $(PYTHON) -m venv --clear $(VENV) \
		|| { $(PYTHON) -m venv --clear --without-pip $(VENV) \
			&& $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	@touch $@

$(VENV)/.run: $(VENV)/.python pyproject.toml
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.python pyproject.toml
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.run

$(VENV)/.bench: $(VENV)/.python pyproject.toml
	$(PIP) --editable '.[bench]'
	@touch $@ $(VENV)/.run $(VENV)/.test

$(VENV)/.check: $(VENV)/.python pyproject.toml
	$(PIP) --editable '.[check]'
	@touch $@ $(VENV)/.run $(VENV)/.test
