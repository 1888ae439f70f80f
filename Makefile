# Every target that needs something installs it first; on a fresh machine `make demo`, `make test`
# and `make check` each work on their own. PYTHON=... chooses the interpreter for .venv.

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick check audit soak bench bench-full docs servers kafka redis clean
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PREPARED := $(VENV)/.prepared
WORKERS ?= 2
export NO_MKDOCS_2_WARNING := 1

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## create .venv, install everything, look for Java 17+
	@scripts/ensure-java
	@$(MAKE) $(PREPARED)

demo: setup ## run the demonstration
	@$(BIN)/floodway demo

test: setup ## run the whole test suite
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q --durations=25

quick: setup ## run what needs neither Spark nor servers, with few examples; two minutes
	@$(BIN)/python -m pytest tests src -n $(WORKERS) --quick --ignore=tests/lab -q

check: setup ## format, lint, types, layers, documentation coverage, documentation build
	@scripts/check

audit: setup ## ask the package index for known vulnerabilities and changed files of pinned packages
	@$(BIN)/python scripts/audit.py

soak: setup ## kill processes, simulate failures and try properties for a long time
	@FLOODWAY_EXAMPLES=30 $(BIN)/python -m pytest -n $(WORKERS) -q --timeout 7200 tests/behaviour
	@$(BIN)/floodway simulate --seeds 1000
	@$(BIN)/floodway chaos --kills 200 --records 2000000
	@$(BIN)/floodway chaos --kills 30 --driver-kills 5
	@$(BIN)/floodway chaos --kills 100 --records 1000000 --switches
	@for seed in 1 2 3; do $(BIN)/floodway chaos --faults 60 --seed $$seed || exit 1; done

bench: setup ## measure the engine, and compare it with a loop by hand and Bytewax; 20 minutes
	@$(BIN)/floodway bench micro
	@$(BIN)/python benchmarks/reference_driver.py
	@$(BIN)/floodway bench install bytewax
	@mkdir -p build/bench
	@for workload in ads mean; do $(BIN)/floodway bench compare $$workload \
		--suts floodway-dual,loop,bytewax --rounds 1 --precision 0.1 --seconds 8 --warm 4 \
		--json build/bench/$$workload.json --out build/bench/$$workload.html || exit 1; done

bench-full: setup ## compare all systems on all workloads; takes hours, needs Maven and 10 GB
	@scripts/bench-full $(BIN) build/bench

docs: setup ## build the documentation into site/
	@$(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

servers: setup ## get what tests of Kafka, Redis and killed connections need; without, they are skipped
	@scripts/ensure-redis
	@scripts/ensure-maven
	@scripts/ensure-iproute2
	@$(BIN)/python -c 'from floodway.testing.servers import KafkaServer as Kafka; Kafka().__enter__().close()'

kafka: setup ## run a Kafka broker with temporary data until Ctrl-C
	@scripts/ensure-maven
	@$(BIN)/python -m floodway.testing.servers kafka

redis: setup ## run a Redis with temporary data until Ctrl-C
	@scripts/ensure-redis
	@$(BIN)/python -m floodway.testing.servers redis

clean: ## remove what was built and cached; .venv stays
	@rm -rf build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@rm -rf spark-warehouse metastore_db derby.log artifacts
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(PREPARED): $(INSTALLED)
	@echo "setup: preparing Spark, so that it starts sooner"
	@$(BIN)/floodway prepare >/dev/null || echo "setup: Spark works, and starts a second later"
	@touch $@

$(INSTALLED): pyproject.toml lab/pyproject.toml constraints.txt scripts/create-venv
	@scripts/create-venv $(VENV)
	@touch $@
