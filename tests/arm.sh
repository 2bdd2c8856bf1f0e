#!/usr/bin/env bash
# Boot the image for boxes with ARM processors in an emulator, and wait until the supervisor is
# ready.
#
# BUILD=1 compiles missing parts: the kernel (20 CPU minutes, once) and the program (as many).
# Without BUILD=1 the program of the last build is used. If a part is missing, the script prints
# SKIPPED, tests nothing and ends with status 0.
#
# TINBOX_CACHE    cache folder (~/.cache/tinbox)
# TINBOX_TARGET   build folder of the program (out/aarch64/target)
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
export TINBOX_ARCH=aarch64
# Maximum seconds: firmware, boot loader, kernel and an unoptimized program are slow in an emulator,
# beside other tests.
patience=900
ready='tinboxd is ready'

if [ -z "${BUILD:-}" ]; then
  missing=()
  has() {
    local what=$1
    shift
    CACHED=1 "$@" >/dev/null 2>&1 || missing+=("$what")
  }
  has "its kernel" image/kernel/build.sh
  has "its program" image/aarch64/programs.sh
  has "GRUB" image/aarch64/parts.sh loader
  has "a compiler" image/aarch64/parts.sh toolchain
  has "the machine" image/aarch64/parts.sh machine
  if [ ${#missing[@]} -gt 0 ]; then
    printf -v list '%s, ' "${missing[@]}"
    echo "SKIPPED: the image for ARM was not booted: the cache has not ${list%, }" >&2
    echo "hint: BUILD=1 tests/arm.sh makes it (some 40 CPU minutes, once)" >&2
    exit 0
  fi
fi

if [ -n "${BUILD:-}" ]; then image/aarch64/programs.sh >/dev/null; else export CACHED=1; fi
machine=$(image/aarch64/parts.sh machine)
image=$(image/dev.sh out/image-aarch64)
folder=$(mktemp -d)
qemu=
finish() {
  if [ -n "$qemu" ]; then kill "$qemu" 2>/dev/null || true; fi
  rm -rf "$folder"
}
trap finish EXIT
cp --sparse=always "$image" "$folder/disk"
cp "$machine/usr/share/AAVMF/AAVMF_VARS.fd" "$folder/variables"
: >"$folder/serial"
"$machine/bin/qemu-system-aarch64" -L /usr/share/qemu -machine virt -cpu cortex-a72 -smp 2 -m 1024 \
  -nodefaults -display none -no-reboot -serial "file:$folder/serial" \
  -drive "if=pflash,format=raw,readonly=on,file=$machine/usr/share/AAVMF/AAVMF_CODE.fd" \
  -drive "if=pflash,format=raw,file=$folder/variables" \
  -drive "if=none,id=disk,format=raw,file=$folder/disk" \
  -device nvme,drive=disk,serial=tinbox,bootindex=1 -device i6300esb \
  -netdev user,id=net,restrict=on -device virtio-net-pci,netdev=net,romfile= 2>"$folder/qemu" &
qemu=$!
started=$SECONDS
# Waits until the line is printed, QEMU has ended, or the time is up.
line=$(grep -a -m 1 "$ready" \
  < <(exec timeout "$patience" tail -n +1 --pid="$qemu" -f "$folder/serial" 2>/dev/null) || true)
if [ -z "$line" ]; then
  echo "arm: the image did not come up in $((SECONDS - started)) s; the end of its output:" >&2
  tail -n 40 "$folder/serial" "$folder/qemu" >&2
  exit 1
fi
echo "it boots on ARM in $((SECONDS - started)) s: $(tr -d '\r' <<<"$line")"
