# Each target makes the environment that it needs, from the lock files, and nothing has to be installed by hand
# but Python 3.11. A stamp file in .venv says which lock file the environment was made from.
.DEFAULT_GOAL := help
.PHONY: help setup demo fast test servers azurite deep deeptests deepcases lint types contracts conformance integrations pyright vscode bench docs site man wheel lock clean
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= $(shell for p in python3.11 python3; do "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
WHEEL := build/wheel
AZURITE := build/azurite
# Which tests make servers runs.
SERVERS ?= servers
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
JAVA := $(shell java -version >/dev/null 2>&1 && echo yes)
# Modules are compiled once, not by each process that imports them: the suite starts some hundred.
export PYTHONDONTWRITEBYTECODE :=
# Arguments for the tools behind the targets: make fast ARGS='-k cursor', make bench ARGS='tpch --size 0.1'.
ARGS ?=
# Which part of the deep tests: 0/1 is all of them.
PART ?= 0/1

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(BIN)/.develop ## make .venv with everything that the other targets need

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; name it with make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .venv

# Without build isolation, so that what builds the source packages is pinned too.
$(BIN)/.runtime: $(BIN)/python requirements.lock requirements/build.lock pyproject.toml
	@echo "installing from requirements.lock (some minutes the first time)" >&2
	@$(INSTALL) -r requirements/build.lock
	@$(INSTALL) --no-build-isolation -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(BIN)/.develop: $(BIN)/.runtime requirements-dev.lock
	@$(INSTALL) --no-build-isolation -r requirements-dev.lock
	@touch $@

demo: $(BIN)/.runtime ## run the first example, correct its input, run it again
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

# Tests on Sail run side by side; those that start Spark run in one process of their own at the same time.
# $(1): marks of the tests, $(2): further words for pytest.
define tests
	@outcome=0; said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	if [ "$(JAVA)" = yes ]; then $(BIN)/python -m pytest -m "$(1) and spark" $(2) $(ARGS) >"$$said" 2>&1 & spark=$$!; \
	else echo "no Java: tests on Spark were left out" >&2; spark=; fi; \
	$(BIN)/python -m pytest -n auto --dist worksteal -m "$(1) and not spark" $(2) $(ARGS) || outcome=1; \
	if [ -n "$$spark" ]; then wait $$spark || outcome=1; cat "$$said"; fi; \
	exit $$outcome
endef

fast: $(BIN)/.develop ## the units, in about a minute; no run of a pipeline
	$(BIN)/python -m pytest -n auto --dist worksteal -m "unit and not deep and not spark" $(ARGS)

test: $(BIN)/.develop ## units and end-to-end tests, on Sail and, where Java is, on Spark
	$(call tests,not deep,)

servers: $(BIN)/.develop azurite ## tests with servers of their own, PostgreSQL and object stores, the long ones too (downloads Azurite where npm is)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "$(SERVERS) and not spark" $(ARGS)

azurite:
	@test -e $(AZURITE)/node_modules/azurite || { command -v npm >/dev/null && timeout 120 npm install --prefix $(AZURITE) --ignore-scripts --no-audit --no-fund --silent azurite@3.37.0; } \
	|| echo "Azurite cannot be had: tests with Azure are left out" >&2

deep: deeptests deepcases ## invariants, crashes, random pipelines, all conformance cases; make deep PART=3/40 takes one part of forty

deeptests: $(BIN)/.develop
	$(call tests,(deep or property),--hypothesis-profile deep --part $(PART))

deepcases: $(BIN)/.develop
	$(BIN)/python -m tests.conformance --engine sail --shard $(PART)
	@if [ "$(JAVA)" = yes ]; then $(BIN)/python -m tests.conformance --engine spark --jobs 1 --shard $(PART); fi

lint: $(BIN)/.develop ## ruff, and the phrases that our prose avoids
	$(BIN)/ruff check .
	$(BIN)/python -m tests.prose

types: $(BIN)/.develop ## mypy --strict, also of a user's script
	$(BIN)/mypy
	$(BIN)/mypy examples/python/revenue.py

contracts: $(BIN)/.develop ## the layers of the architecture, by import-linter
	$(BIN)/lint-imports --no-cache

conformance: $(BIN)/.develop ## the cases of ../shared/conformance that .ci/conformance-areas names
	$(BIN)/python -m tests.conformance $(ARGS)

integrations: $(BIN)/.develop ## the adapters for orchestrators with the real libraries, each in an environment of its own (downloads them; minutes)
	@for name in dagster airflow prefect; do \
	test -x .venv-$$name/bin/pytest || { $(PYTHON) -m venv .venv-$$name && .venv-$$name/bin/pip install --quiet -r integrations/requirements-$$name.txt; }; \
	ERRATA_COMMAND="$(CURDIR)/$(BIN)/errata" .venv-$$name/bin/python -m pytest -q -c /dev/null --rootdir integrations integrations/tests/test_$$name.py; \
	done

pyright: $(BIN)/.develop ## pyright, strict, of a user's script (downloads pyright)
	@test -x build/pyright/node_modules/.bin/pyright || npm install --prefix build/pyright --no-audit --no-fund --silent pyright@1.1.414
	@cp examples/python/revenue.py build/pyright/
	@echo '{"include": ["revenue.py"], "extraPaths": ["$(CURDIR)"], "typeCheckingMode": "strict"}' > build/pyright/pyrightconfig.json
	build/pyright/node_modules/.bin/pyright --project build/pyright --pythonpath $(BIN)/python

vscode: $(BIN)/.develop ## the extension for VS Code: its client with the language server, then its package (downloads its libraries)
	cd integrations/vscode && { test -d node_modules || npm ci --ignore-scripts --no-audit --no-fund --silent; }
	cd integrations/vscode && ERRATA_COMMAND="$(CURDIR)/$(BIN)/errata" npm test && ERRATA_COMMAND="$(CURDIR)/$(BIN)/errata" npm run --silent package

bench: $(BIN)/.develop ## Errata against hand-written PySpark and DuckDB; writes benchmarks/README.md
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(BIN)/.develop ## run each command that the documents show and write its answer below it; write the generated pages and pictures
	$(BIN)/python -m tests.documents --write $(ARGS)

site: $(BIN)/.develop ## the documents as a site, build/site/index.html; needs no network
	$(BIN)/python -m tests.site.build

man: $(BIN)/.develop ## man pages of all commands, build/man/man1/*.1; a wheel brings them
	$(BIN)/python -m tests.site.man_pages build/man

# An environment of what builds the package, and of the two libraries that the texts of the commands need for the man pages.
$(WHEEL)/.made: requirements/build.lock requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; name it with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(WHEEL)
	@awk '/^(click|orjson)==/ { inside = 1 } inside { print; inside = /\\$$/ }' requirements.lock > $(WHEEL)/commands.lock
	@$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.lock -r $(WHEEL)/commands.lock
	@$(WHEEL)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

wheel: $(WHEEL)/.made ## a wheel to install elsewhere, dist/errata-*.whl; needs a small environment of its own alone
	rm -rf dist build/lib build/bdist.*
	$(WHEEL)/bin/python -m tests.site.man_pages build/man
	$(WHEEL)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

lock: $(BIN)/python ## resolve the lock files again
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	export UV_CUSTOM_COMPILE_COMMAND="make lock"; \
	compile() { $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate "$$@"; }; \
	compile requirements/build.in --allow-unsafe -o requirements/build.lock; \
	compile pyproject.toml -c requirements/limits.in -o requirements.lock; \
	compile pyproject.toml --extra dev -c requirements.lock -o requirements-dev.lock

clean: ## remove what the targets made, but not .venv
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
