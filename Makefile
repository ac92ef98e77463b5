# Two commands do everything on a fresh checkout: `make demo` and `make test`.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3; do command -v $$name && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One thread a process for numpy: the tests run many. Bytecode is written: each command of specctl that a test starts would else
# compile all that it imports.
ENVIRONMENT := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST := $(ENVIRONMENT) $(BIN)/python -m pytest
# Tests on hosts wait as much as they compute: four fleets on two cores. tests/spreading.py hands them out, the longest first.
WORKERS := --numprocesses 4 --dist loadfile
# Each worker reads all quick tests before it runs any: more workers read more and run no more.
QUICK_WORKERS := --numprocesses 3 --dist loadfile
# The files that have slow tests, and all tests on hosts: to read the others would take each worker ten seconds.
SLOW := tests/fleet $$(grep -rlE 'mark\.(slow|fleet)' tests --include='test_*.py' | grep -vE '^tests/(fleet|sglang)/')

.PHONY: help demo test unit fleet lint types contracts check sglang-env test-sglang soak bench lock schema clean

help: ## Show what can be made.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

$(STAMP): pyproject.toml requirements/dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "make: no Python >= 3.11 was found: name one, make PYTHON=/path/to/python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(STAMP) ## Deploy the lab engine on this machine, switch its algorithm, clean up. No root, GPU, SSH or systemd.
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(ENVIRONMENT) $(BIN)/python -m specctl.demo

test: check unit fleet ## Run everything that this machine can run.

check: lint types contracts ## Run the linters, the type checker and the import contracts.

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

contracts: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP) ## Run the quick tests (under a minute).
	$(PYTEST) $(QUICK_WORKERS) -m "not fleet and not slow and not soak and not sglang" tests

fleet: $(STAMP) ## Run the slow tests and those on real systemd hosts (root and systemd-nspawn; skipped with a reason elsewhere).
	$(PYTEST) $(WORKERS) -m "(fleet or slow) and not soak" $(SLOW) || { \
	  echo "make: what failed on the hosts is run once more, alone: a machine that is busy is no fault of theirs" >&2; \
	  $(PYTEST) --last-failed --last-failed-no-failures none -m "(fleet or slow) and not soak" $(SLOW); }

sglang-env: $(STAMP) ## Make the real engine's environment (11 GB, outside the checkout).
	$(ENVIRONMENT) $(BIN)/python -m tests.sglang.environment

test-sglang: $(STAMP) ## Test against the real SGLang (skipped with a reason without its environment).
	$(PYTEST) -m sglang tests/sglang

soak: $(STAMP) ## Run the long counts (about 90 minutes): properties with many more examples, cycles of deploys with faults.
	SPECCTL_SOAK=1 $(PYTEST) -m "soak and not sglang" tests

bench: $(STAMP) ## Measure start-up, the lab engine, the agent, a replay of 14 days, the dashboard, experiments (about an hour).
	$(ENVIRONMENT) $(BIN)/python benchmarks/cli_startup.py
	$(ENVIRONMENT) $(BIN)/python benchmarks/lab_engine.py
	$(ENVIRONMENT) $(BIN)/python benchmarks/agent_footprint.py
	$(ENVIRONMENT) $(BIN)/python benchmarks/simulate.py
	$(ENVIRONMENT) $(BIN)/python benchmarks/top.py
	$(ENVIRONMENT) $(BIN)/python benchmarks/ab.py
	$(ENVIRONMENT) $(BIN)/python benchmarks/calibrate.py

lock: ## Renew the lock files (needs uv).
	PATH="$(CURDIR)/$(BIN):$$PATH" uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --extra dev pyproject.toml -o requirements/dev.lock
	PATH="$(CURDIR)/$(BIN):$$PATH" uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 agents/requirements.in -o requirements/agent.lock

schema: $(STAMP) ## Renew inventory/schema.json.
	$(BIN)/specctl inventory schema > inventory/schema.json

clean: ## Remove what was built here.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
