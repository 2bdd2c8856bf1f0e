#!/usr/bin/env bash
# What must be true of a root without a shell, checked here so that a package that somebody adds
# does not bring one in unseen: post-build.sh TARGET ARCH
#
# Nothing is taken away here. The image holds what image/src/disk/root.rs lists, and no more: the C
# library that Buildroot always installs stays behind.
set -euo pipefail
target=${1:?usage: post-build.sh TARGET ARCH}
programs=(tinboxd)
if [ "${2:-x86_64}" = x86_64 ]; then programs+=(tinbox-agent); fi
for program in "${programs[@]}"; do
  if [ ! -x "$target/usr/bin/$program" ]; then
    echo "post-build: $program was not built" >&2
    exit 1
  fi
done
for file in etc/hosts etc/nsswitch.conf; do
  if ! cmp -s "$target/$file" "$(dirname "$(readlink -f "$0")")/../../../image/root/$file"; then
    echo "post-build: $file is not the overlay's" >&2
    exit 1
  fi
done
