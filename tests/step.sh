#!/usr/bin/env bash
# Run one step of a test run and record its time:
#   step.sh NAME COMMAND…    run COMMAND; append its minutes and CPU seconds to out/steps
#   step.sh begin            delete the recorded steps of the previous run
#   step.sh table            print the recorded steps
set -euo pipefail
steps=$(dirname "$(readlink -f "$0")")/../out/steps
mkdir -p "$(dirname "$steps")"

case ${1:?usage: step.sh NAME COMMAND… | begin | table} in
  begin) rm -f "$steps" ;;
  table)
    if [ -e "$steps" ]; then
      awk -F '\t' '
        { printf "step %-28s %6.1f min %8.0f CPU s%s\n", $1, $2 / 60, $3, $4 ? "  failed" : ""
          minutes += $2 / 60; cpu += $3 }
        END { printf "step %-28s %6.1f min %8.0f CPU s\n", "all", minutes, cpu }' "$steps"
    fi
    ;;
  *)
    name=$1 status=0
    shift
    begun=$SECONDS
    "$@" || status=$?
    # CPU time of all children that have ended. `times` in a subshell would report the children of
    # that subshell.
    times >"$steps.times"
    cpu=$(awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }' "$steps.times")
    printf '%s\t%s\t%s\t%s\n' "$name" $((SECONDS - begun)) "$cpu" "${status#0}" >>"$steps"
    exit "$status"
    ;;
esac
