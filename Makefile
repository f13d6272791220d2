# `make serve` and `make test` work in a fresh clone: they make a virtual environment and install what they need, once.
# They use the active virtual environment, or else `.venv` in this folder.

ENV := $(or $(VIRTUAL_ENV),.venv)
BIN := $(ENV)/bin
PYTHON := $(BIN)/python
# The tests that `make quick` runs: rules, services, the engine contract on SQLite, and the parsing of commands.
FAST_TESTS := -m "not slow and not long" tests/rules tests/features tests/engines/test_sqlite.py tests/test_architecture.py \
	tests/cli/test_options.py tests/cli/test_profiles.py

# Stamps: files that say when packages were installed, kept beside the packages so that both go together.
SERVE_STAMP := $(ENV)/.extcli-serve
DEV_STAMP := $(ENV)/.extcli-dev
# Without npm, the tests that need Node.js skip.
NODE_STAMP := $(if $(shell command -v npm 2>/dev/null),tests/sdk/node_modules/.extcli-node)
# Only three goals compare with servers from npm. Without npm, `make bench` reports them as not measured.
PEERS_STAMP := $(if $(filter 7 8 12,$(or $(GOAL),12)),$(if $(NODE_STAMP),benchmarks/peers/node_modules/.extcli-peers))

# The active environment may hold another checkout. Then its stamps do not count.
ifneq ($(shell cat $(SERVE_STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(SERVE_STAMP) $(DEV_STAMP)
endif

.DEFAULT_GOAL := help
.PHONY: help serve test test-all test-long quick lint check fix lock docs screenshots soak bench bench-docs bench-guard clean check-system
.PHONY: release test-windows
# Remove pyvenv.cfg if venv fails, so that the next run starts again.
.DELETE_ON_ERROR:
# The steps share one environment, and pytest uses all cores by itself.
.NOTPARALLEL:

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

serve: $(SERVE_STAMP)  ## Run a sandbox service on port 8282; options in ARGS="--port 0"
	@$(BIN)/extcli serve $(if $(filter --port% --name%,$(ARGS)),,--name make-serve) $(ARGS)

# Without bytecode, each `extcli` of a test would compile all its modules, and each worker of pytest all tests.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = $(BIN)/pytest --dist worksteal

test: check-system $(DEV_STAMP) $(NODE_STAMP) check  ## Run all checks, and all tests but the long ones; ARGS go to pytest
	$(PYTEST) -n auto -m "not long" $(ARGS)

test-long: check-system $(DEV_STAMP) $(NODE_STAMP)  ## Run the long tests, and property tests with all examples
	TEST_EXAMPLES=all $(PYTEST) -n auto -m "long or hypothesis" $(ARGS)

WINE_FOLDER := $(or $(WINE_FOLDER),.wine)
test-windows: $(DEV_STAMP)  ## Run the tests of Windows under Wine; needs wine and gcc-mingw-w64-x86-64
	@.ci/missing-packages windows
	PYTHONPATH=tests $(PYTHON) -m windows.environment $(WINE_FOLDER)
	WINE_FOLDER=$(abspath $(WINE_FOLDER)) $(PYTEST) -n 2 --dist loadfile tests/windows $(ARGS); code=$$?; \
	    WINEPREFIX=$(abspath $(WINE_FOLDER))/prefix wineboot -k >/dev/null 2>&1; exit $$code

test-all: test test-long test-windows  ## Run all checks and all tests

quick: $(DEV_STAMP)  ## Run the fast tests
	$(PYTEST) -n logical $(FAST_TESTS) $(ARGS)

ELSEWHERE := --no-warn-unreachable --no-warn-unused-ignores --cache-dir .mypy_cache
lint: $(DEV_STAMP)  ## Check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# Code for one system is unreachable on the others.
	printf '%s\n' '--config-file pyproject.toml' '--platform darwin $(ELSEWHERE)/darwin' '--platform win32 $(ELSEWHERE)/win32' \
	    | xargs -P 3 -L 1 $(BIN)/mypy

check: lint  ## Also check the files for Docker, Compose and GitHub Actions
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml compose.valkey.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/github-actions.yml

fix: $(DEV_STAMP)  ## Format, and fix what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(DEV_STAMP)  ## Write requirements.lock, with the newest versions that the image may install
	$(PYTHON) -m pip install --quiet --disable-pip-version-check uv
	echo '# What the image and the action install, with hashes; `make lock` writes it from pyproject.toml.' > requirements.lock
	echo 'hatchling>=1.27' | $(BIN)/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url pyproject.toml - >> requirements.lock

docs: $(DEV_STAMP)  ## Write the generated parts of docs/, the table of completion, and the texts of rulings
	PYTHONPATH=tests $(PYTHON) -m tools

release: $(DEV_STAMP)  ## Check, commit, tag and build a version into dist/: VERSION=0.2.0; publish nothing
	$(PYTHON) tools/release.py "$(VERSION)" $(MAKE) check

bench: $(DEV_STAMP) $(PEERS_STAMP)  ## Measure the goals of docs/performance.md, about an hour; GOAL="1 1b" ROUNDS=5 SECONDS=2
	$(PYTHON) benchmarks/run.py $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS)) $(GOAL)

bench-docs: $(DEV_STAMP)  ## Write the results of `make bench` into docs/performance.md
	$(PYTHON) benchmarks/page.py

screenshots: $(DEV_STAMP)  ## Take the pictures of the README again; needs Chromium
	SCREENSHOTS=docs/images $(BIN)/pytest -q tests/dashboard/test_screenshots.py

soak: $(DEV_STAMP)  ## Run the service for long, and fail if memory, open files or tasks grow; MINUTES=30
	PYTHONPATH=benchmarks $(PYTHON) tests/endurance/soak.py $(or $(MINUTES),30)

bench-guard: $(DEV_STAMP)  ## Count the instructions of hot calls, about 3 minutes; ARGS=--update accepts them
	$(PYTHON) benchmarks/guard.py $(ARGS)

clean:  ## Remove .venv, the Node packages and the stamps
	rm -rf .venv .wine tests/sdk/node_modules benchmarks/peers/node_modules
	rm -f $(SERVE_STAMP) $(DEV_STAMP)

# First in `make test`, so that a missing package is known before anything slow starts.
check-system:
	@.ci/missing-packages test

$(ENV)/pyvenv.cfg:
	@.ci/missing-packages serve
	@echo "making a virtual environment in $(ENV)" >&2
	@python3 -m venv $(ENV)

# An environment made by `uv venv` has no pip.
PIP_INSTALL = $(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m ensurepip >/dev/null; \
	$(PYTHON) -m pip install --quiet --disable-pip-version-check

$(SERVE_STAMP): pyproject.toml src/extcli/__init__.py | $(ENV)/pyvenv.cfg
	@echo "installing extcli in $(ENV) (about half a minute); . $(BIN)/activate puts it on your PATH" >&2
	@$(PIP_INSTALL) -e .
	@echo "$(CURDIR)" > $@

$(DEV_STAMP): pyproject.toml src/extcli/__init__.py | $(ENV)/pyvenv.cfg
	@echo "installing extcli and its development tools in $(ENV) (about a minute)" >&2
	@$(PIP_INSTALL) -e '.[dev]'
	@echo "$(CURDIR)" | tee $(SERVE_STAMP) > $@

# On a terminal npm shows a progress bar; elsewhere it prints each download.
NPM_LOG := $(if $(MAKE_TERMERR),error,http)
NPM_INSTALL = npm install --loglevel=$(NPM_LOG) --no-audit --no-fund --ignore-scripts --package-lock=false

$(NODE_STAMP): tests/sdk/package.json
	@echo "installing Node packages for the SDK tests (a few minutes on a slow network)" >&2
	@$(NPM_INSTALL) --prefix tests/sdk
	@touch $@

benchmarks/peers/node_modules/.extcli-peers: benchmarks/peers/package.json
	@echo "installing the Node packages that the benchmarks compare with (a few minutes on a slow network)" >&2
	@$(NPM_INSTALL) --prefix benchmarks/peers
	@touch $@
