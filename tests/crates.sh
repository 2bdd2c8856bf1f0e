#!/usr/bin/env bash
# What the registry's crates compile to, kept outside the clone so that the next clone need not:
#   crates.sh restore    copies it to target, where there is none yet; where this lock file's is
#                        not kept, the latest that is: cargo compiles what differs
#   crates.sh keep       keeps target's, where this lock file's is not kept yet
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
source tests/cached.sh
# For how many days a lock file's crates are kept that nobody restored.
KEEP_DAYS=7

pins() {
  rustc --version --verbose
  cat Cargo.lock Cargo.toml .cargo/config.toml tests/crates.sh
}

# The registry's part of target, as $1. cargo clean takes the target from its arguments alone, not
# from the configuration as cargo build does.
registry_part() {
  rm -rf "$1"
  mkdir "$1"
  tar -C target -c --exclude=incremental . | tar -C "$1" -x
  CARGO_TARGET_DIR=$1 cargo clean --quiet --workspace
  CARGO_TARGET_DIR=$1 cargo clean --quiet --workspace --target "$(build_target)"
}

# The kept folder that was last used, if there is one.
latest() {
  find "$kept/.." -mindepth 2 -maxdepth 2 -name target -printf '%T@ %p\n' 2>/dev/null |
    sort -n | tail -n 1 | cut -d ' ' -f 2-
}

build_target() {
  sed -n 's/^target = "\(.*\)"$/\1/p' .cargo/config.toml
}

kept=$(pins | cache_folder crates)
case ${1:-} in
  restore)
    from=$kept/target
    [ -d "$from" ] || from=$(latest)
    if [ -d "$from" ] && [ ! -e target ]; then
      echo "crates: taking what an earlier clone compiled of the registry's" >&2
      touch "${from%/target}"
      if ! cp -a --reflink=auto "$from" target; then
        rm -rf target
        echo "warning: cannot copy $from, so everything is compiled anew" >&2
      fi
    fi
    ;;
  keep)
    trap 'rm -rf "$kept/target.part"' EXIT
    cached "$kept/target" "crates: keeping what the registry's compile to" registry_part >/dev/null
    find "$kept/.." -mindepth 1 -maxdepth 1 -mtime +"$KEEP_DAYS" -exec rm -rf {} +
    ;;
  *)
    echo "usage: crates.sh restore|keep" >&2
    exit 64
    ;;
esac
