#!/usr/bin/env bash
# Every check, in the order in which a failure is cheapest. Stops at the first
# step that fails; the closing lines of every runner stay visible.
set -euo pipefail
cd "$(dirname "$0")/.."

# Everything that any step shows; the last one looks for the tests' secrets in it.
export SUITE_LOG=$PWD/target/suite-log
rm -rf "$SUITE_LOG"
mkdir -p "$SUITE_LOG"

step() {
  printf '\n== %s\n' "$*"
}
run() {
  step "$@"
  "$@" 2>&1 | tee -a "$SUITE_LOG/output"
}
# The same for what is not for reading: its closing lines, or all where it fails.
quietly() {
  step "$@"
  if "$@" >"$SUITE_LOG/quiet" 2>&1; then
    tail -n 8 "$SUITE_LOG/quiet"
  else
    cat "$SUITE_LOG/quiet"
    return 1
  fi
  cat "$SUITE_LOG/quiet" >>"$SUITE_LOG/output"
}

run cargo fmt --all --check
run cargo clippy --locked --workspace --all-targets -- -D warnings
run cargo clippy --locked --lib --features test-hooks -- -D warnings
run cargo check --locked --no-default-features
run env RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
run npm run --silent check
run npm run --silent docs

if cargo nextest --version >/dev/null 2>&1; then
  # Most tests wait for guests most of the time.
  run cargo nextest run --locked --workspace --test-threads "$(node -p "2 * os.availableParallelism()")"
  run cargo test --locked --workspace --doc
else
  run cargo test --locked --workspace
fi

run npm run --silent build
run npm run --silent build:hooks
run npm run --silent build:simulator
run cargo build --locked --package bench-floor
run node bench/bench.mjs --quick

run node scripts/test.mjs node
if [ -d __test__/runtimes/node_modules ]; then
  run node scripts/test.mjs node 22
  run node scripts/test.mjs node 24
fi
run node scripts/test.mjs bun
run node __test__/chaos/run.mjs --seed 10 --minutes 0.4

quietly env BEACHSIDE_LOG=debug node scripts/test.mjs node __test__/runloop-{exec,files,lifecycle,previews}.test.mjs
run npm run --silent demo
run node scripts/leaks.mjs "$SUITE_LOG"
run node scripts/requirements.mjs --count
