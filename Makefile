.PHONY: help dev check fix test serve bench

help:   ## Show this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

dev:    ## Install the project, its tools, and what tests drive: the published SDK and a browser's remote control
	pip install -e '.[dev]'
	npm install --silent --no-audit --no-fund --ignore-scripts --package-lock=false --prefix tests/sdk

check:  ## The whole truth: format, lint, types, tests
	ruff format --check .
	ruff check .
	mypy
	pytest -n auto

fix:    ## Format, and mend what the linter can
	ruff format .
	ruff check --fix .

test:   ## The tests alone
	pytest -n auto

serve:  ## A sandbox service on port 8282
	extcli serve

bench:  ## The benchmarks; they print ratios
	python benchmarks/votes.py
