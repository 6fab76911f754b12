#!/usr/bin/env bash
# Sets up what a fresh machine lacks: npm packages, further Node versions for
# the tests, and the programs that simulated Devboxes use. Needs Rust and
# Node 20 or later; does nothing that was done already.
set -euo pipefail
cd "$(dirname "$0")/.."

need() {
  command -v "$1" >/dev/null || { echo "setup: $1 is missing. $2" >&2; exit 1; }
}
need cargo "Install it with rustup; rust-toolchain.toml names the version."
need node "Install Node 20 or later."
need npm "It comes with Node."

# Runs `npm ci` where a lock file changed since the last time.
packages_of() {
  local folder=$1
  shift
  local stamp="$folder/node_modules/.installed"
  if ! cmp -s "$folder/package-lock.json" "$stamp"; then
    npm ci --prefix "$folder" --no-audit --no-fund --loglevel=error "$@"
    cp "$folder/package-lock.json" "$stamp"
  fi
}
packages_of .
if [ "$(uname -sm)" = "Linux x86_64" ]; then
  packages_of __test__/runtimes --ignore-scripts
else
  echo "setup: the tests run on this Node only; further versions exist for Linux on x86_64."
fi

# Programs that the tests and examples use: the guest's shell and web server,
# a browser that opens previews, and what counts instructions.
packages=()
command -v busybox >/dev/null || packages+=(busybox)
command -v chromium >/dev/null || packages+=(chromium)
command -v valgrind >/dev/null || packages+=(valgrind)
if [ "${#packages[@]}" -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends \
      "${packages[@]}" >/dev/null
  else
    echo "setup: install these packages for the tests that need them: ${packages[*]}" >&2
  fi
fi

# The official Python SDK, a second witness of the simulator. Optional: without
# it its test is skipped and says so.
witness=runloop_api_client==3.0.0
if [ "$(cat .cache/python/.installed 2>/dev/null)" != "$witness" ]; then
  rm -rf .cache/python
  if python3 -m venv .cache/python &&
    .cache/python/bin/pip install --quiet --disable-pip-version-check "$witness"; then
    echo "$witness" >.cache/python/.installed
  else
    rm -rf .cache/python
    echo "setup: the Python witness is left out; it needs python3 with venv and pip." >&2
  fi
fi
