#!/usr/bin/env bash
# Print what the box's image is made of, a line for each component, for its SBOM: kind, name,
# version and licence, separated by tabs (image/src/sbom.rs reads them):
#
#   components.sh LINUX GRUB IPXE TOOLS_MANIFEST     three versions, and the tools' packages
#
# TINBOX_ARCH=aarch64 is the box's processor, where it is not x86_64.
set -euo pipefail
top=$(dirname "$(readlink -f "$0")")/..
linux=${1:?usage: components.sh LINUX GRUB IPXE TOOLS_MANIFEST}
grub=${2:?} ipxe=${3:?} tools=${4:?}
printf 'generic\tlinux\t%s\tGPL-2.0-only WITH Linux-syscall-note\n' "$linux"
printf 'generic\tgrub\t%s\tGPL-3.0-or-later\n' "$grub"
printf 'generic\tipxe\t%s\tGPL-2.0-or-later\n' "$ipxe"
version=$(dpkg-query -W -f '${Version}' systemd-boot-efi)
printf 'deb\tsystemd-boot-efi\t%s\tLGPL-2.1-or-later\n' "$version"
sed 's/ .*//' "$tools" | awk -F= 'NF == 2 { printf "deb\t%s\t%s\t\n", $1, $2 }'
cd "$top"
cargo tree --quiet --locked --package supervisor --package agent \
  --edges normal --target "${TINBOX_ARCH:-x86_64}-unknown-linux-gnu" \
  --prefix none --format '{p}|{l}' \
  | sed 's/ (\*)$//' \
  | awk -F'|' '$1 != "" { split($1, crate, " "); sub(/^v/, "", crate[2])
      printf "cargo\t%s\t%s\t%s\n", crate[1], crate[2], $2 }' \
  | LC_ALL=C sort -u
