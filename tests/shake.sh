#!/usr/bin/env bash
# Run tests many times under stalls and under load, to find those that depend on time.
#
#   shake.sh           all unit tests
#   shake.sh NAME      every test whose name contains NAME
#   shake.sh 'EXPR'    a filter expression of nextest, such as 'package(bmc) & kind(lib)'; an
#                      argument with a parenthesis is one
#
# Half of the runs are under stalls: all processes of a test stop for 0.4 to 1.5 s at random
# moments. The other half run beside two busy loops per core. Fails when a run failed.
#
# SHAKE_RUNS    runs of each kind (20)
# SHAKE_SEED    seed of the first run's stalls (1); each further run takes the next number
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

# Waits for 0 to 9999 milliseconds; `sleep` would be a process that a busy machine starts late.
pause() {
  local digits=000$1
  read -rt "$((10#$1 / 1000)).${digits: -3}" -u "$silence" || true
}

# Stops and continues a process group until its leader is gone:
#   stall GROUP SEED
stall() {
  RANDOM=$2
  # The first stall comes within 5, 50 or 500 ms: some tests last 5 ms and some last minutes.
  local group=$1 scales=(5 50 500)
  local most=${scales[RANDOM % 3]}
  : >"$SHAKE_WORK/stallers/$$"
  exec {silence}<> <(:)
  trap 'kill -CONT -- "-$group" 2>/dev/null || true' EXIT
  trap 'kill -KILL -- "-$group" 2>/dev/null || true; exit' TERM
  exec >/dev/null # The test starts now.
  while kill -0 "$group" 2>/dev/null; do
    pause $((RANDOM % most))
    kill -STOP -- "-$group" 2>/dev/null || break
    echo "$group" >>"$SHAKE_WORK/stalls"
    pause $((400 + RANDOM % 1101))
    kill -CONT -- "-$group" 2>/dev/null || break
    most=5000
  done
  rm -f "$SHAKE_WORK/stallers/$$"
}

case ${1:-} in
  --stall) stall "$2" "$3"; exit ;;
  --run) # nextest starts a test by this, as the leader of a process group.
    shift
    if [[ " $* " != *' --list '* ]]; then
      read -r seed _ < <(cksum <<<"$SHAKE_SEED ${*:2}")
      # The process that stalls the test is in its own session, and is not a child of the test. It
      # closes its output when it is ready, and the test then starts.
      : "$(setsid --fork "$0" --stall $$ "$seed" </dev/null 2>/dev/null)"
    fi
    exec "$@"
    ;;
esac

cd "$here/.."
runs=${SHAKE_RUNS:-20} first=${SHAKE_SEED:-1}
if [[ ! $runs,$first =~ ^[0-9]+,[0-9]+$ ]]; then
  echo "error: SHAKE_RUNS, SHAKE_SEED: expected numbers, found \"$runs\", \"$first\"" >&2
  exit 64
fi
case ${1:-} in
  '') filter='kind(lib) + kind(bin)' ;;
  *'('*) filter=$1 ;;
  *) filter="test(~$1)" ;;
esac
export PATH=$PWD/out/bin:$PATH:/usr/sbin:/sbin
nextest=$(tests/nextest.sh)
triple=$(sed -n 's/^target = "\(.*\)"$/\1/p' .cargo/config.toml)
runner=CARGO_TARGET_$(tr a-z- A-Z_ <<<"$triple")_RUNNER
cores=$(nproc) running='' loops=() SHAKE_WORK=$(mktemp -d)
export SHAKE_WORK
mkdir "$SHAKE_WORK/stallers"
stop() {
  local staller
  if [ -n "$running" ]; then
    # nextest first ends its tests and then itself.
    kill -TERM "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
  fi
  for staller in "$SHAKE_WORK"/stallers/*; do
    if [ -e "$staller" ]; then kill "$(basename "$staller")" 2>/dev/null || true; fi
  done
  kill "${loops[@]}" 2>/dev/null || true
  rm -rf "$SHAKE_WORK"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$nextest" nextest list --workspace --list-type binaries-only --message-format json \
  >"$SHAKE_WORK/binaries.json"
cargo metadata --format-version 1 --filter-platform "$triple" >"$SHAKE_WORK/metadata.json"

# Run the tests once, with the output in $SHAKE_WORK/log:
#   run_once THREADS
run_once() {
  local status=0
  # In a process group of its own: otherwise this background job and its tests would ignore
  # interrupts.
  set -m
  "$nextest" nextest run --retries 0 --no-fail-fast \
    --binaries-metadata "$SHAKE_WORK/binaries.json" --cargo-metadata "$SHAKE_WORK/metadata.json" \
    --color never --show-progress none --status-level none --final-status-level none \
    --success-output never --failure-output final --test-threads "$1" -E "$filter" \
    >"$SHAKE_WORK/log" 2>&1 </dev/null &
  running=$!
  set +m
  wait "$running" || status=$?
  running=
  # Status 100 means that tests failed, any other status that no test ran.
  if [ "$status" = 0 ] || [ "$status" = 100 ]; then return "$status"; fi
  echo "error: nextest ended with status $status for the filter $filter:" >&2
  cat "$SHAKE_WORK/log" >&2
  exit "$status"
}

# Make all runs of one kind, stalls or load:
#   shake KIND THREADS
failed_runs=0
shake() {
  local number failed=0 started=$SECONDS
  : >"$SHAKE_WORK/stalls"
  for ((number = first; number < first + runs; number++)); do
    export SHAKE_SEED=$number
    if run_once "$2"; then continue; fi
    failed=$((failed + 1))
    echo "$1: failed with SHAKE_SEED=$number:"
    sed -n '/ Summary /,$p' "$SHAKE_WORK/log"
  done
  printf '%s: %d runs passed, %d failed, in %d s' \
    "$1" $((runs - failed)) "$failed" $((SECONDS - started))
  if [ "$1" = stalls ]; then printf ', %d stalls' "$(wc -l <"$SHAKE_WORK/stalls")"; fi
  echo
  failed_runs=$((failed_runs + failed))
}

echo "shaking $filter: $runs runs of each kind, SHAKE_SEED=$first"
export "$runner=$here/shake.sh --run"
# A stopped test uses no CPU, so more tests run in parallel.
shake stalls $((4 * cores))
unset "$runner"
for ((at = 0; at < 2 * cores; at++)); do
  (while :; do :; done) & loops+=($!)
done
shake load "$cores"
[ "$failed_runs" = 0 ]
