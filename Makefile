# Everything runs from .venv, which is made from requirements.lock: `make demo` on a fresh machine needs Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
RUN := $(STAMP)
TESTS ?= tests

# Tests start hundreds of Python processes: none of them should compile our modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo ui test full thorough unit coverage tools matrix stores fuzz simulate crash mutate bench docs check format lock clean help

help:
	@echo 'make demo        the whole story on this machine: servers, data, Dagster, Spark, proof'
	@echo 'make demo UI=1   the same, and leave the Dagster UI running'
	@echo 'make demo BROKER=3.9.1   on a real broker of that version, downloaded; BROKER=host:port is one that runs'
	@echo 'make ui          the Dagster UI on the state of the last demo'
	@echo 'make unit        the fast tests of the three packages; make test: all that take no more than 1 s of CPU time;'
	@echo 'make full        these and the long ones, as CI runs them'
	@echo 'make thorough    the cases that repeat a law of make full: more seeds, versions, combinations and scenarios;'
	@echo '                 SHARE=8: one of eight cases, which the commit chooses; COMMIT=...: as another commit chooses'
	@echo 'make coverage    the share of each room that tests without Spark or real brokers run; it fails below the floor'
	@echo 'make tools       install what make test needs besides requirements.lock, if it is missing: Chromium, openssl,'
	@echo '                 keytool, systemd-analyze, a KDC, and the Python package gssapi, which is compiled'
	@echo 'make fuzz        mutated logs and values for an hour; SECONDS=60 SEED=7: for a minute, from that seed on'
	@echo 'make simulate    days on which brokers and the store misbehave, without processes; DAYS=1000 SEED=7'
	@echo 'make crash       loads killed, stopped and raced at random for hours; RUNS=100 SEED=7: 100 runs, from seed 7'
	@echo 'make crash KILLS=20   consumers of increments and state tables killed so often at each of their failpoints'
	@echo 'make mutate      change the code in one place at a time and see whether a test fails: half an hour of one core;'
	@echo '                 SAMPLE=50 SEED=7 FILE=... TESTS=...: fewer changes and tests'
	@echo 'make matrix      run the tests on real brokers and write their results into docs/kafka-versions.md'
	@echo 'make stores      run the tests of stores in moto, versitygw, Azurite and HDFS, and write docs/object-stores.md;'
	@echo '                 STORES="moto HDFS": only these'
	@echo 'make bench       speed beside other loaders on a real broker: about an hour; QUICK=1 one case in minutes'
	@echo 'make docs        the pages that are made from the code, such as settings and commands; and the site of all pages'
	@echo '                 in .cache/site'
	@echo 'make check       formatter, linter, types, import contracts, spelling, sentences'
	@echo 'make format      let the formatter do its work'
	@echo 'make lock        resolve requirements.lock again'

# --no-deps: the lock is complete, so pip need not resolve, and takes nothing that is not in it.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Penstock needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation --quiet -e .
	touch $@

# BROKER is a version to start, or the address of a broker that runs.
DEMO := $(BIN)/python -W ignore -m pipelines.demo $(if $(UI),--ui)
demo: $(RUN)
ifeq ($(BROKER),)
	$(DEMO)
else ifneq ($(findstring :,$(BROKER)),)
	$(DEMO) --bootstrap $(BROKER)
else
	$(BIN)/python -m tests.brokers.run $(BROKER) $(DEMO)
endif

ui: $(RUN)
	$(BIN)/python -W ignore -m pipelines.demo --resume

# Many tests wait for servers, so there are more processes than cores. WORKERS=0: no other process.
WORKERS ?= $(shell expr $$(nproc) + 3)
# How long each test took is in RESULTS; the slowest are printed.
RESULTS := .cache/results
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder --durations=30 --junitxml=$(RESULTS)/$@.xml $(TESTS)
# Tests force thousands of small files to disk; in memory that takes no time.
IN_MEMORY := $(shell test -w /dev/shm && test $$(df --output=avail /dev/shm | tail -1) -gt 4000000 && echo /dev/shm)
test full unit: export PYTEST_DEBUG_TEMPROOT := $(IN_MEMORY)
# Tables of tests have a few small files: more threads of deltalake would only take CPU time from each other.
test full unit: export TOKIO_WORKER_THREADS := 1
# What `make test` and `make unit` say before the first test. Times are those of two idle cores.
define SAY
@echo 'make $@ runs $(1), from $(TESTS), in $(or $(filter-out 0,$(WORKERS)),1) processes$(2).'
@echo 'The results and the time of each test will be in $(RESULTS)/$@.xml. docs/testing.md says how to run one test.'
endef
test: $(RUN) $(if $(filter tests,$(TESTS)),tools)
	$(call SAY,all tests except the long and the thorough ones,$(if $(filter tests,$(TESTS)),: about 12700 tests in 9 minutes on two cores))
	$(PYTEST) -m 'not (thorough or long)'

full: $(RUN) $(if $(filter tests,$(TESTS)),tools)
	$(call SAY,all tests except the thorough ones,$(if $(filter tests,$(TESTS)),: about 13500 tests in 20 minutes))
	$(PYTEST) -m 'not thorough'

# CI runs a sample, which has a fixed place in its time: the commit chooses the cases, and none begins after two minutes.
thorough: $(RUN) tools
	$(PYTEST) -m thorough $(if $(SHARE),--share=$(SHARE) --begin-within=120) $(if $(COMMIT),--sample-of=$(COMMIT))

# Tests of tests and pages are in `make test`.
unit: TESTS = tests/kafka_io tests/pipelines tests/resources
# These tests seldom wait, so a process more than cores only costs its start. Properties have 25 examples each; `make test`
# gives them 100.
unit: WORKERS = $(shell nproc)
unit: $(RUN)
	$(call SAY,the tests that take less than a tenth of a second,: about 9000 tests in 75 seconds)
	$(PYTEST) --hypothesis-profile=quick -m 'not (zookeeper or spark or crash or ui or brokers or postgres or prometheus or slow or long or thorough)'

coverage: $(RUN)
	$(BIN)/python -m tests.coverage_floors --workers $(WORKERS)

tools: $(RUN)
	@$(BIN)/python -m tests.tools

matrix: $(RUN)
	$(BIN)/python -m tests.brokers.matrix

stores: $(RUN)
	$(BIN)/python -m tests.stores $(STORES)

SECONDS ?= 3600
fuzz: $(RUN)
	$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

DAYS ?= 100000
simulate: $(RUN)
	$(BIN)/python -m tests.simulation --days $(DAYS) $(if $(SEED),--seed $(SEED))

RUNS ?= 10000
crash: $(RUN)
ifeq ($(KILLS),)
	$(BIN)/python -m tests.crash --runs $(RUNS) $(if $(SEED),--seed $(SEED)) $(if $(WORLD),--world $(WORLD))
else
	$(BIN)/python -m tests.crash.consumer_kills --kills $(KILLS) $(if $(SEED),--seed $(SEED)) $(if $(AT),--at "$(AT)")
endif

mutate: $(RUN)
	$(BIN)/python -m tests.mutation $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) \
		$(if $(FILE),--files $(FILE)) $(if $(filter-out tests,$(TESTS)),--tests $(TESTS))

# All parts run, also after one that ends with an error. Those with + are shorter with QUICK=1.
BENCH = tests.bench+ $(addprefix tests.bench.,avro_values message_values increment_cost state_cost+ day_cost store_cost \
  many_slices erase_cost hash_cost cold_start many_topics+)

bench: $(RUN)
	@failed=; for part in $(BENCH); do \
	  quick=; case $$part in *+) quick='$(if $(QUICK),--quick)';; esac; \
	  $(BIN)/python -m $${part%+} $$quick || failed="$$failed $${part%+}"; \
	done; \
	if [ -n "$$failed" ]; then echo "these parts ended with an error:$$failed" >&2; exit 1; fi

docs: $(RUN)
	$(BIN)/python -m tests.docs

check: $(RUN)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/codespell
	$(BIN)/python -m tests.prose

format: $(RUN)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# uv resolves for every Python and platform at once; it is fetched for this only, and names no host in what it writes.
# gssapi is compiled, and would demand libkrb5-dev of everyone; the tests install it from files of their own.
LOCK := .cache/lock/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-header --python-version 3.11
lock:
	$(PYTHON) -m venv .cache/lock && .cache/lock/bin/pip install --quiet uv
	$(LOCK) --all-extras --no-emit-package gssapi pyproject.toml -o requirements.lock
	$(LOCK) tests/kerberos/gssapi.in -o tests/kerberos/gssapi.lock
	$(LOCK) tests/kerberos/build.in -o tests/kerberos/build.lock

clean:
	rm -rf .venv .demo .cache
