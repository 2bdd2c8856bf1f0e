#!/usr/bin/env bash
# Build the tiny disk image that quick tests install, and print the folder that holds it:
#
#   tiny.raw.zst  tiny.raw.gz  tiny.raw.xz     the same disk, and a .sha256 beside each
#
# Partitions and boot path are those of the Debian image (see disk.sh), the kernel is the box's own,
# the system is a busybox (see tiny/init): it prints TINY-BOOTED, TINY-ADDRESS, TINY-HOSTNAME and
# TINY-READY on the console. It takes the address of the metadata service from /etc/metadata_url on
# partition 1 (http://10.77.0.1:50061, no slash at the end), where a workflow writes it.
#
# TINBOX_CACHE  ~/.cache/tinbox        KERNEL=stock  Debian's kernel instead of ours
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
. "$here/disk.sh"
. "$here/../kernel/files.sh"
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/os
disk_mib=96
esp_mib=8

kernel_files
hash=$({ echo "$kernel"; dpkg-query -W busybox-static grub-pc-bin 2>/dev/null || true
  cat "$here"/{tiny.sh,disk.sh} "$here"/tiny/*; } | sha256sum | cut -c1-16)
out=$cache/tiny-$hash
if [ -s "$out/tiny.raw.zst" ]; then echo "$out"; exit 0; fi

disk_need sgdisk mkfs.vfat mkfs.ext4 mcopy partx losetup unshare zstd xz gzip cpio flock busybox \
  udevadm grub-install grub-mkimage
disk_private "$0"
mkdir -p "$cache"
exec 9>"$cache/lock"; flock 9
if [ -s "$out/tiny.raw.zst" ]; then echo "$out"; exit 0; fi
echo "image: building the tiny disk (once; half a minute)" >&2
work=$cache/work-$hash
rm -rf --one-file-system "$cache"/work-*; mkdir -p "$work"

log=$work/build.log
root=$work/root
mkdir -p "$root"/{bin,dev,etc,mnt,proc,run,sys,tmp}
cp "$(command -v busybox)" "$root/bin/busybox"
if ! chroot "$root" /bin/busybox true; then
  echo "image: busybox is not static; install the package busybox-static" >&2
  exit 1
fi
install -m 755 "$here/tiny/init" "$root/init"
install -m 755 "$here/tiny/udhcpc.script" "$root/etc/udhcpc.script"
if [ -n "$modules" ]; then
  mkdir -p "$root/lib/modules-boot"
  cp "$modules"/*.ko "$root/lib/modules-boot/"
fi

disk=$work/tiny.raw
mnt=$work/mnt
disk_create "$disk" $disk_mib $esp_mib
disk_mount "$mnt"
uuid=$(blkid -s UUID -o value "${loop}p1")
mkdir -p "$mnt/boot/grub" "$mnt/etc"
cp "$kernel" "$mnt/boot/vmlinuz"
(cd "$root" && find . -mindepth 1 | LC_ALL=C sort \
  | cpio --quiet --create --format=newc --owner=0:0 --reproducible) \
  | zstd -q -12 >"$mnt/boot/initrd.zst"
cat >"$mnt/boot/grub/grub.cfg" <<GRUB
set timeout=0
menuentry tiny {
  linux /boot/vmlinuz console=tty0 console=ttyS0,115200 panic=10 tiny.root=UUID=$uuid
  initrd /boot/initrd.zst
}
GRUB
disk_grub "$mnt" 2>"$log"
disk_close

zstd -q -9 -T2 "$disk" -o "$disk.zst"
gzip -6 -c "$disk" >"$disk.gz"
xz -2 -T2 -c "$disk" >"$disk.xz"
mkdir -p "$out"
for suffix in gz xz zst; do
  (cd "$work" && sha256sum "tiny.raw.$suffix" >"$out/tiny.raw.$suffix.sha256")
  mv "$disk.$suffix" "$out/"
done
rm -rf --one-file-system "$work"
echo "$out"
