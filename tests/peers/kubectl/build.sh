#!/usr/bin/env bash
# Build the stock kubectl from its Go modules and print its path; cached by content hash in
# ${TINBOX_CACHE:-~/.cache/tinbox}/kubectl. For machines that have none: Debian's is too old.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/kubectl
hash=$(cat "$here"/{build.sh,go.mod,go.sum,main.go} | sha256sum | cut -c1-16)
out=$cache/$hash
if [ -x "$out/kubectl" ]; then echo "$out/kubectl"; exit 0; fi
if ! command -v go >/dev/null; then
  echo "error: kubectl is missing, and Go to build it" >&2
  echo "hint: put kubectl 1.24 or newer into PATH, or install Go 1.23 or newer" >&2
  exit 1
fi
echo "kubectl: building it from its Go modules (once; a few CPU minutes)" >&2
mkdir -p "$out"
version=$(sed -n 's/.*k8s.io\/kubectl v0\.\(.*\)/1.\1/p' "$here/go.mod")
symbols=k8s.io/component-base/version
minor=${version#1.}
(cd "$here" && CGO_ENABLED=0 go build -trimpath -o "$out/kubectl.part" -ldflags "-s -w \
  -X $symbols.gitVersion=v$version -X $symbols.gitMajor=1 -X $symbols.gitMinor=${minor%%.*}" .)
mv "$out/kubectl.part" "$out/kubectl"
echo "$out/kubectl"
