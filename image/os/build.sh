#!/usr/bin/env bash
# Build the Debian disk image that the box installs on machines, and print its path.
#
#   build.sh               .../os/<content hash>/debian.raw.zst, with debian.raw.zst.sha256 and
#                          debian.manifest (package versions) beside it
#
# A plain Debian: its packages, its kernel, its boot loader, its cloud-init as it ships. There is no
# user, key, password, host name, machine id or metadata address in it: a machine learns all of
# that at its first boot. The root file system is partition 1 (see disk.sh).
#
# TINBOX_DEBIAN_SUITE   bookworm
# TINBOX_CACHE          ~/.cache/tinbox; the hash covers these scripts, the suite and the version of
#                       the kernel that apt offers
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/disk.sh"
suite=${TINBOX_DEBIAN_SUITE:-bookworm}
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/os
disk_mib=1536
esp_mib=64

kernel=$(apt-cache show --no-all-versions linux-image-cloud-amd64 2>/dev/null \
  | sed -n 's/^Version: //p')
hash=$({ echo "$suite ${kernel:-unknown}"; cat "$here"/{build.sh,disk.sh,sources.sh,packages}; } \
  | sha256sum | cut -c1-16)
out=$cache/$hash
if [ -s "$out/debian.raw.zst" ]; then echo "$out/debian.raw.zst"; exit 0; fi

disk_need mmdebstrap sgdisk mkfs.vfat mkfs.ext4 mcopy partx losetup unshare zstd flock
disk_private "$0"
mkdir -p "$cache"
exec 9>"$cache/lock"; flock 9
if [ -s "$out/debian.raw.zst" ]; then echo "$out/debian.raw.zst"; exit 0; fi
sources=$("$here/sources.sh" "$suite")
echo "image: building Debian $suite (once; a few minutes)" >&2
work=$cache/work-$hash
rm -rf --one-file-system "$cache"/work-*; mkdir -p "$work"

log=$work/build.log

# 1. the packages, by apt, from where this machine gets its own
root=$work/root
options=$work/apt.conf
(umask 077; "$here/sources.sh" --options >"$options")
packages=$(sed 's/#.*//' "$here/packages" | xargs | tr ' ' ,)
mmdebstrap --mode=root --variant=minbase --format=directory --include="$packages" \
  --aptopt="$options" --dpkgopt=force-unsafe-io --skip=cleanup/tmp \
  "$suite" "$root" - <<<"$sources" >"$log" 2>&1
dpkg-query --root="$root" -W >"$work/debian.manifest"

# 2. what is this machine's, not the image's
rm -f "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/etc/dpkg/dpkg.cfg.d/99mmdebstrap
rm -f "$root"/etc/apt/sources.list.d/* "$root"/etc/hostname "$root"/etc/resolv.conf
rm -rf "$root"/etc/ssh/ssh_host_* "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
rm -rf "$root"/tmp/* "$root"/var/log/*.log "$root"/var/log/apt "$root"/var/lib/dbus/machine-id
: >"$root/etc/machine-id"
# The machine's later packages come from Debian's own addresses, as its cloud-init names them.
address() { sed -n "s/^ *$1: *\(http[^ ]*\)$/\1/p" "$root/etc/cloud/cloud.cfg" | head -n 1; }
primary=$(address primary) security=$(address security)
if [ -z "$primary" ] || [ -z "$security" ]; then
  echo "image: cloud-init's own configuration names no Debian mirror" >&2
  exit 1
fi
cat >"$root/etc/apt/sources.list" <<LIST
deb $primary $suite main
deb $primary $suite-updates main
deb $security $suite-security main
LIST
# The locale that needs nothing generated; cloud-init keeps a locale that is already set.
echo LANG=C.UTF-8 >"$root/etc/default/locale"
ln -s ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
chroot "$root" systemctl --quiet enable systemd-networkd.service

# 3. the disk
disk=$work/debian.raw
disk_create "$disk" $disk_mib $esp_mib
mnt=$work/mnt
disk_mount "$mnt"
cp -a "$root/." "$mnt/"
mkdir -p "$mnt/boot/efi"
uuid=$(blkid -s UUID -o value "${loop}p1")
esp=$(blkid -s UUID -o value "${loop}p15")
printf 'UUID=%s / ext4 errors=remount-ro 0 1\nUUID=%s /boot/efi vfat umask=0077 0 2\n' \
  "$uuid" "$esp" >"$mnt/etc/fstab"
cat >"$mnt/etc/default/grub" <<'GRUB'
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX="console=tty0 console=ttyS0,115200"
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_TERMINAL=console
GRUB_DISABLE_OS_PROBER=true
GRUB
disk_bind "$mnt"
disk_grub "$mnt" chroot "$mnt" 2>>"$log"
chroot "$mnt" update-grub 2>>"$log"
if ! grep -q "root=UUID=$uuid" "$mnt/boot/grub/grub.cfg"; then
  echo "image: grub-mkconfig did not name the root file system by its UUID" >&2
  exit 1
fi
disk_close

# 4. packed; written under another name until it is whole
rm -rf --one-file-system "$root"
zstd -q -9 -T2 --rm "$disk" -o "$work/debian.raw.zst"
(cd "$work" && sha256sum debian.raw.zst >debian.raw.zst.sha256)
mkdir -p "$out"
mv "$work"/debian.manifest "$work"/debian.raw.zst.sha256 "$out/"
mv "$work/debian.raw.zst" "$out/"
rm -rf --one-file-system "$work"
echo "$out/debian.raw.zst"
