#!/usr/bin/env bash
# Check a change in minutes, without root: format, the rules of tests/tidy, clippy, and the unit
# tests of every crate that changed and of every crate that depends on such a crate.
#
#   BASE=REVISION    commit to compare with (merge base with origin/main, else HEAD)
#   ALL=1            run the unit tests of all crates
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
export PATH=$PWD/out/bin:$PATH

if ! command -v cargo-nextest >/dev/null; then
  mkdir -p out/bin
  ln -sf "$(tests/nextest.sh)" out/bin/cargo-nextest
fi

base() {
  if [ -n "${BASE:-}" ]; then
    git rev-parse "$BASE"
  else
    git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD
  fi
}

# Files that differ from the base, or are new.
changed_files() {
  git diff --name-only "$(base)" --
  git ls-files --others --exclude-standard
}

# Print the nextest filter for the packages that contain the files on standard input, and for all
# packages that depend on these. A file that affects every package selects all.
affected() {
  local file folder name filter=
  while read -r file; do
    case $file in
      Cargo.toml | Cargo.lock | .cargo/* | .config/* | rust-toolchain.toml)
        echo 'all()'
        return
        ;;
    esac
    # A member of the workspace is one folder deep or two; fuzz is a workspace of its own.
    folder=$(cut -d / -f 1-2 <<<"$file")
    if [ ! -e "$folder/Cargo.toml" ]; then folder=${file%%/*}; fi
    if [ ! -e "$folder/Cargo.toml" ] || [ "$folder" = fuzz ]; then continue; fi
    name=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$folder/Cargo.toml" | head -n 1)
    case $filter in *"rdeps(=$name)"*) ;; *) filter+="${filter:+ + }rdeps(=$name)" ;; esac
  done
  echo "${filter:-none()}"
}

if [ -n "${ALL:-}" ]; then scope='all()'; else scope=$(changed_files | affected); fi
echo "check: $scope" >&2
cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- --deny warnings
unit='kind(lib) + kind(bin) + binary(schema)'
# --no-tests=pass: a change of documents affects no crate. The tests of tidy and docs run always.
cargo nextest run --workspace --profile check --no-tests=pass \
  --filterset "(($unit) & ($scope)) + package(tidy) + package(docs)"
