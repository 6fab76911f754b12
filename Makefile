# Two commands for people: `make demo` and `make test`. Both set up what a
# fresh machine with Rust and Node 20 lacks. Everything else is an npm script.
#
# `make soak` runs what `make test` reduces with its full counts and writes
# docs/records/soak.md; `make soak PARTS="killed live"` runs some parts. It needs
# what `make test` built. TEST_SCALE (1 by default) multiplies the counts of
# repeated tests, in JavaScript and Rust alike; TEST_SEED replaces their seeds.
#
# `make chaos SEED=7 MINUTES=10` is a seeded chaos run; RECORD=1 adds it to
# docs/records/chaos.md. Half a minute of it is a part of `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

.PHONY: demo test soak chaos bench setup

demo: setup
	npm run --silent build:client
	npm run --silent build:debug
	npm run --silent build:simulator
	npm run --silent demo

test: setup
	@scripts/check-all.sh

chaos: SEED ?= 1
chaos: MINUTES ?= 1
chaos: setup
	@node __test__/chaos/run.mjs --seed $(SEED) --minutes $(MINUTES) $(if $(RECORD),--record)

soak: setup
	@node scripts/soak.mjs $(PARTS)

# Measures against what users would take instead; writes bench/RESULTS.md.
bench: setup
	npm run --silent build
	cargo build --release --locked --package runloop-simulator
	cargo build --release --locked --package bench-floor
	npm run --silent bench

setup:
	@scripts/setup.sh
