#!/usr/bin/env bash
# Build the box's kernel (the agent OS boots the same one) and print the path of its bzImage.
#
#   build.sh            Linux 6.12 from Debian's linux-source-6.12 with the fragments beside this
#                       file; about 20 CPU minutes once, then served from the cache
#   KERNEL=stock …      Debian's own kernel with the modules a NUC needs, for a cold cache: prints a
#                       folder holding vmlinuz and modules/ instead (see stock.sh)
#
# The cache is ${TINBOX_CACHE:-~/.cache/tinbox}/kernel/<content hash>/bzImage; the hash covers the
# Debian source version, the fragments and the number of the recipe below.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/kernel
series=6.12
arch=x86_64
# Raise it with every change of this script that changes the kernel.
recipe=1

[ "${KERNEL:-}" != stock ] || exec "$here/stock.sh"

version=$(apt-cache show --no-all-versions "linux-source-$series" | sed -n 's/^Version: //p')
if [ -z "$version" ]; then
  echo "kernel: apt knows no linux-source-$series on this machine" >&2
  echo "hint: run apt-get update, or build with KERNEL=stock" >&2
  exit 1
fi
hash=$({ echo "$version recipe $recipe"; cat "$here/common.fragment" "$here/$arch.fragment"; } \
  | sha256sum | cut -c1-16)
out=$cache/$hash
if [ -s "$out/bzImage" ]; then echo "$out/bzImage"; exit 0; fi

echo "kernel: building linux $version (once; about 20 CPU minutes)" >&2
mkdir -p "$cache"
exec 9>"$cache/lock"; flock 9
if [ -s "$out/bzImage" ]; then echo "$out/bzImage"; exit 0; fi
work=$cache/work-$hash
rm -rf "$work"; mkdir -p "$work"; cd "$work"
apt-get download -qq "linux-source-$series=$version" >&2
dpkg-deb -x ./*.deb deb
tar xf "deb/usr/src/linux-source-$series.tar.xz"
rm -rf deb ./*.deb
cd "linux-source-$series"
# Symbols that no fragment names take Kconfig's own defaults.
./scripts/kconfig/merge_config.sh -m "$here/common.fragment" "$here/$arch.fragment" \
  >"$work/merge.log"
make -s ARCH=$arch olddefconfig
# A fragment line that Kconfig dropped is a silent loss of a driver: say so and stop.
dropped=$(cat "$here/common.fragment" "$here/$arch.fragment" | grep '^CONFIG_.*=y$' \
  | grep -vxFf .config || true)
if [ -n "$dropped" ]; then
  echo "kernel: Kconfig dropped these lines of the fragments:" >&2
  echo "$dropped" >&2
  exit 1
fi
# The package's own build date and host would make two builds differ.
export KBUILD_BUILD_TIMESTAMP=1970-01-01 KBUILD_BUILD_USER=tinbox KBUILD_BUILD_HOST=tinbox
nice -n "${KERNEL_NICE:-5}" make -s ARCH=$arch -j"$(nproc)" bzImage >"$work/build.log" 2>&1 || {
  echo "kernel: the build failed; the end of $work/build.log:" >&2
  tail -n 20 "$work/build.log" >&2
  exit 1
}
mkdir -p "$out"
cp .config "$out/config"
cp "arch/x86/boot/bzImage" "$out/bzImage.part"
mv "$out/bzImage.part" "$out/bzImage"
cd "$cache"; rm -rf "$work"
echo "$out/bzImage"
