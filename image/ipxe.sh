#!/usr/bin/env bash
# Collect Debian's iPXE loaders into a folder: ipxe.sh FOLDER
#
#   undionly.kpxe   BIOS machines, by the card's own ROM   ipxe.pxe   by drivers of iPXE's own
#   snponly.efi     UEFI machines, by the firmware's       ipxe.efi   by drivers of iPXE's own
set -euo pipefail
out=${1:?usage: ipxe.sh FOLDER}
from=/usr/lib/ipxe
mkdir -p "$out"
for name in undionly.kpxe ipxe.pxe snponly.efi ipxe.efi; do
  if [ ! -r "$from/$name" ]; then
    echo "image: $from/$name is missing" >&2
    echo "hint: apt-get install ipxe" >&2
    exit 1
  fi
  if ! cmp -s "$from/$name" "$out/$name"; then install -m 644 "$from/$name" "$out/$name"; fi
done
