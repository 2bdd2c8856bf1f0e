#!/usr/bin/env bash
# Sourced by every build.sh of peers and suites: what they make is kept in
# ${TINBOX_CACHE:-~/.cache/tinbox}, by content hash of what it is made from, and made once.
set -euo pipefail

# The cache's folder NAME for what standard input says is pinned; made and printed:
#   cache_folder NAME
cache_folder() {
  local folder
  folder=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/$1/$(sha256sum | cut -c1-16)
  mkdir -p "$folder"
  echo "$folder"
}

# Print FILE, after `COMMAND… FILE.part` has made it where it is not there yet. Whoever comes second
# waits for the first to have made it:
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

# End with a hint when Go is missing: as new a one as PINS (go.mod) asks for builds WHAT:
#   require_go WHAT [PINS]
require_go() {
  command -v go >/dev/null && return
  echo "error: cannot build $1: Go is missing" >&2
  echo "hint: install Go $(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' "${2:-go.mod}") or newer" >&2
  exit 1
}

# The linker's flags for a program of Kubernetes' that should say it is VERSION:
#   kubernetes_version v1.35.3
kubernetes_version() {
  local minor=${1#v1.} package
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    echo "-X $package.gitVersion=$1 -X $package.gitMajor=1" \
      "-X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
  done
}
