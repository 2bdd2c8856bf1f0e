#!/usr/bin/env bash
# Make a toolchain that Buildroot takes as preinstalled, from Debian's packages, and print its
# folder in the cache: Debian's gcc and binutils, and a sysroot with glibc in Buildroot's shape.
# TINBOX_ARCH=aarch64 makes one for ARM, of Debian's cross compiler and ARM's own libraries.
#
# gcc's programs are copied, and called through a wrapper that names the sysroot: with the machine's
# own gcc and --sysroot alone, gcc still answers with the machine's files and Buildroot takes / for
# the sysroot. Packages are unpacked, never installed.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/toolchain
. "$here/../aarch64/apt.sh"
arch=${TINBOX_ARCH:-x86_64}
triplet=$arch-linux-gnu
gcc=12
sysroot_packages=(libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev libgcc-s1)
gcc_packages=("gcc-$gcc" "cpp-$gcc" "libgcc-$gcc-dev")
# Where gcc looks for its own parts, and where binutils are.
lib=gcc binutils_at=/usr/bin
binutils=(addr2line ar as elfedit gprof ld ld.bfd nm objcopy objdump ranlib readelf size strings
  strip)

if [ "$arch" = aarch64 ]; then
  gcc_packages=("gcc-$gcc-$triplet" "cpp-$gcc-$triplet" "libgcc-$gcc-dev-arm64-cross")
  lib=gcc-cross binutils_at=$("$here/../aarch64/parts.sh" toolchain)/bin
  arm_lists
  versions=$(arm_versions "${sysroot_packages[@]}"; own_versions "${gcc_packages[@]}")
else
  versions=$(own_versions "${sysroot_packages[@]}" "${gcc_packages[@]}")
fi
hash=$({ echo "$versions"; cat "$here/toolchain.sh"; } | sha256sum | cut -c1-16)
out=$cache/$hash
if [ -d "$out" ]; then echo "$out"; exit 0; fi
mkdir -p "$cache"
exec 9>"$cache/lock"; flock 9
if [ -d "$out" ]; then echo "$out"; exit 0; fi
echo "image: making a toolchain of Debian's packages (once; ten seconds)" >&2
work=$cache/work
rm -rf "$work"
mkdir -p "$work"/{debs/sysroot,debs/gcc,gcc} "$work"/made/{bin,"lib/$lib/$triplet",sysroot}
made=$work/made root=$work/made/sysroot
if [ "$arch" = aarch64 ]; then
  (cd "$work/debs/sysroot" && arm_apt apt-get download -qq "${sysroot_packages[@]}" >&2)
else
  (cd "$work/debs/sysroot" && apt-get download -qq "${sysroot_packages[@]}" >&2)
fi
(cd "$work/debs/gcc" && apt-get download -qq "${gcc_packages[@]}" >&2)
for deb in "$work"/debs/sysroot/*.deb; do dpkg-deb -x "$deb" "$root"; done
for deb in "$work"/debs/gcc/*.deb; do dpkg-deb -x "$deb" "$work/gcc"; done
cp -a "$work/gcc/usr/lib/$lib/$triplet/." "$made/lib/$lib/$triplet/"

# One folder of libraries and one of headers, where Debian has one for each processor.
cd "$root"
rm -rf lib64
for folder in lib/$triplet lib usr/lib/$triplet; do
  if [ -d "$folder" ] && [ ! -L "$folder" ]; then
    mkdir -p usr/lib
    # ARM's lib has a link to the loader of the same name, which came first.
    cp -an "$folder"/. usr/lib/
    rm -rf "$folder"
  fi
done
rm -rf usr/lib/$triplet usr/lib64 usr/lib/gcc usr/share etc usr/lib/{audit,gconv,perf} \
  usr/bin sbin usr/sbin
cp -a usr/include/$triplet/. usr/include/
rm -rf usr/include/$triplet
ln -s usr/lib lib
ln -s usr/lib lib64
ln -s lib usr/lib64
# Linker scripts name files by absolute paths.
for script in libc.so libm.so libm.a; do
  # ARM's libm is in one piece: a link, and an archive.
  if [ -L "usr/lib/$script" ] || ! grep -qI . "usr/lib/$script"; then continue; fi
  sed -i "s:/usr/lib/$triplet/::g; s:/lib/$triplet/::g; s:/lib64/::g" "usr/lib/$script"
done
find usr/lib "$made/lib/$lib" -type l | while read -r link; do
  case $(readlink "$link") in
    /* | *$triplet/*) ln -sf "$(basename "$(readlink "$link")")" "$link" ;;
  esac
done
find usr/lib "$made/lib/$lib" -xtype l -delete

cd "$made/bin"
for tool in gcc cpp; do
  cp "$work/gcc/usr/bin/$triplet-$tool-$gcc" $triplet-$tool.real
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nexec "$here/%s-%s.real" %s "$@"\n' \
    $triplet $tool '--sysroot="$here/../sysroot"' >$triplet-$tool
  chmod +x $triplet-$tool
done
for tool in gcc-ar gcc-nm gcc-ranlib; do
  cp "$work/gcc/usr/bin/$triplet-$tool-$gcc" $triplet-$tool
done
for tool in "${binutils[@]}"; do
  if [ -x "$binutils_at/$triplet-$tool" ]; then ln -s "$binutils_at/$triplet-$tool" .; fi
done
if [ "$arch" = aarch64 ]; then
  # Where a cross compiler looks for its assembler and linker; else it takes this machine's.
  mkdir -p "../$triplet/bin"
  for tool in as ld ld.bfd nm ar ranlib strip objcopy; do
    ln -s "../../bin/$triplet-$tool" "../$triplet/bin/$tool"
  done
fi
mv "$made" "$out"
rm -rf "$work"
echo "$out"
