#!/usr/bin/env bash
# Fuzz every parser of foreign bytes for a bounded time.
#
#   run.sh [SECONDS]          each target for so long (10), from the seeds and earlier corpora
#   run.sh SECONDS TARGET...  only these
#
# FUZZ_SEED    seed of libFuzzer's choices (1)
#
# Starts from seeds/TARGET and what was found before; words/TARGET has what a language is made of.
# Stable Rust; needs g++. Builds in fuzz/target, keeps the growing corpora in fuzz/target/corpus and
# an input that breaks something in fuzz/target/found/TARGET: run the target's program on that file
# to see it again. Ends with one count; fails when anything was found.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

seconds=${1:-10} seed=${FUZZ_SEED:-1}
shift || true
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for file in fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi
# Coverage: what LLVM's sancov pass can do needs no nightly flag, only its names. These flags
# replace those of the root's config: libFuzzer looks up the C library's memcmp, which must be
# dynamic then. The target is named there, which spares build scripts and macros.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares"
cargo build --release --bins
programs=target/x86_64-unknown-linux-gnu/release

total=0 broken=()
for target in "${targets[@]}"; do
  words=()
  [ ! -f "words/$target" ] || words=("-dict=words/$target")
  corpus=target/corpus/$target found=target/found/$target log=target/$target.log
  mkdir -p "$corpus" "$found"
  status=ok
  "$programs/$target" -seed="$seed" -max_total_time="$seconds" -max_len=8192 -timeout=10 \
    -rss_limit_mb=2048 "${words[@]}" -artifact_prefix="$found/" -print_final_stats=1 \
    "$corpus" "seeds/$target" >"$log" 2>&1 ||
    { status=BROKEN; broken+=("$target"); }
  read -r runs edges < <(awk '
    { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
    /^#[0-9]/ { runs = substr($1, 2) }
    /^stat::number_of_executed_units:/ { runs = $2 }
    END { print runs + 0, edges + 0 }' "$log")
  total=$((total + runs))
  printf '%-10s %-6s %9s runs %6s edges %5s inputs\n' \
    "$target" "$status" "$runs" "$edges" "$(find "$corpus" -type f | wc -l)"
  [ "$status" = ok ] || grep -E -A2 'panicked|ERROR|Test unit written' "$log" | head -n 20 || true
done
echo "FUZZ_SEED=$seed"
printf '%d targets, %d runs, %d broken\n' "${#targets[@]}" "$total" "${#broken[@]}"
[ ${#broken[@]} = 0 ]
