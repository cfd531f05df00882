# Everything a developer runs. Each target does its own set-up; a bare `make` lists them.

SHELL := /bin/sh
.DEFAULT_GOAL := help

SEEDS ?= 100
ARGS ?=
PYTHON ?=
SYSTEM ?= publisher
STORE ?= sqlite
run := .venv/bin/python
ready := .venv/.ready
# Half of the tests' time is waiting, for leases and signals: more processes than there are cores.
workers := $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 4)
# Tests start hundreds of processes: none of them shall compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
# A .venv whose interpreter is gone is made again.
$(shell $(run) -c '' >/dev/null 2>&1 || rm -f $(ready))

.PHONY: help demo test test-again check publisher admissions proof chaos sim sim-mutants pictures bench bench-guards bench-events bench-sagas bench-sessions bench-web bench-publisher admissions-pictures publisher-pictures bench-store bench-profile format lock lock-systems lock-bench

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(ready) ## See one job survive its worker, on a SQLite file
	@$(run) -m holdfast.runtime.demo $(ARGS)

test: $(ready) ## Run all tests, on SQLite and on a PostgreSQL that it starts itself (ARGS="-k codec")
	@$(run) -m tools.chromium
	@$(run) -m pytest -n $(workers) --dist worksteal $(ARGS)

test-again: $(ready) ## Run what failed last once more, alone, when it was at most five tests
	@$(run) -m tools.test_again

check: $(ready) ## Check format, lint, types, import direction and seams
	@$(run) -m ruff format --check .
	@$(run) -m ruff check .
	@$(run) -m mypy
	@$(run) -m tools.check_docstrings
	@$(run) -m tools.check_layers
	@$(run) -m tools.check_seams
	@$(run) -m tools.check_notes
	@$(run) -m tools.check_systems
	@$(run) -m tools.check_test_names

chaos: $(ready) ## Kill, freeze and cut off real processes and databases a thousand times, then count (ARGS="--short", "publications")
	@$(run) -m chaos $(ARGS)

publisher: $(ready) ## Open the publisher with a simulated DeviantArt and seeded artists, until Ctrl-C
	@$(run) -m tools.start publisher

admissions: $(ready) ## Open the portal with a simulated Stripe, mailboxes and 200 applications, until Ctrl-C
	@$(run) -m tools.start admissions

proof: $(ready) ## Prove a system with real processes, kills and faults of the outside (SYSTEM=publisher STORE=postgres, ARGS=--small)
	@$(run) -m tools.proof $(SYSTEM) --store $(STORE) $(ARGS)

sim: $(ready) ## Run the engine in a seeded simulation (SEEDS=100)
	@$(run) -m holdfast.testing.simulation --seeds $(SEEDS) $(ARGS)

sim-mutants: $(ready) ## Prove that the simulation finds planted bugs
	@$(run) -m holdfast.testing.simulation --mutants $(ARGS)

pictures: $(ready) ## Make the pictures of docs/pages.md again
	@$(run) -m tools.chromium
	@$(run) -m tools.pages_pictures

bench: $(ready) ## Measure Holdfast beside its peers and the raw limits, in 20 minutes (FULL=1 longer and more)
	@$(run) -m bench $(ARGS)

bench-guards: $(ready) ## Measure what a guard adds to a call, beside the libraries that do parts of it, in two minutes
	@$(run) -m bench.guards $(ARGS)

bench-events: $(ready) ## Measure events from emit to handled, beside FastStream and the raw clients, in 15 minutes
	@$(run) -m bench.events $(ARGS)

bench-sagas: $(ready) ## Measure sagas of five steps beside DBOS, and 100,000 that sleep, in 10 minutes
	@$(run) -m bench.sagas $(ARGS)

bench-sessions: $(ready) ## Measure what SQLAlchemy adds to a transaction, on both stores, in a minute
	@$(run) -m bench.sessions $(ARGS)

bench-web: $(ready) ## Measure what keys and the other middleware of the edge cost a request, on both stores, in two minutes
	@$(run) -m bench.web $(ARGS)

bench-publisher: $(ready) ## Measure posts a second of the publisher, their CPU and memory, on both stores, in three minutes
	@$(run) -m tools.proof publisher --bench --store sqlite $(ARGS)
	@$(run) -m tools.proof publisher --bench --store postgres $(ARGS)

admissions-pictures: $(ready) ## Make the pictures of systems/admissions/README.md again
	@$(run) -m tools.chromium
	@$(run) -m tools.admissions_pictures

publisher-pictures: $(ready) ## Make the pictures of systems/publisher/README.md again
	@$(run) -m tools.chromium
	@$(run) -m tools.publisher_pictures

bench-store: $(ready) ## Measure the table designs and the shipped verbs beside the raw limit, on both stores
	@$(run) -m bench.schema $(ARGS)
	@$(run) -m bench.verbs

bench-profile: $(ready) ## Show where the CPU time of a job goes in a worker, on both stores
	@$(run) -m bench.profile $(ARGS)

format: $(ready) ## Format the code and apply the safe fixes
	@$(run) -m ruff format .
	@$(run) -m ruff check --fix .

lock: ## Resolve the dependencies again into requirements/dev.txt (ARGS=--upgrade for newer ones; needs uv)
	@uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --no-annotate --no-emit-index-url --no-emit-find-links \
	  --extra all --extra testing --group dev --output-file requirements/dev.txt $(ARGS)
	@$(MAKE) lock-systems

lock-systems: $(ready) ## Write what the image of each system installs, from requirements/dev.txt
	@$(run) -m tools.system_lock publisher admissions

lock-bench: $(ready) ## Resolve the peers that `make bench` installs again into requirements/bench (needs uv)
	@$(run) -m bench.environments lock

# The stamp is as new as what it was made from. Without PYTHON the first that is new enough is used; none is downloaded.
$(ready): requirements/dev.txt pyproject.toml tools/set_up.py
	@for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python); do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    exec "$$python" tools/set_up.py; \
	  fi; \
	done; \
	echo "Holdfast needs Python 3.11 or newer. Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1
