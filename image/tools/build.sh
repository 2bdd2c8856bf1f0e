#!/usr/bin/env bash
# Build the agent's tools image and print its path: the programs of Debian that partition, format,
# mirror and erase disks, as a squashfs that the agent fetches when an action needs one.
#
#   build.sh        .../tools/<content hash>/tools-x86_64.squashfs, tools-x86_64.manifest (package
#                   versions) beside it
#
# Packages are fetched by apt and unpacked, never installed. What goes in says the file programs;
# a library is taken when a program, or another library, names it. Two builds of one hash are equal.
#
# TINBOX_CACHE    ~/.cache/tinbox; the hash covers these files and the versions apt offers
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/tools
name=tools-x86_64
libraries=(usr/lib/x86_64-linux-gnu lib/x86_64-linux-gnu)

listed=$(sed 's/#.*//; /^ *$/d' "$here/programs")
mapfile -t packages < <(sed 's/:.*//' <<<"$listed")
versions=$(apt-cache show --no-all-versions "${packages[@]}" \
  | awk '/^Package: /{p=$2} /^Version: /{print p "=" $2}' | LC_ALL=C sort -u)
for package in "${packages[@]}"; do
  if ! grep -qF "$package=" <<<"$versions"; then
    echo "tools: apt knows no package $package on this machine" >&2
    echo "hint: run apt-get update; the list is for Debian 12" >&2
    exit 1
  fi
done
hash=$({ echo "$versions"; cat "$here"/{build.sh,programs,lvm.conf}; } | sha256sum | cut -c1-16)
out=$cache/$hash
if [ -s "$out/$name.squashfs" ]; then echo "$out/$name.squashfs"; exit 0; fi

for program in mksquashfs readelf flock; do
  if ! command -v "$program" >/dev/null; then
    echo "tools: the program $program is missing" >&2
    echo "hint: sudo make setup" >&2
    exit 1
  fi
done
mkdir -p "$cache"
exec 9>"$cache/lock"; flock 9
if [ -s "$out/$name.squashfs" ]; then echo "$out/$name.squashfs"; exit 0; fi
echo "image: building the agent's tools (once; a minute)" >&2
work=$cache/work-$hash
rm -rf --one-file-system "$cache"/work-*; mkdir -p "$work"/{debs,all,root}
all=$work/all root=$work/root

# 1. the packages, unpacked over one another
mapfile -t pinned <<<"$versions"
(cd "$work/debs" && apt-get download -qq "${pinned[@]}" >"$work/apt.log" 2>&1) || {
  echo "tools: apt could not fetch the packages; its last words:" >&2
  tail -n 5 "$work/apt.log" >&2
  exit 1
}
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$all"; done

# take PATH : a file, a link with what it leads to, or a folder, under the same path. Debian 12's
# /bin, /sbin and /lib are links into /usr; here they are folders, and every name stays as it is.
take() {
  local path=$1 target
  if [ ! -e "$all/$path" ] && [ ! -L "$all/$path" ]; then
    echo "tools: no package has $path" >&2
    exit 1
  fi
  [ -e "$root/$path" ] && return
  mkdir -p "$root/$(dirname "$path")"
  cp -a "$all/$path" "$root/$path"
  if [ -L "$all/$path" ]; then
    target=$(readlink "$all/$path")
    case $target in
      /*) take "${target#/}" ;;
      *) take "$(realpath -ms --relative-to="$all" "$all/$(dirname "$path")/$target")" ;;
    esac
  fi
}

# need FILE : the libraries that a program names, and those that they name.
need() {
  local library folder
  while read -r library; do
    for folder in "${libraries[@]}"; do
      if [ -e "$all/$folder/$library" ]; then
        [ -e "$root/$folder/$library" ] && continue 2
        take "$folder/$library"
        need "$all/$folder/$library"
        continue 2
      fi
    done
    echo "tools: no package of the list has $library, which $1 needs" >&2
    exit 1
  done < <(readelf -d "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
}

# 2. of them, what is listed
while IFS=: read -r package paths; do
  for path in $paths; do
    take "$path"
    if [ -f "$all/$path" ] && [ -x "$all/$path" ]; then need "$all/$path"; fi
  done
done <<<"$listed"
take lib64/ld-linux-x86-64.so.2
# Nothing here boots from a network or plays a tune.
rm -f "$root"/usr/lib/grub/*/*.{img.signed,efi.signed} "$root"/usr/lib/grub/x86_64-efi/monolithic/*
find "$root" -type f -perm -u+x -exec strip --strip-unneeded {} + 2>/dev/null || true

# 3. what programs expect around them: the kernel's folders and /run and /tmp are mounted by the
# agent, /mnt is where it shows them a partition
mkdir -p "$root"/{dev,proc,sys,run,tmp,mnt,etc/lvm,usr/sbin,usr/bin}
install -m 644 "$here/lvm.conf" "$root/etc/lvm/lvm.conf"
ln -sf /proc/self/mounts "$root/etc/mtab"
# Arrays are this machine's whatever host they were made on; members are looked for in /dev.
printf 'DEVICE partitions\nHOMEHOST <ignore>\nAUTO +all\nCREATE names=no\n' >"$root/etc/mdadm.conf"
find "$root" -type d -exec chmod 755 {} +

# 4. packed
mksquashfs "$root" "$work/$name.squashfs" -comp zstd -Xcompression-level 22 -b 1M -all-root \
  -no-xattrs -noappend -no-progress -quiet -mkfs-time 0 -all-time 0 >"$work/squash.log"
mkdir -p "$out"
echo "$versions" >"$out/$name.manifest"
mv "$work/$name.squashfs" "$out/"
rm -rf --one-file-system "$work"
echo "$out/$name.squashfs"
