#!/usr/bin/env bash
# Compile the tests of crates of kube-rs, and our program `watching` that watches with them, and
# print their paths, one a line:
#   build.sh kube kube-client watching
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh
crates=(kube kube-client kube-runtime)
version=$(sed -n 's/^kube = { version = "=\([^"]*\)".*/\1/p' Cargo.toml)

# Copy the published sources of the crates to $1/crates.
fetch() {
  local crate found
  mkdir -p "$1/pins/src" "$1/crates"
  touch "$1/pins/src/lib.rs"
  {
    printf '[workspace]\n[package]\nname = "pins"\nedition = "2024"\n[dependencies]\n'
    printf '%s = "='"$version"'"\n' "${crates[@]}"
  } >"$1/pins/Cargo.toml"
  cp Cargo.lock "$1/pins"
  cargo metadata --quiet --format-version 1 --manifest-path "$1/pins/Cargo.toml" >"$1/metadata"
  for crate in "${crates[@]}"; do
    found=$(grep -o "\"manifest_path\":\"[^\"]*/$crate-$version/Cargo.toml\"" "$1/metadata" |
      cut -d'"' -f4)
    cp -R "$(dirname "$found")" "$1/crates/$crate"
    # Publishing took out that a crate's tests use `kube`; the manifest as it was is beside it.
    sed -n 's|^kube = { path = "../kube", features = \(.*\) }$|\
[dev-dependencies.kube]\npath = "../kube"\nfeatures = \1|p' \
      "$1/crates/$crate/Cargo.toml.orig" >>"$1/crates/$crate/Cargo.toml"
  done
}

# Make $1 a folder with every program.
compile() {
  local program work=$1.work
  rm -rf "$1" "$work"
  mkdir -p "$work" "$1"
  fetch "$work" >&2
  cp Cargo.toml Cargo.lock watching.rs "$work"
  cargo test --locked --no-run --lib --test watching --manifest-path "$work/Cargo.toml" \
    --target-dir "$work/target" --message-format json --quiet \
    --package watching "${crates[@]/#/--package=}" \
    --features kube-client/rustls-tls,kube-client/ws,kube/derive,kube/runtime >"$work/messages"
  for program in watching "${crates[@]}"; do
    cp "$(grep -o "\"executable\":\"[^\"]*/${program//-/_}-[0-9a-f]*\"" "$work/messages" |
      cut -d'"' -f4)" "$1/$program"
  done
  rm -rf "$work"
}

out=$(cat build.sh Cargo.toml Cargo.lock watching.rs | cache_folder kube-rs)
words="kube-rs: compiling its tests (once; some CPU minutes)"
made=$(cached "$out/programs" "$words" compile)
for program in "$@"; do
  echo "$made/$program"
done
