#!/usr/bin/env bash
# From what Buildroot built to what is published: post-image.sh IMAGES ARCH
#
# The assembly is the one of image/dev.sh; only where the parts come from differs. From Buildroot's
# environment: HOST_DIR, TARGET_DIR. From image/buildroot.sh:
#
#   TINBOX_KEY          the key that signs
#   TINBOX_OUT          where the published files go (IMAGES)
#   TINBOX_KERNEL       a kernel instead of Buildroot's
#   TINBOX_TOOLS        the agent's tools image (image/tools/build.sh)
#   TINBOX_STUB         systemd's EFI stub
#   TINBOX_ARTIFACTS    for ARM, instead of these two: what the x86_64 image serves, with its kernel
#   TINBOX_COMPONENTS   what else the image is made of (image/components.sh)
#   TINBOX_QUICK        anything, for an image that is not published
#   TINBOX_IMAGE        the assembling program instead of HOST_DIR's
set -euo pipefail
images=${1:?usage: post-image.sh IMAGES ARCH} arch=${2:?usage: post-image.sh IMAGES ARCH}
image=$(readlink -f "$(dirname "$(readlink -f "$0")")/../../../image")
case $arch in
  x86_64) kernel=bzImage loader=bootx64.efi needs=(TINBOX_TOOLS TINBOX_STUB) ;;
  aarch64) kernel=Image loader=bootaa64.efi needs=(TINBOX_ARTIFACTS) ;;
  *) echo "post-image: no box has a processor called $arch" >&2; exit 64 ;;
esac
for name in TINBOX_KEY TINBOX_COMPONENTS "${needs[@]}"; do
  if [ -z "${!name:-}" ]; then
    echo "post-image: $name is not set" >&2
    echo "hint: run make image, which sets it" >&2
    exit 1
  fi
done
kernel=${TINBOX_KERNEL:-$images/$kernel}
program=${TINBOX_IMAGE:-$HOST_DIR/bin/tinbox-image}
artifacts=${TINBOX_ARTIFACTS:-$images/artifacts}
if [ "$arch" = x86_64 ]; then
  artifacts=$images/artifacts
  mkdir -p "$artifacts/agent"
  install -m 644 "$TINBOX_TOOLS" "$TINBOX_STUB" "$artifacts/agent/"
  install -m 644 "$kernel" "$artifacts/agent/vmlinuz-$arch"
  "$program" agent --agent "$TARGET_DIR/usr/bin/tinbox-agent" --tools "$TINBOX_TOOLS" \
    --out "$artifacts/agent/initramfs-$arch"
  "$program" budget --kernel "$kernel" --initramfs "$artifacts/agent/initramfs-$arch"
fi
if [ "$arch" = aarch64 ] && ! command -v aarch64-linux-gnu-strip >/dev/null; then
  # The toolchain's own, under the name that Debian gives it.
  names=$(mktemp -d)
  trap 'rm -rf "$names"' EXIT
  strips=("$HOST_DIR"/bin/aarch64-*-strip)
  ln -s "${strips[0]}" "$names/aarch64-linux-gnu-strip"
  PATH=$names:$PATH
fi
"$program" box --arch "$arch" --kernel "$kernel" --grub "$images/efi-part/EFI/BOOT/$loader" \
  --tinboxd "$TARGET_DIR/usr/bin/tinboxd" \
  --artifacts "$artifacts" --overlay "$image/root" --key "$TINBOX_KEY" \
  ${TINBOX_QUICK:+--quick} --publish "$TINBOX_COMPONENTS" --out "${TINBOX_OUT:-$images}"
