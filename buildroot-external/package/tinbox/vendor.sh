#!/usr/bin/env bash
# Put the crates of the lock file beside the sources, for a build that fetches nothing:
#
#   vendor.sh SOURCES CARGO_HOME CARGO
#
# What was vendored for the same lock file is taken again. TINBOX_CARGO_HOME is a cargo home that
# holds the crates' archives from before.
set -euo pipefail
cd "${1:?usage: vendor.sh SOURCES CARGO_HOME CARGO}"
if ! cmp -s Cargo.lock vendor/Cargo.lock; then
  export CARGO_HOME=${TINBOX_CARGO_HOME:-${2:?}}
  mkdir -p "$CARGO_HOME"
  rm -rf vendor vendor.toml
  "${3:?}" vendor --locked --versioned-dirs vendor >vendor.toml
  mv vendor.toml vendor/config.toml
  cp Cargo.lock vendor/
fi
# The sources' own settings came anew with them.
if ! grep -q vendored-sources .cargo/config.toml; then
  cat vendor/config.toml >>.cargo/config.toml
fi
