#!/usr/bin/env bash
# Check a change in minutes, without root: format, the laws of tests/tidy, clippy, and the unit
# tests of every crate that changed and of every crate that depends on one.
#
#   BASE=REVISION    what the change is compared with (origin/main, else the last commit)
#   ALL=1            the unit tests of all crates
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

# The nextest filter for the packages that hold these files; everything for a file that every
# package depends on.
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
# --no-tests=pass: a change of documents affects no crate; the laws hold for them too.
cargo nextest run --workspace --profile check --no-tests=pass \
  --filterset "(($unit) & ($scope)) + package(tidy) + package(docs)"
