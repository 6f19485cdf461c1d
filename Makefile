# The daily commands. Everything else is behind `cargo xtask`.

CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH)
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Passed on by `make run ARGS="--listen 127.0.0.1:8080"`.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test build dev fmt lint clean bootstrap

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Install what is missing, build, start the demo
	@exec $(TARGET)/release/amends demo $(ARGS)

test: bootstrap ## Install the rest, run every check beside private databases
	@cargo xtask provision test
	@cargo xtask test

build: bootstrap ## Build one self-contained file, target/release/amends
	@cargo xtask provision run
	@cargo xtask build

dev: bootstrap ## Rebuild and restart the demo on every change
	@cargo xtask provision run
	@cargo xtask dev $(ARGS)

fmt: bootstrap ## Format the code
	@cargo fmt --all

lint: bootstrap ## Check formatting and lints, native and wasm
	@cargo xtask lint

clean: ## Remove everything that was built
	@cargo clean

# What must exist before the first line of Rust can run.
bootstrap:
	@sh server/xtask/bootstrap.sh
	@test -x $(TARGET)/debug/xtask || { echo "» compiling the build tool (a minute or two)"; cargo build --package xtask; }
