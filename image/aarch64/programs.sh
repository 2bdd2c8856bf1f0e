#!/usr/bin/env bash
# Compile the box's program for ARM processors and print the folder that holds tinboxd.
#
#   CACHED=1         compile nothing: print the folder, or end with 3 when it is not there
#   PROFILE=release  as it is published; else as quickly as cargo's own profile for development
#   TINBOX_TARGET    where it is compiled (out/aarch64/target)
#
# The compiler is Debian's in its folder of the cache (parts.sh): rustup's may know this processor
# only.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "$here/../..")
triplet=aarch64-unknown-linux-gnu
target=${TINBOX_TARGET:-$top/out/aarch64/target}
profile=${PROFILE:-dev}
out=$target/$triplet/${profile/#dev/debug}
if [ -n "${CACHED:-}" ]; then
  if [ ! -x "$out/tinboxd" ]; then exit 3; fi
  echo "$out"
  exit 0
fi
tools=$("$here/parts.sh" toolchain)
export PATH=$tools/bin:$PATH RUSTC=$tools/bin/rustc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
# As .cargo/config.toml has them for the other processor: one static file.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static \
  --cfg getrandom_backend=\"linux_getrandom\""
cd "$top"
cargo build --quiet --locked --package supervisor --bin tinboxd --profile "$profile" \
  --target "$triplet" --target-dir "$target" >&2
echo "$out"
