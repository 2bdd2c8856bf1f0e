#!/usr/bin/env bash
# Run every test of the workspace and end with one count over all of them.
#
#   run.sh [FILTER]    FILTER is a nextest filter expression, such as 'package(dhcp)'
#
# out/tests/ keeps the JUnit report, the acceptance table and the logs; ~/.cache/tinbox/ci/ the
# reports of earlier runs.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

if [ "$(id -u)" != 0 ]; then
  echo "error: the tests need root: they make network namespaces, taps and loop devices" >&2
  echo "hint: sudo make test, or make check for the tests that need no root" >&2
  exit 1
fi
export PATH=$PWD/out/bin:$PATH:/usr/sbin:/sbin
programs=$(readlink -f "${CARGO_TARGET_DIR:-target}")/programs
history=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/ci
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
out=$PWD/out/tests
rm -rf "$out"
mkdir -p "$out" "$history"

export TINBOX_CPU_LOG=$out/cpu
touch "$TINBOX_CPU_LOG"
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$programs/tinbox-test-runner

# Runs a command in a process group of its own, with its output in a file: a program that a failed
# test left running would hold a pipe open, and the reader of this script's output would wait for
# the end of that program.
tests=
trap '[ -z "$tests" ] || kill -- "-$tests" 2>/dev/null || true' EXIT
in_group() {
  local log=$1 status=0
  shift
  : >"$log"
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  tests=$!
  set +m
  tail -n +1 --pid="$tests" -f "$log"
  wait "$tests" || status=$?
  tests=
  return "$status"
}

status=0
filter=(${1:+--filterset "$1"})
in_group "$out/log" cargo nextest run --workspace --profile "${NEXTEST_PROFILE:-ci}" \
  "${filter[@]}" || status=$?
junit=${CARGO_TARGET_DIR:-target}/nextest/${NEXTEST_PROFILE:-ci}/junit.xml
# Status 100 means that tests failed, any other status that the tests could not be run.
if [ "$status" != 0 ] && [ "$status" != 100 ] || [ ! -e "$junit" ]; then
  echo "error: the tests did not run: cargo nextest ended with $status" >&2
  exit 1
fi
mv "$junit" "$out/junit.xml"
cp "$out/junit.xml" "$history/$commit.xml"
find "$history" -name '*.xml' -mtime +30 -delete
unset CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER
if [ -z "${1:-}" ]; then
  in_group "$out/doc" cargo test --workspace --doc --no-fail-fast || status=$?
  whole=(--count tests/count)
  # Another profile runs other tests.
  if [ "${NEXTEST_PROFILE:-ci}" = ci ]; then
    "$programs/tinbox-test-acceptance" --junit "$out/junit.xml" --out out/tests/acceptance ||
      status=1
  fi
else
  whole=()
  : >"$out/doc"
fi
tests/step.sh table
"$programs/tinbox-test-report" --junit "$out/junit.xml" --cpu "$out/cpu" --doc "$out/doc" \
  "${whole[@]}" --history "$history" --commit "$commit" || status=1
exit "$status"
