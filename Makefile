# Everything needs only python3 (3.11 or newer); `make setup` makes .venv and all other verbs use it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-kills test-unit lint format lock build smoke bench clean

help:  ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.installed  ## Make the environment in .venv

$(VENV)/.installed: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || (echo "python3 with its venv module is needed" >&2; exit 2)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || (echo "Python 3.11 or newer is needed" >&2; exit 2)
	@echo "installing into $(VENV) …"
	@awk '/^uv==/ {on = 1} on && /^[^ ]/ && !/^uv==/ {exit} on && !/#/' requirements.lock > $(VENV)/uv.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

demo: setup  ## Research, write and publish the demo's topics (ARGS="--exit --json report.json")
	@$(BIN)/nightdesk demo $(ARGS)

# Those that start a whole Prefect need the machine for themselves.
test: setup  ## Run all tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile --ignore=tests/acceptance --ignore=tests/flows $(ARGS)
	@$(BIN)/python -m pytest tests/flows tests/acceptance $(ARGS)

test-kills: setup  ## Kill runs at every step, every process, and the machine ten times (an hour)
	@NIGHTDESK_TEST_KILLS=10 NIGHTDESK_TEST_KILL_POINTS=all NIGHTDESK_TEST_OUTAGE_S=180 $(BIN)/python -m pytest -s \
		tests/acceptance/test_crashes.py tests/acceptance/test_kills.py tests/flows/test_outage.py $(ARGS)

test-unit: setup  ## Run the tests that need no server
	@$(BIN)/python -m pytest tests/unit $(ARGS)

lint: setup  ## Check style, types, import directions and file sizes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.architecture

format: setup  ## Put the code into form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: setup  ## Renew requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --group dev --generate-hashes --no-emit-index-url --no-header \
		--universal --python-version 3.11 --upgrade --quiet --output-file requirements.lock

build: setup  ## Build the wheel into dist/
	@rm -rf dist && $(BIN)/uv build --quiet --wheel --out-dir dist --python $(BIN)/python

smoke: build  ## Install the wheel in an empty environment and load everything in it
	@sh tests/wheel_smoke.sh

bench: setup  ## Measure the cost of orchestration (the others are in benchmarks/README.md)
	@$(BIN)/python benchmarks/pipeline.py $(ARGS)

clean:  ## Remove the environment and what was built
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
