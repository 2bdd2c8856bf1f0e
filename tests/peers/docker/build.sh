#!/usr/bin/env bash
# Unpack Debian's Docker engine, with what it runs containers by, and print the folder of its
# programs. Nothing is installed, and no daemon of this machine is touched.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

packages=(docker.io containerd runc tini)

unpack() (
  part=$1
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  if ! (cd "$folder" && apt-get download "${packages[@]}" >apt.log 2>&1); then
    cat "$folder/apt.log" >&2
    echo "error: cannot fetch Debian's ${packages[*]}" >&2
    echo "hint: apt-get update" >&2
    exit 1
  fi
  mkdir -p "$part/unpacked" "$part/bin"
  for package in "$folder"/*.deb; do dpkg-deb -x "$package" "$part/unpacked"; done
  cp "$part"/unpacked/usr/bin/{containerd,containerd-shim-runc-v2,docker,docker-init} "$part/bin"
  cp "$part/unpacked/usr/sbin/dockerd" "$part/bin"
  cp "$part/unpacked/usr/sbin/runc" "$part/bin/runc.real"
  rm -r "$part/unpacked"
  install -m 0755 runc.sh "$part/bin/runc"
)

out=$(cat build.sh runc.sh | cache_folder docker)
cached "$out/docker" "docker: unpacking Debian's packages (once; 65 MB)" unpack >/dev/null
echo "$out/docker/bin"
