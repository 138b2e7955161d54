# Everything sets itself up: a fresh clone needs python3 (3.11 or newer), git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
INSTALLED := $(VENV)/.installed
SECONDS := 60
STORE := sqlite
SEED :=
JOBS := 1

.PHONY: run test check lint types layers model mutants fuzz torture torture-smoke simulate power wheel bench clean

run: $(INSTALLED)  ## watch three agents work side by side; one is killed, one is frozen
	$(BIN)/lessor demo

test: $(STAMP)  ## all tests, on SQLite and on a PostgreSQL out of a wheel
	$(BIN)/pytest -n auto $(ARGS)

# The same worlds each time: what another seed finds is no fault of the change that is checked.
check: SEED := 1
check: lint types layers model test simulate torture-smoke wheel  ## what has to hold before a change lands

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks torture torture/run fuzz fuzz/run model/run simulation simulation/run simulation/mutants scripts/make-docs scripts/draw-page
	$(BIN)/ruff format --check src tests benchmarks torture torture/run fuzz fuzz/run model/run simulation simulation/run simulation/mutants scripts/make-docs scripts/main-job scripts/main-job-agent scripts/draw-page

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

simulate: $(STAMP)  ## simulated faults, judged after every commit: SECONDS=3600 SEED=1 JOBS=4
	$(BIN)/python simulation/run --seconds $(SECONDS) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

wheel: $(STAMP)  ## the built wheel passes the demo in a fresh environment
	./scripts/wheel-demo $(BIN)/python

model: $(INSTALLED)  ## the protocol's model in every state, where spin is installed
	@$(BIN)/python model/run || test $$? -eq 77

mutants: $(INSTALLED)  ## the faults that the model has to find
	@$(BIN)/python model/run --mutants || test $$? -eq 77

fuzz: $(STAMP)  ## every parser for SECONDS=60 each, where atheris is to be had
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]' || true
	@$(BIN)/python fuzz/run $(SECONDS) || test $$? -eq 77

torture: $(STAMP)  ## real processes and real faults: SECONDS=3600 STORE=postgres SEED=1
	$(BIN)/python torture/run --seconds $(SECONDS) --store $(STORE) $(if $(SEED),--seed $(SEED))

torture-smoke: $(STAMP)  ## the same for two minutes, on both stores
	$(BIN)/python torture/run --seconds 40 --untimed --store sqlite
	$(BIN)/python torture/run --seconds 40 --untimed --store postgres

bench: $(STAMP)  ## peers and curves into build/bench; FULL=1 takes hours, DOCS=1 replaces the page in docs
	@$(BIN)/python -W ignore benchmarks/bench.py $(if $(FULL),--full) $(if $(DOCS),--docs)

power: $(STAMP)  ## cut the power at every sync of a writer's work; SEED=… repeats one
	LESSOR_POWER_SHARE=1 LESSOR_POWER_CRASHES=40 $(if $(SEED),LESSOR_POWER_SEED=$(SEED)) \
		$(BIN)/pytest -q -s tests/race/test_power_loss.py

$(INSTALLED): pyproject.toml
	@echo "setting up $(VENV) once, about 15 s …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $(INSTALLED)

$(STAMP): pyproject.toml $(INSTALLED)
	@echo "adding what tests and checks need, about 30 s …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
