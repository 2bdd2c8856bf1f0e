#!/usr/bin/env bash
# Fetch a part of what a box with an ARM processor is built with, from Debian's packages, which are
# unpacked and never installed, and print its folder in the cache:
#
#   parts.sh toolchain   bin/aarch64-linux-gnu-{gcc,ld,strip,…}, with the C library for static
#                        programs; bin/rustc with the standard libraries of both processors
#   parts.sh loader      usr/lib/grub/arm64-efi
#   parts.sh machine     bin/qemu-system-aarch64 and usr/share/AAVMF, its firmware
#
# CACHED=1 fetches nothing: it prints the folder that is in the cache, or ends with 3.
# The cache is ${TINBOX_CACHE:-~/.cache/tinbox}/aarch64; the hash covers the packages' versions and
# this file.
set -euo pipefail
self=$(readlink -f "$0")
. "$(dirname "$self")/apt.sh"
part=${1:?usage: parts.sh toolchain|loader|machine}
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/aarch64
# What runs here, and what is the same everywhere; what runs there.
own=() other=()
case $part in
  toolchain)
    own=(gcc-12-aarch64-linux-gnu cpp-12-aarch64-linux-gnu binutils-aarch64-linux-gnu
      libgcc-12-dev-arm64-cross libgcc-s1-arm64-cross libc6-dev-arm64-cross libc6-arm64-cross
      linux-libc-dev-arm64-cross libisl23 libmpc3 libmpfr6
      rustc-web libstd-rust-web-1.96 libstd-rust-web-dev libllvm22)
    other=(libstd-rust-web-dev)
    ;;
  loader) other=(grub-efi-arm64-bin) ;;
  machine) own=(qemu-system-arm qemu-efi-aarch64) ;;
  *) echo "image: no part is called $part" >&2; exit 64 ;;
esac

mkdir -p "$cache"
exec 9>"$cache/lock"; flock 9
if [ ${#other[@]} -gt 0 ] && [ -z "${CACHED:-}" ]; then arm_lists; fi
mapfile -t own_pinned < <(own_versions "${own[@]}")
mapfile -t other_pinned < <(arm_versions "${other[@]}" 2>/dev/null)
if [ -n "${CACHED:-}" ] && [ ${#other_pinned[@]} != ${#other[@]} ]; then exit 3; fi
if [ ${#own_pinned[@]} != ${#own[@]} ] || [ ${#other_pinned[@]} != ${#other[@]} ]; then
  echo "image: apt knows not all of ${own[*]} ${other[*]} on this machine" >&2
  echo "hint: run apt-get update; the list is for Debian 12" >&2
  exit 1
fi
hash=$({ printf '%s\n' "${own_pinned[@]}" arm64 "${other_pinned[@]}"; cat "$self"; } \
  | sha256sum | cut -c1-16)
out=$cache/$part-$hash
if [ -d "$out" ]; then echo "$out"; exit 0; fi
if [ -n "${CACHED:-}" ]; then exit 3; fi

echo "image: fetching Debian's packages for ARM: $part (once)" >&2
work=$cache/work
rm -rf "$work"; mkdir -p "$work"/{debs,tree}
cd "$work/debs"
if [ ${#own[@]} -gt 0 ]; then
  apt-get -o APT::Sandbox::User=root download -qq "${own_pinned[@]}" >&2
fi
if [ ${#other[@]} -gt 0 ]; then arm_apt apt-get download -qq "${other_pinned[@]}" >&2; fi
for deb in ./*.deb; do dpkg-deb -x "$deb" "$work/tree"; done
cd "$work/tree"
rm -rf usr/share/{doc,man,lintian,bug} usr/share/AAVMF/*.{ms,snakeoil}.fd usr/lib/debug
mkdir bin
# Programs find their libraries in the folder where they were unpacked, and nowhere else.
for program in usr/bin/{aarch64-linux-gnu-*,rustc,rustdoc,qemu-system-aarch64}; do
  if [ ! -e "$program" ]; then continue; fi
  name=$(basename "$program")
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nroot=$(dirname "$(readlink -f "$0")")/..\n%s exec "$root/%s" "$@"\n' \
    'LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu' "$program" >"bin/${name%-12}"
  chmod +x "bin/${name%-12}"
done
mv "$work/tree" "$out"
rm -rf "$work"
echo "$out"
