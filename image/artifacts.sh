#!/usr/bin/env bash
# Assemble everything the box serves to machines:
#
#   artifacts.sh FOLDER [loaders] [agent] [tiny] [debian]      all four when none is named
#
#   FOLDER/ipxe/      undionly.kpxe snponly.efi ipxe.efi
#   FOLDER/agent/     vmlinuz-x86_64 initramfs-x86_64 agent-x86_64.efi linuxx64.efi.stub
#                     tools-x86_64.squashfs (see tools/build.sh)
#   FOLDER/iso/       agent-x86_64.iso
#   FOLDER/images/    tiny.raw.zst tiny.raw.gz tiny.raw.xz debian.raw.zst, a .sha256 beside each
#
# The programs come from TINBOX_BIN (target/programs) and are built when they are not there.
# Kernels, tools and disks come from the cache (see kernel/build.sh, tools/build.sh, os/build.sh,
# os/tiny.sh).
# KERNEL=stock takes Debian's kernel. Disk images need root the first time.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
out=${1:?usage: artifacts.sh FOLDER [loaders] [agent] [tiny] [debian]}
shift
if [ $# = 0 ]; then set -- loaders agent tiny debian; fi
# The machines' processor, whatever the box's is.
export TINBOX_ARCH=x86_64
bin=${TINBOX_BIN:-${CARGO_TARGET_DIR:-$here/../target}/programs}

# share FILE… FOLDER : the same file under a second name where the disk allows it, else a copy.
share() {
  local folder=${!#} file target
  for file in "${@:1:$#-1}"; do
    target=$folder/$(basename "$file")
    if [ "$file" -ef "$target" ]; then continue; fi
    ln -f "$file" "$target" 2>/dev/null || cp -f "$file" "$target"
  done
}

agent() {
  local kernel modules tools
  if [ ! -x "$bin/tinbox-agent" ] || [ ! -x "$bin/tinbox-image" ]; then
    "$here/../tests/programs.sh"
  fi
  . "$here/kernel/files.sh"
  kernel_files
  mkdir -p "$out/agent"
  install -m 644 "$kernel" "$out/agent/.vmlinuz.part"
  mv "$out/agent/.vmlinuz.part" "$out/agent/vmlinuz-x86_64"
  # Before the initramfs that names it: an agent of before finds another sum, and says so.
  tools=$("$here/tools/build.sh")
  share "$tools" "$out/agent"
  "$bin/tinbox-image" agent --agent "$bin/tinbox-agent" ${modules:+--modules "$modules"} \
    --tools "$tools" --out "$out/agent/initramfs-x86_64"
  install -m 644 /usr/lib/systemd/boot/efi/linuxx64.efi.stub "$out/agent/"
  "$bin/tinbox-image" media --artifacts "$out"
  # Drivers as modules are outside the budget; our own kernel is what it speaks of.
  if [ -z "$modules" ]; then
    "$bin/tinbox-image" budget --kernel "$out/agent/vmlinuz-x86_64" \
      --initramfs "$out/agent/initramfs-x86_64" >&2
  fi
}

tiny() {
  local made
  made=$("$here/os/tiny.sh")
  mkdir -p "$out/images"
  share "$made"/tiny.raw.* "$out/images"
}

debian() {
  local made
  made=$("$here/os/build.sh")
  mkdir -p "$out/images"
  share "$made" "$made.sha256" "${made%.raw.zst}.manifest" "$out/images"
}

for part; do
  case $part in
    loaders) "$here/ipxe.sh" "$out/ipxe" ;;
    agent | tiny | debian) "$part" ;;
    *) echo "image: no part is called $part" >&2; exit 2 ;;
  esac
done
