#!/usr/bin/env bash
# Put Debian's source of the kernel into a folder, where Buildroot looks for it:
# kernel-source.sh FOLDER
set -euo pipefail
folder=${1:?usage: kernel-source.sh FOLDER}
if [ -s "$folder/linux-source-6.12.tar.xz" ]; then exit 0; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download -qq linux-source-6.12 >&2)
dpkg-deb --fsys-tarfile "$work"/*.deb \
  | tar -xO ./usr/src/linux-source-6.12.tar.xz >"$folder/kernel.part"
mv "$folder/kernel.part" "$folder/linux-source-6.12.tar.xz"
