#!/usr/bin/env bash
# Installs zig and cargo-zigbuild into .cache/zig, once. They link the release
# addon against an old glibc, so that it runs on older systems than this one.
# Their packages hold the programs themselves; nothing is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."

want="ziglang==0.17.1 cargo-zigbuild==0.24.1"
if [ "$(cat .cache/zig/.installed 2>/dev/null)" != "$want" ]; then
  rm -rf .cache/zig
  python3 -m venv .cache/zig || {
    echo "zig: python3 with venv and pip is missing; it installs the linker of the release build." >&2
    exit 1
  }
  # shellcheck disable=SC2086 # two packages
  .cache/zig/bin/pip install --quiet --disable-pip-version-check $want
  echo "$want" >.cache/zig/.installed
fi
