#!/usr/bin/env bash
# Build the box's image with Buildroot from Debian's packages, and boot it. This tests recipes,
# configuration, assembly and boot; programs and kernel are the ones that are built already.
#
# BUILDROOT=DIR is a checkout of the tag in image/buildroot.pin; the default is the checkout in the
# cache. Without a checkout, the script prints SKIPPED, tests nothing and ends with status 0.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. image/buildroot.pin
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/buildroot
export BUILDROOT=${BUILDROOT:-$cache/$BUILDROOT_VERSION}
if [ ! -e "$BUILDROOT/Makefile" ]; then
  echo "SKIPPED: the image by Buildroot was not built: there is no checkout of Buildroot" >&2
  echo "hint: git clone --branch $BUILDROOT_VERSION --depth 1" \
    "https://github.com/buildroot/buildroot $BUILDROOT" >&2
  exit 0
fi
programs=$(readlink -f "${CARGO_TARGET_DIR:-target}")/programs
TINBOX_KERNEL=$(KERNEL=own image/kernel/build.sh)
export TINBOX_KERNEL
OFFLINE=1 TINBOX_PROGRAMS=${TINBOX_PROGRAMS-$programs} image/buildroot.sh out/release
for image in out/release/*.img; do "$programs/boot-image" "$image"; done
