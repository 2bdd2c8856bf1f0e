#!/usr/bin/env bash
# Bring what `make bench-imaging` measures beside, as far as it is missing (Debian packages), and
# the image that is written: 4 GiB, half of it a Debian file system, the rest empty. It does not
# boot; what counts is that its bytes are those of an operating system. Prints a folder, with:
#
#   images/image.raw  image.raw.zst  image.raw.bmap  image.qcow2 (clusters in zstd)
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/../cached.sh"

export PATH=$PATH:/usr/sbin:/sbin
missing=()
for need in bmap-tools:bmaptool time:/usr/bin/time curl:curl zstd:zstd qemu-utils:qemu-img; do
  command -v "${need#*:}" >/dev/null || missing+=("${need%%:*}")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >/dev/null
fi

# About 2 GiB unpacked: kernels, compilers and their libraries, much of which hardly packs.
packages=(
  apt bash coreutils systemd udev openssh-server cloud-init git vim python3 perl
  linux-image-amd64 firmware-linux-free gcc g++ clang golang default-jdk-headless
)
suite=bookworm
mib=4096
folder=$({ printf '%s\n' "${packages[@]}" $suite $mib; cat "$0"; } | cache_folder imaging-bench)

make_image() {
  local part=$1 options image
  rm -rf --one-file-system "$part"
  mkdir "$part"
  image=$part/image.raw
  options=$part/apt.conf
  (umask 077; "$here/../../image/os/sources.sh" --options >"$options")
  # Unpacked and not configured: nothing of it will ever run.
  "$here/../../image/os/sources.sh" $suite | mmdebstrap --quiet --mode=root --variant=extract \
    --format=directory --aptopt="$options" \
    --include="$(IFS=,; echo "${packages[*]}")" $suite "$part/root" - >&2
  truncate -s ${mib}M "$image"
  echo 'start=1MiB, type=L' | sfdisk --quiet --label gpt "$image" >&2
  mkfs.ext4 -q -d "$part/root" -E offset=1048576 "$image" $((mib - 2))M >&2
  rm -rf --one-file-system "$part/root" "$options"
  zstd -q -3 -T2 "$image" -o "$image.zst"
  bmaptool --quiet create -o "$image.bmap" "$image"
  qemu-img convert -c -W -O qcow2 -o compression_type=zstd "$image" "$part/image.qcow2"
}
cached "$folder/images" "setup: making an image of 4 GiB (once; minutes)" make_image >/dev/null
echo "$folder"
