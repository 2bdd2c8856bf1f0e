#!/usr/bin/env bash
# Assemble the box that tinbox-bench-hostile attacks, from the release programs, and run it. With
# ATTACKS, only those that have one of its words in their names.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
export TINBOX_BIN=$PWD/target/x86_64-unknown-linux-gnu/release
image/artifacts.sh out/artifacts loaders agent
read -ra attacks <<<"${ATTACKS:-}"
exec "$TINBOX_BIN/tinbox-bench-hostile" "${attacks[@]}"
