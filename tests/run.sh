#!/usr/bin/env bash
# Run every test of the workspace and end with one count over all of them.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

if [ "$(id -u)" != 0 ]; then
  echo "error: the tests need root: they make network namespaces, taps and loop devices" >&2
  echo "hint: sudo make test" >&2
  exit 1
fi
export PATH=$PWD/out/bin:$PATH:/usr/sbin:/sbin
log=$(mktemp); trap 'rm -f "$log"' EXIT
status=0
cargo test --workspace --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?
awk '
  /^test result:/ { for (i = 1; i <= NF; i++) {
    if ($(i + 1) ~ /^passed/) passed += $i
    if ($(i + 1) ~ /^failed/) failed += $i } }
  END { printf "%d passed, %d failed\n", passed, failed }' "$log"
exit "$status"
