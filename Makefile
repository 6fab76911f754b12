# Two commands for people: `make demo` and `make test`. Both set up what a
# fresh machine with Rust and Node 20 lacks. Everything else is an npm script.
#
# TEST_SCALE (a number, 1 by default) multiplies the counts and waits of the
# boundary and fidelity tests: `TEST_SCALE=10 npm run test:node` runs them in full.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

.PHONY: demo test setup

demo: setup
	npm run --silent build:client
	npm run --silent build:debug
	npm run --silent build:simulator
	npm run --silent demo

test: setup
	@scripts/check-all.sh

setup:
	@scripts/setup.sh
