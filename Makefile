# `make` lists the targets. `make test` is what CI calls.

GO        ?= go
FUZZTIME  ?= 30s
DEMO_ARGS ?=
# How many statements `make fuzz` compares on each kind of database; DIFFERENTIAL_SEED repeats a run.
DIFFERENTIAL      ?= 1000000
DIFFERENTIAL_SEED ?=
BENCH_ARGS ?=

# Tools are pinned here and built by `go run` from the module proxy, so that go.mod holds what the library needs and no more.
# The first run builds the linter (about 80 s on two cores, downloads included); after that Go's build cache has it.
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# What the tests need besides Go: the MariaDB, PostgreSQL and Redis servers, and a C compiler for the race detector. These
# Debian packages hold programs only; none of them starts a service. PostgreSQL's would make and start a cluster of its own:
# its tools come first, and are told not to. Redis's server is in redis-tools, under the name redis-check-rdb; the package
# redis-server adds a link to it and the service, which the tests do without.
MARIADB_PACKAGES  := mariadb-server-core mariadb-client-core
POSTGRES_PACKAGES := postgresql
REDIS_PACKAGES    := redis-tools
COMPILER_PACKAGES := gcc libc6-dev

# With these set a test that needs a server fails where it would be skipped.
REQUIRE_SERVERS := TENANTDAL_REQUIRE_MARIADB=1 TENANTDAL_REQUIRE_POSTGRES=1 TENANTDAL_REQUIRE_REDIS=1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help test test-long test-deps shapes vet lint fmt fuzz demo bench bench-test

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: test-deps vet lint bench-test ## Everything that CI checks: vet, lint, all tests with the race detector and real servers
	$(REQUIRE_SERVERS) $(GO) test -race -count=1 -timeout 40m ./...

test-long: test-deps ## All tests without the race detector, the long ones that are left out under it included
	$(REQUIRE_SERVERS) $(GO) test -count=1 -timeout 60m ./...

shapes: test-deps ## Write what gorm's shapes do, after a change that is meant: dal/testdata/shapes, docs/shapes.md, docs/shapes-sql.md
	$(REQUIRE_SERVERS) $(GO) test -timeout 15m ./dal -run 'TestShapes_(Chain|Table|Join|Preload|SubQuery|Clause|Raw|Session|Generic|Tx|Write|Value)$$' -update
	$(GO) test ./dal -run TestShapes_DocsSayWhatHappens -update
	$(GO) test ./internal/gate -run TestDocs -update

test-deps: ## Install what the tests need and the machine lacks (Debian, Ubuntu; as root or with passwordless sudo)
	@set -eu; \
	PATH="$$PATH:/usr/sbin:/usr/local/sbin"; \
	missing() { ! command -v "$$1" >/dev/null 2>&1; }; \
	no_postgres() { missing initdb && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }; \
	no_redis() { missing redis-server && missing redis-check-rdb; }; \
	packages=; \
	postgres=; \
	if missing mariadbd || missing mariadb-install-db; then packages="$(MARIADB_PACKAGES)"; fi; \
	if no_redis; then packages="$$packages $(REDIS_PACKAGES)"; fi; \
	if missing gcc && missing clang; then packages="$$packages $(COMPILER_PACKAGES)"; fi; \
	if no_postgres; then postgres="$(POSTGRES_PACKAGES)"; fi; \
	if [ -z "$$packages$$postgres" ]; then exit 0; fi; \
	if missing apt-get; then \
		echo "test-deps: the tests need a MariaDB server (mariadbd, mariadb-install-db), a PostgreSQL server (postgres, initdb)," >&2; \
		echo "test-deps: a Redis server (redis-server) and a C compiler (gcc or clang)." >&2; \
		echo "test-deps: one of them is missing, and there is no apt-get here: please install it with your system's own means." >&2; \
		exit 1; \
	fi; \
	if [ "$$(id -u)" -eq 0 ]; then sudo=; \
	elif sudo -n true 2>/dev/null; then sudo="sudo -n"; \
	else \
		echo "test-deps: packages are missing, and installing them takes root. Please run:" >&2; \
		echo "    sudo apt-get install --no-install-recommends $$packages $$postgres" >&2; \
		exit 1; \
	fi; \
	echo "test-deps: installing $$packages $$postgres with apt-get (programs only, no service is started)"; \
	$$sudo apt-get update -qq || echo "test-deps: apt-get update failed, going on with the package lists at hand" >&2; \
	install="env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"; \
	if [ -n "$$postgres" ]; then \
		$$sudo $$install postgresql-common; \
		$$sudo sed -i -E 's/^#? *create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf; \
	fi; \
	$$sudo $$install $$packages $$postgres; \
	if no_postgres; then \
		echo "test-deps: postgres is still missing after the installation" >&2; exit 1; \
	fi; \
	if no_redis; then \
		echo "test-deps: redis-server is still missing after the installation" >&2; exit 1; \
	fi; \
	if missing mariadbd || missing mariadb-install-db; then \
		echo "test-deps: mariadbd is still missing after the installation" >&2; exit 1; \
	fi

vet: ## Run go vet
	$(GO) vet ./...

lint: ## Run the pinned golangci-lint: correctness, documentation, import directions, formatting
	$(GOLANGCI_LINT) run ./...

fmt: ## Format the code with gofumpt, in the version of the pinned golangci-lint (0.12.0)
	$(GOLANGCI_LINT) fmt ./...

fuzz: test-deps ## Compare DIFFERENTIAL (1000000) random statements beside other tenants and alone, then run every fuzz target for FUZZTIME (30s)
	TENANTDAL_DIFFERENTIAL=$(DIFFERENTIAL) TENANTDAL_SEED=$(DIFFERENTIAL_SEED) TENANTDAL_REQUIRE_MARIADB=1 \
		$(GO) test -count=1 -timeout 3h -run '^TestDifferential_(SQLite|MariaDB)$$' -v ./dal
	@set -eu; \
	for package in $$($(GO) list ./...); do \
		list=$$($(GO) test -list '^Fuzz' "$$package"); \
		for target in $$(echo "$$list" | grep '^Fuzz' || true); do \
			echo "fuzz: $$target in $$package for $(FUZZTIME)"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$package"; \
		done; \
	done

demo: ## Run the donation example; DEMO_ARGS="-shards mariadb:3" for real servers
	$(GO) run ./examples/guilddonation $(DEMO_ARGS)

bench: ## Print what the layer costs beside plain gorm, and routing beside its peers; BENCH_ARGS="-case First", ROUTING_ARGS="-parts swap" for a part
	cd bench && $(GO) run ./cmd/layer $(BENCH_ARGS)
	cd bench && $(GO) run ./cmd/routing $(ROUTING_ARGS)

bench-test: ## Vet the benchmarks' own module and run each of them once
	cd bench && $(GO) vet ./... && $(GO) test -count=1 -timeout 5m ./...
