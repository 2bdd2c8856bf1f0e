# shellcheck shell=bash
# Sourced by build.sh and tiny.sh: a raw GPT disk that BIOS and UEFI boot, made on a loop device.
#
# Partitions, numbered as on Debian's own cloud images, so that a Tinkerbell template that writes
# into "the first partition" writes into the root file system, and so that it can grow at the end:
#
#   1   root   ext4, the last on the disk        /dev/vda1, /dev/sda1, /dev/nvme0n1p1
#   14  bios   GRUB's core for BIOS machines     1 MiB
#   15  esp    FAT, EFI/BOOT/BOOTX64.EFI
#
# A caller sets `set -euo pipefail` and calls, in this order: disk_need, disk_private, disk_create,
# disk_mount, (disk_bind,) disk_grub, disk_close.
#
# The kernel that builds need not know GPT or FAT: partx adds the partitions, mtools fills the ESP.

loop=
mounts=()

# Undo whatever stands, in reverse; safe at any point and more than once.
disk_close() {
  local i
  for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do
    umount "${mounts[i]}" || umount -l "${mounts[i]}"
  done
  mounts=()
  if [ -n "$loop" ]; then
    partx --delete "$loop" 2>/dev/null || true
    losetup -d "$loop"
    loop=
  fi
}

# What a script leaves by: nothing mounted, and when it failed the end of $log, if it named one.
disk_end() {
  local status=$?
  disk_close
  if [ $status != 0 ] && [ -s "${log:-}" ]; then
    echo "image: failed; the end of $log:" >&2
    tail -n 20 "$log" >&2
  fi
}

# disk_private SCRIPT [ARG…] : start again with mounts that nobody else sees. They end with the
# script, however it ends; a /dev bound into a folder must not outlive it and meet an rm -rf.
disk_private() {
  if [ -z "${DISK_PRIVATE:-}" ]; then
    DISK_PRIVATE=1 exec unshare --mount --propagation private "$@"
  fi
  trap disk_end EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# disk_need PROGRAM… : all that is missing is said at once.
disk_need() {
  local p missing=()
  if [ "$(id -u)" != 0 ]; then
    echo "image: making a disk image needs root, for a loop device, mounts and chroot" >&2
    exit 1
  fi
  for p in "$@"; do command -v "$p" >/dev/null || missing+=("$p"); done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "image: these programs are missing: ${missing[*]}" >&2
    echo "hint: apt-get install mmdebstrap gdisk dosfstools mtools e2fsprogs zstd xz-utils cpio" \
      "busybox-static udev grub2-common grub-pc-bin grub-efi-amd64-bin" >&2
    exit 1
  fi
}

# disk_create FILE SIZE_MIB ESP_MIB : a sparse file, partitioned, with empty file systems.
disk_create() {
  truncate -s "$2M" "$1"
  sgdisk --clear --set-alignment=2048 \
    --new=14:2048:+1M --typecode=14:ef02 --change-name=14:bios \
    --new=15:0:+"$3"M --typecode=15:ef00 --change-name=15:esp \
    --new=1:0:0 --typecode=1:8304 --change-name=1:root "$1" >/dev/null
  loop=$(losetup --find --show "$1")
  # partx reads the table itself: a kernel without a GPT parser does as well as one with.
  partx --add "$loop"
  if [ ! -b "${loop}p1" ]; then
    echo "image: the kernel made no partition devices for $loop" >&2
    exit 1
  fi
  mkfs.vfat -n ESP "${loop}p15" >/dev/null
  # These two features are newer than the GRUB and e2fsck of the systems that read the disk.
  mkfs.ext4 -q -L root -O ^orphan_file,^metadata_csum_seed "${loop}p1" 2>/dev/null \
    || mkfs.ext4 -q -L root "${loop}p1"
}

# disk_mount DIR : the root file system at DIR.
disk_mount() {
  mkdir -p "$1"
  mount "${loop}p1" "$1"; mounts+=("$1")
}

# disk_bind DIR : what programs run with chroot DIR expect. Its /dev holds our disk alone; the link
# by UUID, which udev makes where there is one, is how grub-mkconfig comes to write root=UUID=….
disk_bind() {
  mount -t tmpfs -o mode=755 dev "$1/dev"; mounts+=("$1/dev")
  cp -a /dev/{null,zero,full,random,urandom,tty} "$loop"* "$1/dev/"
  mkdir -p "$1/dev/disk/by-uuid"
  ln -s "../../${loop#/dev/}p1" "$1/dev/disk/by-uuid/$(blkid -s UUID -o value "${loop}p1")"
  mount -t proc proc "$1/proc"; mounts+=("$1/proc")
  mount -t sysfs -o ro sys "$1/sys"; mounts+=("$1/sys")
}

# disk_grub ROOT [WRAPPER…] : GRUB for both firmwares, reading /boot/grub of the file system at
# ROOT.
# With `chroot ROOT` as WRAPPER it is the image's own GRUB that installs itself. Never call
# it in a condition: bash would then go on after a step that failed.
disk_grub() {
  local root=$1 boot=$1/boot early efi uuid
  shift
  if [ $# -gt 0 ]; then boot=/boot; fi
  "$@" grub-install --target=i386-pc --boot-directory="$boot" "$loop" >&2
  # What grub-install --removable would do, without mounting the ESP. The path is the one that
  # every UEFI tries on a disk it has no boot entry for.
  mkdir -p "$root/boot/grub/x86_64-efi"
  cp "${1:+$root}"/usr/lib/grub/x86_64-efi/*.{mod,lst} "$root/boot/grub/x86_64-efi/"
  uuid=$(blkid -s UUID -o value "${loop}p1")
  early=boot/grub/x86_64-efi/load.cfg
  efi=boot/grub/x86_64-efi/core.efi
  # shellcheck disable=SC2016 # $root is GRUB's variable
  printf 'search.fs_uuid %s root\nset prefix=($root)/boot/grub\n' "$uuid" >"$root/$early"
  "$@" grub-mkimage --format=x86_64-efi --prefix=/boot/grub --config="$boot/../$early" \
    --output="$boot/../$efi" part_gpt ext2 search_fs_uuid normal configfile >&2
  mmd -i "${loop}p15" ::EFI ::EFI/BOOT
  mcopy -i "${loop}p15" "$root/$efi" ::EFI/BOOT/BOOTX64.EFI
}
