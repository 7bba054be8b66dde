# Every target sets up what it needs: Python 3.11, git, make and the package registries are enough.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help install demo test lint bench fuzz lock lock-check sbom audit dist system clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

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

SECONDS ?= 300
fuzz: install ## readers of strangers' files, fuzzed with coverage: SECONDS=300 each
	$(BIN)/python -m tests.fuzz all --seconds $(SECONDS)

# What looks after the packages lives apart from them: .venv-tools.
TOOLS := .venv-tools
TOOLS_STAMP := $(TOOLS)/.installed
PUBLIC_INDEX := --default-index https://pypi.org/simple
REQUIREMENTS := out/requirements.txt

$(TOOLS_STAMP):
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check "build>=1.2" "cyclonedx-bom>=7" "pip-audit>=2.9" "uv>=0.9"
	touch $(TOOLS_STAMP)

lock: $(TOOLS_STAMP) ## uv.lock: every package of every extra, with hashes
	$(TOOLS)/bin/uv lock $(PUBLIC_INDEX)

lock-check: $(TOOLS_STAMP) ## uv.lock belongs to pyproject.toml
	$(TOOLS)/bin/uv lock --check $(PUBLIC_INDEX)

$(REQUIREMENTS): uv.lock $(TOOLS_STAMP)
	mkdir -p out
	$(TOOLS)/bin/uv export --quiet --frozen --all-extras --no-extra dev --no-emit-project --no-header --output-file $@

sbom: $(REQUIREMENTS) ## out/sbom.cdx.json: a bill of materials (CycloneDX) of what the lock holds, with hashes
	$(TOOLS)/bin/cyclonedx-py requirements $(REQUIREMENTS) --pyproject pyproject.toml --output-reproducible \
	  --output-format JSON --output-file out/sbom.cdx.json

audit: $(REQUIREMENTS) ## known vulnerabilities of what the lock holds (pip-audit; needs the network)
	@rm -f out/audit.json
	@$(TOOLS)/bin/pip-audit --requirement $(REQUIREMENTS) --require-hashes --disable-pip --progress-spinner off \
	  --format json --output out/audit.json 2>out/audit.log; code=$$?; \
	if [ -s out/audit.json ]; then tail -n 3 out/audit.log; exit $$code; fi; \
	echo "make audit: the data of pip-audit could not be reached, so nothing is known: run it where pypi.org answers (out/audit.log)"; exit 3

dist: $(TOOLS_STAMP) ## dist/: sdist and wheel of the commit, built twice and compared
	$(TOOLS)/bin/python deploy/build_twice.py

system: ## Debian packages that some tests want (where root)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    chromium postgresql apertium apertium-eng-spa apertium-eng-cat nodejs >/dev/null; \
	else echo "make system needs root and apt-get; tests that want these packages will say so"; fi

clean: ## remove what the targets made
	rm -rf $(VENV) $(TOOLS) out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
