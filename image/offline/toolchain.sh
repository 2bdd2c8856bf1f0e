#!/usr/bin/env bash
# Make a toolchain that Buildroot takes as preinstalled, from Debian's packages, and print its
# folder in the cache: Debian's gcc and binutils, and a sysroot with glibc in Buildroot's shape.
#
# gcc's programs are copied, and called through a wrapper that names the sysroot: with the machine's
# own gcc and --sysroot alone, gcc still answers with the machine's files and Buildroot takes / for
# the sysroot. Packages are unpacked, never installed.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/toolchain
triplet=x86_64-linux-gnu
gcc=12
sysroot_packages=(libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev libgcc-s1)
gcc_packages=("gcc-$gcc" "cpp-$gcc" "libgcc-$gcc-dev")
binutils=(addr2line ar as elfedit gprof ld ld.bfd nm objcopy objdump ranlib readelf size strings
  strip)

versions=$(apt-cache show --no-all-versions "${sysroot_packages[@]}" "${gcc_packages[@]}" \
  | awk '/^Package: /{p=$2} /^Version: /{print p "=" $2}' | LC_ALL=C sort -u)
hash=$({ echo "$versions"; cat "$here/toolchain.sh"; } | sha256sum | cut -c1-16)
out=$cache/$hash
if [ -d "$out" ]; then echo "$out"; exit 0; fi
mkdir -p "$cache"
exec 9>"$cache/lock"; flock 9
if [ -d "$out" ]; then echo "$out"; exit 0; fi
echo "image: making a toolchain of Debian's packages (once; ten seconds)" >&2
work=$cache/work
rm -rf "$work"
mkdir -p "$work"/{debs/sysroot,debs/gcc,gcc} "$work"/made/{bin,lib/gcc/$triplet,sysroot}
made=$work/made root=$work/made/sysroot
(cd "$work/debs/sysroot" && apt-get download -qq "${sysroot_packages[@]}" >&2)
(cd "$work/debs/gcc" && apt-get download -qq "${gcc_packages[@]}" >&2)
for deb in "$work"/debs/sysroot/*.deb; do dpkg-deb -x "$deb" "$root"; done
for deb in "$work"/debs/gcc/*.deb; do dpkg-deb -x "$deb" "$work/gcc"; done
cp -a "$work/gcc/usr/lib/gcc/$triplet/." "$made/lib/gcc/$triplet/"

# One folder of libraries and one of headers, where Debian has one for each processor.
cd "$root"
rm -rf lib64
for folder in lib/$triplet lib usr/lib/$triplet; do
  if [ -d "$folder" ] && [ ! -L "$folder" ]; then
    mkdir -p usr/lib
    cp -a "$folder"/. usr/lib/
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
  sed -i "s:/usr/lib/$triplet/::g; s:/lib/$triplet/::g; s:/lib64/::g" "usr/lib/$script"
done
find usr/lib "$made/lib/gcc" -type l | while read -r link; do
  case $(readlink "$link") in
    /* | *$triplet/*) ln -sf "$(basename "$(readlink "$link")")" "$link" ;;
  esac
done
find usr/lib "$made/lib/gcc" -xtype l -delete

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
  if [ -x "/usr/bin/$triplet-$tool" ]; then ln -s "/usr/bin/$triplet-$tool" .; fi
done
mv "$made" "$out"
rm -rf "$work"
echo "$out"
