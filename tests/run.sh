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
log=$(mktemp) tests='' status=0
trap 'rm -f "$log"; [ -z "$tests" ] || kill -- "-$tests" 2>/dev/null || true' EXIT
# Into a file, and in a process group of its own: a program that a failed test leaves behind would
# hold a pipe open, and whoever reads this script's output would wait for its end.
set -m
cargo test --workspace --no-fail-fast "$@" >"$log" 2>&1 </dev/null &
tests=$!
set +m
tail -n +1 --pid="$tests" -f "$log"
wait "$tests" || status=$?
awk '
  /^test result:/ { for (i = 1; i <= NF; i++) {
    if ($(i + 1) ~ /^passed/) passed += $i
    if ($(i + 1) ~ /^failed/) failed += $i } }
  END { printf "%d passed, %d failed\n", passed, failed }' "$log"
exit "$status"
