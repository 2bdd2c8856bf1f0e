#!/usr/bin/env bash
# Build the box's image by Buildroot and leave what is published in FOLDER: buildroot.sh FOLDER
#
#   tinbox-<version>-x86_64.img.xz       write it to the box's disk
#                          .img.bmap     for bmaptool, which writes it faster
#                          .update       for a box that runs already
#                          .sbom.json    what it is made of
#   SHA256SUMS, SHA256SUMS.minisig       of all these
#
# BUILDROOT=DIR   a checkout of Buildroot at the tag of buildroot.pin; downloaded where none is
# OFFLINE=1       no sources but Debian's packages: compiler, host tools, GRUB and iPXE are its.
#                 Proves the recipes, the layout and the boot; publish the other kind
# KERNEL=cached   the kernel that kernel/build.sh keeps (the default with OFFLINE); KERNEL=build
#                 lets Buildroot compile it: 20 CPU minutes
# TINBOX_KERNEL=FILE  with KERNEL=cached, a kernel from elsewhere
# QUICK=1         our programs optimised less
# TINBOX_PROGRAMS=DIR  our programs as cargo built them before, for a test of everything else
# KEY=FILE        the key that signs, as `minisign -G -W` makes it; else one made here, in FOLDER
# TINBOX_ARCH=aarch64  for a box with an ARM processor. It serves what every box serves, the agent
#                 OS of x86 machines: build that image first, or TINBOX_ARTIFACTS=DIR has it
# TINBOX_CACHE    ~/.cache/tinbox: Buildroot, downloads and the toolchain made of Debian's packages
set -euo pipefail
image=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "$image/..")
out=$(readlink -m "${1:?usage: buildroot.sh FOLDER}")
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/buildroot
arch=${TINBOX_ARCH:-x86_64}
builds=${TINBOX_BUILD:-$top/out/buildroot}
build=$builds/$arch
defconfig=$top/buildroot-external/configs/tinbox_${arch}_defconfig
if [ ! -e "$defconfig" ]; then
  echo "image: no box has a processor called $arch" >&2
  exit 64
fi
. "$image/buildroot.pin"
offline=${OFFLINE:-}
KERNEL=${KERNEL:-${offline:+cached}}
export BR2_DL_DIR=${BR2_DL_DIR:-$cache/dl}

# Buildroot itself, downloaded once.
download() {
  local name=buildroot-$BUILDROOT_VERSION
  if [ -n "$offline" ]; then
    echo "image: OFFLINE=1 wants BUILDROOT=DIR, a checkout of Buildroot $BUILDROOT_VERSION" >&2
    echo "hint: git clone --branch $BUILDROOT_VERSION https://github.com/buildroot/buildroot" >&2
    exit 64
  fi
  mkdir -p "$cache"
  curl -fsSL -o "$cache/$name.part" "https://buildroot.org/downloads/$name.tar.xz"
  if ! sha256sum --quiet -c <<<"$BUILDROOT_SHA256  $cache/$name.part" >&2; then
    rm "$cache/$name.part"
    echo "image: the download of $name is not what image/buildroot.pin says" >&2
    exit 1
  fi
  rm -rf "$cache/$name.tree"
  mkdir "$cache/$name.tree"
  tar -C "$cache/$name.tree" --strip-components 1 -xJf "$cache/$name.part"
  mv "$cache/$name.tree" "$cache/$BUILDROOT_VERSION"
  rm "$cache/$name.part"
}

# The configuration with what replaces parts of it.
configuration() {
  local without='^$'
  if [ -n "$offline" ]; then
    without+='\|^BR2_TOOLCHAIN_EXTERNAL_BOOTLIN\|^BR2_DOWNLOAD_FORCE'
    without+='\|^BR2_LINUX_KERNEL_CUSTOM_VERSION'
  fi
  if [ "$KERNEL" = cached ]; then without+='\|^BR2_LINUX_KERNEL'; fi
  {
    cat "$defconfig"
    if [ -n "$offline" ]; then
      sed -e "s|@TOOLCHAIN@|$toolchain|; s|@SITE@|$build/site|; s|@OFFLINE@|$image/offline|" \
        -e "s|@TRIPLET@|$arch-linux-gnu|" "$image/offline/offline.fragment"
    fi
    if [ -n "${QUICK:-}" ]; then echo 'BR2_PACKAGE_TINBOX_QUICK=y'; fi
  } | sed "/$without/d"
}

# What Kconfig dropped of the configuration is a silent loss: say so and stop.
check_configuration() {
  local lost
  lost=$(grep '^BR2_' "$build.config" | grep -vxFf "$build/.config" || true)
  if [ -n "$lost" ]; then
    echo "image: Buildroot's configuration dropped these lines:" >&2
    echo "$lost" >&2
    exit 1
  fi
}

buildroot=${BUILDROOT:-$cache/$BUILDROOT_VERSION}
if [ ! -e "$buildroot/Makefile" ]; then
  if [ -n "${BUILDROOT:-}" ]; then
    echo "image: $buildroot is no checkout of Buildroot" >&2
    exit 64
  fi
  download
fi
found=$(sed -n 's/^export BR2_VERSION := //p' "$buildroot/Makefile")
if [ "$found" != "$BUILDROOT_VERSION" ]; then
  echo "image: $buildroot is Buildroot $found; image/buildroot.pin wants $BUILDROOT_VERSION" >&2
  exit 64
fi

mkdir -p "$out" "$build/site" "$BR2_DL_DIR"
cd "$top"
if [ -n "$offline" ]; then
  toolchain=$("$image/offline/toolchain.sh")
  target=${CARGO_TARGET_DIR:-$top/target}
  if [ ! -x "$target/programs/tinbox-image" ]; then tests/programs.sh; fi
  export TINBOX_IMAGE=$target/programs/tinbox-image
  export TINBOX_CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
  TINBOX_RUST=$(rustc --print sysroot)
  export TINBOX_RUST
  linux=$(apt-cache show --no-all-versions linux-source-6.12 | sed -n 's/^Version: //p')
  grub=$(dpkg-query -W -f '${Version}' grub-efi-amd64-bin)
  ipxe=$(dpkg-query -W -f '${Version}' ipxe)
  if [ "$arch" = aarch64 ]; then
    TINBOX_GRUB=$("$image/aarch64/parts.sh" loader)/usr/lib/grub/arm64-efi
    export TINBOX_GRUB PATH=$toolchain/bin:$PATH
    # The rustup of a machine without downloads knows its own processor only.
    TINBOX_PROGRAMS=${TINBOX_PROGRAMS:-$(PROFILE=release "$image/aarch64/programs.sh")}
    export TINBOX_PROGRAMS
  fi
else
  linux=$(sed -n 's/^BR2_LINUX_KERNEL_CUSTOM_VERSION_VALUE="\(.*\)"/\1/p' \
    "$defconfig")
  grub=$(sed -n 's/^GRUB2_VERSION = //p' "$buildroot/boot/grub2/grub2.mk")
  ipxe=$(sed -n 's/^TINBOX_IPXE_VERSION = //p' buildroot-external/package/tinbox-ipxe/*.mk)
fi
if [ "$KERNEL" = cached ]; then
  TINBOX_KERNEL=${TINBOX_KERNEL:-$(KERNEL=own KERNEL_DISPLAY=1 "$image/kernel/build.sh")}
  export TINBOX_KERNEL
fi
if [ -n "$offline" ] && [ "$KERNEL" != cached ]; then
  "$image/offline/kernel-source.sh" "$build/site"
fi
if [ "$arch" != x86_64 ]; then
  TINBOX_ARTIFACTS=${TINBOX_ARTIFACTS:-$builds/x86_64/images/artifacts}
  export TINBOX_ARTIFACTS
  for file in agent/vmlinuz-x86_64 agent/initramfs-x86_64 ipxe/ipxe.efi; do
    if [ ! -e "$TINBOX_ARTIFACTS/$file" ]; then
      echo "image: what the box serves is missing: $TINBOX_ARTIFACTS/$file" >&2
      echo "hint: build the image for x86_64 first, or name a TINBOX_ARTIFACTS folder" >&2
      exit 64
    fi
  done
fi
TINBOX_TOOLS=$("$image/tools/build.sh")
export TINBOX_TOOLS TINBOX_STUB=/usr/lib/systemd/boot/efi/linuxx64.efi.stub
export TINBOX_QUICK=${QUICK:-${TINBOX_PROGRAMS:+1}}
export TINBOX_OUT=$out TINBOX_COMPONENTS=$build/components
"$image/components.sh" "$linux" "$grub" "$ipxe" "${TINBOX_TOOLS%.squashfs}.manifest" \
  >"$TINBOX_COMPONENTS"
if [ -z "${KEY:-}" ]; then
  KEY=$out/dev.key
  cargo run --quiet --bin tinbox-image -- key --out "$KEY"
  echo "image: signed with a key made here, $KEY: for boxes of your own (KEY=FILE)" >&2
fi
TINBOX_KEY=$(readlink -f "$KEY")
export TINBOX_KEY
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)
export SOURCE_DATE_EPOCH

configuration >"$build.config"
external=$top/buildroot-external
make -s -C "$buildroot" O="$build" BR2_EXTERNAL="$external" BR2_DEFCONFIG="$build.config" defconfig
check_configuration
# Buildroot does not look whether the sources of a local package have changed.
rm -f "$build"/build/{host-,}tinbox-*/.stamp_{rsynced,built,installed,host_installed}
rm -f "$build"/build/tinbox-*/.stamp_{target,images}_installed
# Buildroot's cargo writes beside its own copy of the sources.
unset CARGO_TARGET_DIR
make -C "$build" >"$build.log" 2>&1 || {
  echo "image: Buildroot failed; the end of $build.log:" >&2
  tail -n 40 "$build.log" >&2
  exit 1
}
# Sources and licences of what is published. Debian's are Debian's to give.
if [ -z "$offline" ]; then
  make -s -C "$build" legal-info >>"$build.log" 2>&1
  tar -C "$build" -cJf "$out/legal-info.tar.xz" legal-info
fi
ls -l "$out"
