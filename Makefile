# `make run` serves the page; `make test` runs the whole suite. Both set up what they need.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
PORT ?= 7860
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test lint format bench load soak clean

run: $(VENV)/.run
	$(BIN)/python app.py --port $(PORT)

test: $(VENV)/.dev
	$(BIN)/python tests/chromium.py
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev $(PEERS)/.done
	$(BIN)/python tests/chromium.py
	$(BIN)/python -m benchmarks --peers-python $(PEERS)/bin/python
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.visitors
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.drawing --peers-python $(PEERS)/bin/python
	$(BIN)/python -m benchmarks.report

load: $(VENV)/.dev
	$(BIN)/python -m benchmarks.load --save load $(ARGS)

soak: $(VENV)/.dev
	$(BIN)/python -m benchmarks.load --seconds 900 --save soak $(ARGS)

clean:
	rm -rf $(VENV) $(PEERS) .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.txt | $(BIN)/python
	$(PIP) -r requirements.txt
	touch $@

$(VENV)/.dev: requirements.txt requirements-dev.txt | $(BIN)/python
	$(PIP) -r requirements-dev.txt
	touch $@ $(VENV)/.run

$(PEERS)/.done: requirements-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-peers.txt
	touch $@
