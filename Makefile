# Every target sets up what it needs: Python 3.11, git, make and the package registries are enough.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help install demo test lint bench system clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## make .venv with the development extras

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(STAMP)

demo: install ## the main job on the embedded model and corpus, offline
	$(BIN)/regionmarker demo --out out/demo

test: install ## the whole test suite
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup

lint: install ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: install ## the speed of marking and of fitting, as ratios to plain copies
	$(BIN)/python -m studies.marking

system: ## Debian packages that some tests want (where root)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    chromium postgresql apertium apertium-eng-spa apertium-eng-cat nodejs >/dev/null; \
	else echo "make system needs root and apt-get; tests that want these packages will say so"; fi

clean: ## remove what the targets made
	rm -rf $(VENV) out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
