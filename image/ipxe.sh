#!/usr/bin/env bash
# Collect Debian's iPXE loaders into a folder: ipxe.sh FOLDER
#
#   undionly.kpxe   BIOS machines      snponly.efi   UEFI machines, by the firmware's own driver
#   ipxe.efi        UEFI machines whose firmware's driver is not to be trusted
set -euo pipefail
out=${1:?usage: ipxe.sh FOLDER}
from=/usr/lib/ipxe
mkdir -p "$out"
for name in undionly.kpxe snponly.efi ipxe.efi; do
  if [ ! -r "$from/$name" ]; then
    echo "image: $from/$name is missing" >&2
    echo "hint: apt-get install ipxe" >&2
    exit 1
  fi
  if ! cmp -s "$from/$name" "$out/$name"; then install -m 644 "$from/$name" "$out/$name"; fi
done
