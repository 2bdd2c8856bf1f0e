#!/usr/bin/env bash
# Build the box's kernel (the agent OS boots the same one) and print the path of its image: bzImage,
# or Image for ARM.
#
#   build.sh            Linux 6.12 from Debian's linux-source-6.12 with the fragments beside this
#                       file; about 20 CPU minutes once, then served from the cache
#   KERNEL_DISPLAY=1    with the drivers of display-x86_64.fragment, as released images have it
#   TINBOX_ARCH=aarch64 for a box with an ARM processor, by a cross compiler (../aarch64)
#   KERNEL=stock …      Debian's own kernel with the modules a NUC needs, for a cold cache: prints a
#                       folder holding vmlinuz and modules/ instead (see stock.sh)
#   CACHED=1            build nothing: print the path that is in the cache, or end with 3
#
# The cache is ${TINBOX_CACHE:-~/.cache/tinbox}/kernel/<content hash>/; the hash covers the Debian
# source version, the fragments and the number of the recipe below. What the processor's fragment
# says is not set need not be, whatever the common one says.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/kernel
series=6.12
arch=${TINBOX_ARCH:-x86_64}
case $arch in
  x86_64) image=bzImage made=arch/x86/boot/bzImage options=(ARCH=x86_64) ;;
  aarch64)
    image=Image made=arch/arm64/boot/Image options=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
    ;;
  *) echo "kernel: no box has a processor called $arch" >&2; exit 64 ;;
esac
# Raise it with every change of this script that changes the kernel.
recipe=1

if [ "${KERNEL:-}" = stock ]; then
  if [ "$arch" = x86_64 ]; then exec "$here/stock.sh"; fi
  echo "kernel: Debian's kernel is taken for x86_64 only; for $arch it is built" >&2
fi

version=$(apt-cache show --no-all-versions "linux-source-$series" | sed -n 's/^Version: //p')
if [ -z "$version" ]; then
  echo "kernel: apt knows no linux-source-$series on this machine" >&2
  echo "hint: run apt-get update, or build with KERNEL=stock" >&2
  exit 1
fi
fragments=("$here/common.fragment" "$here/$arch.fragment")
display=$here/display-$arch.fragment
if [ -n "${KERNEL_DISPLAY:-}" ] && [ -e "$display" ]; then fragments+=("$display"); fi
hash=$({ echo "$version recipe $recipe"; cat "${fragments[@]}"; } | sha256sum | cut -c1-16)
out=$cache/$hash
if [ -s "$out/$image" ]; then echo "$out/$image"; exit 0; fi
if [ -n "${CACHED:-}" ]; then exit 3; fi

if [ "$arch" = aarch64 ]; then PATH=$("$here/../aarch64/parts.sh" toolchain)/bin:$PATH; fi
echo "kernel: building linux $version for $arch (once; about 20 CPU minutes)" >&2
mkdir -p "$cache"
exec 9>"$cache/lock"; flock 9
if [ -s "$out/$image" ]; then echo "$out/$image"; exit 0; fi
work=$cache/work-$hash
rm -rf "$work"; mkdir -p "$work"; cd "$work"
apt-get download -qq "linux-source-$series=$version" >&2
dpkg-deb -x ./*.deb deb
tar xf "deb/usr/src/linux-source-$series.tar.xz"
rm -rf deb ./*.deb
cd "linux-source-$series"
# Symbols that no fragment names take Kconfig's own defaults.
./scripts/kconfig/merge_config.sh -m "${fragments[@]}" \
  >"$work/merge.log"
make -s "${options[@]}" olddefconfig
# A fragment line that Kconfig dropped is a silent loss of a driver: say so and stop.
without=$(sed -n 's/^# \(CONFIG_[A-Z0-9_]*\) is not set$/\1=y/p' "$here/$arch.fragment")
dropped=$(cat "${fragments[@]}" | grep '^CONFIG_.*=y$' \
  | grep -vxF "$without" | grep -vxFf .config || true)
if [ -n "$dropped" ]; then
  echo "kernel: Kconfig dropped these lines of the fragments:" >&2
  echo "$dropped" >&2
  exit 1
fi
# The package's own build date and host would make two builds differ.
export KBUILD_BUILD_TIMESTAMP=1970-01-01 KBUILD_BUILD_USER=tinbox KBUILD_BUILD_HOST=tinbox
options+=("-j$(nproc)")
nice -n "${KERNEL_NICE:-5}" make -s "${options[@]}" "$image" >"$work/build.log" 2>&1 || {
  echo "kernel: the build failed; the end of $work/build.log:" >&2
  tail -n 20 "$work/build.log" >&2
  exit 1
}
mkdir -p "$out"
cp .config "$out/config"
cp "$made" "$out/$image.part"
mv "$out/$image.part" "$out/$image"
cd "$cache"; rm -rf "$work"
echo "$out/$image"
