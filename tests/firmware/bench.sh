#!/usr/bin/env bash
# Assemble what tinbox-bench-box measures, from the release programs, and run it.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
export TINBOX_BIN=$PWD/target/x86_64-unknown-linux-gnu/release
image/artifacts.sh out/artifacts loaders agent
version() { dpkg-query -W -f '${Version}' "$1"; }
tools=$(image/tools/build.sh)
linux=$(apt-cache show --no-all-versions linux-source-6.12 | sed -n 's/^Version: //p')
export TINBOX_PUBLISH=$PWD/out/bench-box.components
image/components.sh "$linux" "$(version grub-efi-amd64-bin)" "$(version ipxe)" \
  "${tools%.squashfs}.manifest" >"$TINBOX_PUBLISH"
exec "$TINBOX_BIN/tinbox-bench-box"
