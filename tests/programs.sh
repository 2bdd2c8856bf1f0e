#!/usr/bin/env bash
# Build the programs that tests, demos and images run, and copy them to target/programs.
#
# `cargo test` builds some of these programs again, with its own optimization level, and overwrites
# them in cargo's folder. Emulated machines need the optimized programs, so they are copied.
#
#   programs.sh [ARGUMENT…]    arguments for cargo
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
target=${CARGO_TARGET_DIR:-target}
triple=$(sed -n 's/^target = "\(.*\)"$/\1/p' .cargo/config.toml)

cargo build --workspace --bins --exclude api-bench --exclude boot-bench --exclude imaging-bench \
  --exclude hostile-bench "$@"
mkdir -p "$target/programs"
for program in "$target/$triple"/debug/*; do
  if [ ! -f "$program" ] || [ ! -x "$program" ]; then continue; fi
  copy=$target/programs/$(basename "$program")
  if cmp -s "$program" "$copy"; then continue; fi
  # The rename leaves a running program its old file.
  cp --reflink=auto "$program" "$copy.part"
  mv "$copy.part" "$copy"
done
ln -sf tinbox "$target/programs/tink"
