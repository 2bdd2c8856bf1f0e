#!/usr/bin/env bash
# Long tests: the random tests of `make test` with fresh seeds and large counts, then tests that
# take too long for every change. Takes hours, and needs root as `make test` does.
#
#   soak.sh                       every step, after `make artifacts`
#   SOAK_ONLY="sim fuzz" soak.sh  these steps
#
# Every step runs, even after a failed step; out/soak/STEP.log has its output. At the end a table
# and one count are printed. Seeds are random, and are printed at the start and at the end. A seed
# in the environment is used instead, so that a failure can be repeated. Every count below can be
# set in the same way.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

steps=(crash sim merge protobuf template pattern kubectl proptest emulated power-cuts boot-matrix
  buildroot arm fuzz bench bench-api bench-boot bench-imaging bench-agents bench-box shake
  shake-suites)
seeds=(CRASH_SEED STORE_SEED SIM_SEED MERGE_SEED PROTOBUF_SEED TEMPLATE_SEED PATTERN_SEED
  PROPTEST_RNG_SEED POWER_CUTS_SEED FUZZ_SEED SHAKE_SEED)

SIM_RUNS=${SIM_RUNS:-20} SIM_RACKS=${SIM_RACKS:-50} SIM_FLEETS=${SIM_FLEETS:-20}
SIM_AGENTS=${SIM_AGENTS:-5000}
MERGE_LIVES=${MERGE_LIVES:-8000} PROTOBUF_OF_EACH=${PROTOBUF_OF_EACH:-1200}
TEMPLATE_CASES=${TEMPLATE_CASES:-1000000} PATTERN_CASES=${PATTERN_CASES:-100000}
PROPTEST_RUNS=${PROPTEST_RUNS:-10} CRASH_RUNS=${CRASH_RUNS:-10} POWER_CUTS=${POWER_CUTS:-100}
KUBECTL_VERSIONS=${KUBECTL_VERSIONS:-all} BOOT_MATRIX=${BOOT_MATRIX:-all}
FUZZ_SECS=${FUZZ_SECS:-300} SHAKE_RUNS=${SHAKE_RUNS:-20} SHAKE_SUITE_RUNS=${SHAKE_SUITE_RUNS:-1}
# The nextest profile `soak` has no limit on the time of a test.
export NEXTEST_PROFILE=${NEXTEST_PROFILE:-soak}

if [ "$(id -u)" != 0 ]; then
  echo "error: the tests need root: they make network namespaces, taps and loop devices" >&2
  echo "hint: sudo make soak" >&2
  exit 1
fi
chosen=("${steps[@]}")
if [ -n "${SOAK_ONLY:-}" ]; then read -ra chosen <<<"$SOAK_ONLY"; fi
for step in "${chosen[@]}"; do
  if [[ " ${steps[*]} " != *" $step "* ]]; then
    echo "error: SOAK_ONLY: \"$step\" is not a step; the steps are ${steps[*]}" >&2
    exit 64
  fi
done
export PATH=$PWD/out/bin:$PATH:/usr/sbin:/sbin
# Some steps run `make` themselves.
unset MAKEFLAGS MAKELEVEL
nextest=$(tests/nextest.sh)
programs=${CARGO_TARGET_DIR:-target}/programs logs=out/soak
rm -rf "$logs"
mkdir -p "$logs"

for seed in "${seeds[@]}"; do
  declare "$seed=${!seed:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"
done
# Each step exports only its own variables. The tests of the step `shake` keep their fixed seeds and
# small counts.
export -n "${seeds[@]}" SIM_RUNS MERGE_LIVES PROTOBUF_OF_EACH TEMPLATE_CASES PATTERN_CASES \
  POWER_CUTS KUBECTL_VERSIONS BOOT_MATRIX
print_seeds() {
  local seed
  printf 'seeds:'
  for seed in "${seeds[@]}"; do printf ' %s=%s' "$seed" "${!seed}"; done
  echo
}

# Runs the tests of a filter expression, from binaries that the first call builds for all steps:
#   tests FILTER
tests() {
  local built=$logs/binaries.json
  if [ ! -e "$built" ]; then
    # One attempt: a failed compilation would fail again for the next seed.
    if [ -e "$built.part" ] || ! "$nextest" nextest list --workspace --list-type binaries-only \
      --message-format json >"$built.part"; then
      echo "error: the tests do not compile" >&2
      return 1
    fi
    mv "$built.part" "$built"
  fi
  "$nextest" nextest run --binaries-metadata "$built" --no-fail-fast --retries 0 --color never \
    --show-progress none --status-level slow --success-output final -E "$1"
}

# Runs a command with several seeds that follow one another, and fails when one run failed:
#   with_seeds VARIABLE COUNT COMMAND…
with_seeds() {
  local name=$1 first=${!1} count=$2 seed failed=0
  shift 2
  for ((seed = first; seed < first + count; seed++)); do
    echo "$name=$seed"
    export "$name=$seed"
    "$@" || failed=$((failed + 1))
  done
  [ "$failed" = 0 ]
}

step_crash() {
  local status=0
  export STORE_SEED
  tests 'package(store) & test(/power::/)' || status=1
  with_seeds CRASH_SEED "$CRASH_RUNS" tests 'binary(crash)' || status=1
  return "$status"
}
step_sim() {
  local sim=$programs/tinbox-sim mode faults status=0
  export SIM_SEED SIM_RUNS
  tests 'package(sim)' || status=1
  for mode in pool reserved proxy; do
    for faults in rough storm; do
      "$sim" --machines 2000 --runs "$SIM_RACKS" --mode "$mode" --faults "$faults" || status=1
    done
  done
  for faults in rough storm outages; do
    "$sim" --machines 200 --runs "$SIM_FLEETS" --fleet "$faults" || status=1
  done
  "$sim" --machines "$SIM_AGENTS" --fleet outages || status=1
  return "$status"
}
step_merge() {
  export MERGE_SEED MERGE_LIVES
  tests 'package(peers) & test(/^merge::/)'
}
step_protobuf() {
  export PROTOBUF_SEED PROTOBUF_OF_EACH
  tests 'package(peers) & test(/^protobuf::/)'
}
step_template() {
  export TEMPLATE_SEED TEMPLATE_CASES
  tests 'package(peers) & test(/^template::/)'
}
step_pattern() {
  if ! tests/peers/pattern-oracle/build.sh; then
    echo "SKIPPED: random patterns were not compared: Quamina cannot be built here"
    return 0
  fi
  export PATTERN_SEED PATTERN_CASES
  tests 'package(peers) & test(/^pattern::/)'
}
# AGAIN=1: the commands run against the real servers too, instead of the cached outputs.
step_kubectl() {
  export KUBECTL_VERSIONS AGAIN=1
  tests 'package(peers) & test(/^comparison::/)'
}
# Several seeds, not PROPTEST_CASES: that would give every test the same number of cases, and tests
# have from 48 to 4,000.
step_proptest() {
  local packages
  packages=$(git grep -l '^proptest.workspace' -- '*/Cargo.toml' \
    | xargs sed -sn '/^\[package\]/,/^$/s/^name = "\(.*\)"/package(=\1)/p' | paste -sd+)
  with_seeds PROPTEST_RNG_SEED "$PROPTEST_RUNS" \
    tests "(kind(lib) + kind(bin) + binary(pictures)) & ($packages)"
}
# All tests with emulated machines. `make test` leaves out those whose behavior the simulator or the
# box in a container tests too.
step_emulated() { tests 'binary(firmware) + binary(scenarios)'; }
step_power_cuts() {
  export POWER_CUTS_SEED POWER_CUTS
  tests 'package(firmware) & test(/^power_cuts::/)'
}
step_boot_matrix() {
  export BOOT_MATRIX
  tests 'binary(boot_matrix)'
}
# KERNEL_DISPLAY=1: with the display drivers in the kernel, as in released images.
step_buildroot() { KERNEL_DISPLAY=1 tests/buildroot.sh; }
step_arm() { BUILD=1 tests/arm.sh; }
step_fuzz() { FUZZ_SEED=$FUZZ_SEED fuzz/run.sh "$FUZZ_SECS"; }
step_bench() { make bench; }
step_bench_api() { make bench-api; }
step_bench_boot() { make bench-boot; }
step_bench_imaging() { make bench-imaging; }
step_bench_agents() { make bench-agents; }
step_bench_box() { make bench-box; }
step_shake() { SHAKE_SEED=$SHAKE_SEED SHAKE_RUNS=$SHAKE_RUNS tests/shake.sh; }
step_shake_suites() {
  SHAKE_SEED=$SHAKE_SEED SHAKE_RUNS=$SHAKE_SUITE_RUNS tests/shake.sh 'kind(test)'
}

# Each step runs in a process group of its own, so that an interrupt of this script ends the whole
# group.
running=
stop() { if [ -n "$running" ]; then kill -TERM -- "-$running" 2>/dev/null || true; fi; }
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

print_seeds
table='' passed=0 failed=0 skipped=0
for step in "${chosen[@]}"; do
  log=$logs/$step.log started=$SECONDS status=0
  echo "$step: begins at $(date +%H:%M), output in $log"
  set -m
  (set -e; "step_${step//-/_}") >"$log" 2>&1 </dev/null &
  running=$!
  set +m
  wait "$running" || status=$?
  running=
  if [ "$status" != 0 ]; then
    result=FAILED failed=$((failed + 1))
    echo "$step: failed; the end of $log:"
    tail -n 60 "$log"
  elif grep -q '^SKIPPED' "$log"; then
    result=skipped skipped=$((skipped + 1))
    grep '^SKIPPED' "$log"
  else
    result=passed passed=$((passed + 1))
  fi
  minutes=$(((SECONDS - started + 30) / 60))
  printf -v line '%-14s %5d min  %s\n' "$step" "$minutes" "$result"
  table+=$line
done
print_seeds
printf '%s' "$table"
count="$passed steps passed, $failed failed"
if [ "$skipped" != 0 ]; then count+=", $skipped skipped"; fi
echo "$count"
[ "$failed" = 0 ]
