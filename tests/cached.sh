#!/usr/bin/env bash
# Sourced by every build.sh of peers and suites. Each program is built once and stored in
# ${TINBOX_CACHE:-~/.cache/tinbox}, under a hash of its sources.
set -euo pipefail

# Make and print the cache folder of NAME for the sources on standard input (the hash of this input
# is part of the path):
#   cache_folder NAME
cache_folder() {
  local folder
  folder=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/$1/$(sha256sum | cut -c1-16)
  mkdir -p "$folder"
  echo "$folder"
}

# Print FILE. If FILE does not exist, run `COMMAND… FILE.part` first, and print WORDS as a message.
# A second caller waits until the first has made the file:
#   cached FILE WORDS COMMAND…
cached() {
  local file=$1 words=$2 lock
  shift 2
  exec {lock}>"$file.lock"
  flock "$lock"
  if [ ! -e "$file" ]; then
    echo "$words" >&2
    "$@" "$file.part"
    mv "$file.part" "$file"
  fi
  exec {lock}>&-
  echo "$file"
}

# End with a hint when Go is missing. The hint names the Go version in PINS (go.mod) that WHAT
# needs:
#   require_go WHAT [PINS]
require_go() {
  command -v go >/dev/null && return
  echo "error: cannot build $1: Go is missing" >&2
  echo "hint: install Go $(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' "${2:-go.mod}") or newer" >&2
  exit 1
}

# Print the linker flags with which a program of Kubernetes reports VERSION as its own version:
#   kubernetes_version v1.35.3
kubernetes_version() {
  local minor=${1#v1.} package
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    echo "-X $package.gitVersion=$1 -X $package.gitMajor=1" \
      "-X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
  done
}
