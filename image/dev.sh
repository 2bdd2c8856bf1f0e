#!/usr/bin/env bash
# Make the box's disk image from what cargo built already, in seconds, and print its path:
#
#   dev.sh [FOLDER]     FOLDER/tinbox-<version>-x86_64.img, .img.bmap, .update   (out/image)
#   TINBOX_ARCH=aarch64 the same for a box with an ARM processor, by a cross compiler (aarch64/). It
#                       serves what every box serves: the agent OS of x86 machines
#
# Partition table, boot volume and overlay are those of the released image. The programs are cargo's
# own of this checkout, the kernel has no drivers of Intel graphics, and everything is compressed
# less. The kernel skips its timer check (no_timer_check), which fails in QEMU on a busy computer; a
# released image keeps the check. The update bundle, and what the box takes for one, are signed with
# a key made here and kept in FOLDER/dev.key.
#
# The programs come from TINBOX_BIN (target/programs), what the box serves from
# TINBOX_ARTIFACTS (out/artifacts); each is built when it is not there. The kernel is the box's own:
# Debian's cannot mount the root. For updates that are to be tried, TINBOX_RELEASE is another
# version, TINBOX_TINBOXD another program in the place of this one, and TINBOX_BESIDE one beside it.
# TINBOX_PUBLISH=COMPONENTS packs all as a release does, for minutes; see components.sh.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
top=$here/..
out=${1:-$top/out/image}
target=${CARGO_TARGET_DIR:-$top/target}
export TINBOX_BIN=${TINBOX_BIN:-$target/programs}
artifacts=${TINBOX_ARTIFACTS:-$top/out/artifacts}

arch=${TINBOX_ARCH:-x86_64}
for program in tinboxd tinbox-agent tinbox-image; do
  if [ ! -x "$TINBOX_BIN/$program" ]; then
    "$top/tests/programs.sh"
    break
  fi
done
if [ ! -e "$artifacts/agent/initramfs-x86_64" ] || [ ! -e "$artifacts/ipxe/ipxe.efi" ]; then
  "$here/artifacts.sh" "$artifacts" loaders agent
fi
release=${TINBOX_RELEASE:-$(sed -n 's/^version = "\(.*\)"$/\1/p' "$top/Cargo.toml" | head -n 1)}
kernel=$(KERNEL=own KERNEL_DISPLAY=${TINBOX_PUBLISH:+1} "$here/kernel/build.sh")
programs=$TINBOX_BIN grub=/usr/lib/grub/x86_64-efi
if [ "$arch" = aarch64 ]; then
  programs=$("$here/aarch64/programs.sh")
  grub=$("$here/aarch64/parts.sh" loader)/usr/lib/grub/arm64-efi
  PATH=$("$here/aarch64/parts.sh" toolchain)/bin:$PATH
fi
packing=(--quick)
if [ -n "${TINBOX_PUBLISH:-}" ]; then packing=(--publish "$TINBOX_PUBLISH"); fi
mkdir -p "$out"
"$TINBOX_BIN/tinbox-image" key --out "$out/dev.key"
"$TINBOX_BIN/tinbox-image" box "${packing[@]}" --arch "$arch" \
  --kernel "$kernel" --release "$release" \
  --tinboxd "${TINBOX_TINBOXD:-$programs/tinboxd}" --grub-modules "$grub" \
  ${TINBOX_BESIDE:+--beside "$TINBOX_BESIDE"} \
  --artifacts "$artifacts" --overlay "$here/root" --key "$out/dev.key" --out "$out" >&2
readlink -f "$out/tinbox-$release-$arch.img"
