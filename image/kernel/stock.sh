#!/usr/bin/env bash
# Debian's own kernel with the modules a NUC needs, for a cold cache: prints a folder that holds
#
#   vmlinuz               the kernel
#   modules/NNN-name.ko   its drivers, uncompressed, numbered in the order in which to load them
#   version               the Debian package and its version
#
# Quick to make and slow to boot: the drivers that the box's own kernel has built in are loaded one
# by one. Needs apt-get, depmod and modprobe (package kmod), xz and zstd; no root.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/kernel
# Storage, network, file systems and input of the machines that common.fragment names; what one of
# them depends on comes by itself. A name that this kernel has built in, or lacks, is left out.
modules=(virtio_pci virtio_blk virtio_net virtio_scsi virtio_console virtio_rng
  nvme ahci ata_piix sd_mod sr_mod sdhci_pci mmc_block
  xhci_pci ehci_pci uas usb_storage usbhid hid_generic
  e1000 e1000e igb igc ixgbe r8169 realtek tg3 atlantic
  r8152 ax88179_178a cdc_ether cdc_ncm
  ext4 xfs btrfs squashfs vfat nls_cp437 nls_iso8859-1 nls_utf8 isofs loop af_packet efivarfs
  dm_mod raid0 raid1 raid10 raid456
  ipmi_si ipmi_devintf tpm_tis tpm_crb)

for meta in linux-image-6.12-amd64 linux-image-amd64; do
  package=$(apt-cache depends --no-recommends --no-suggests "$meta" 2>/dev/null \
    | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
  if [ -n "$package" ]; then break; fi
done
if [ -z "$package" ]; then
  echo "kernel: apt on this machine knows no Debian kernel" >&2
  echo "hint: run apt-get update" >&2
  exit 1
fi
version=$(apt-cache show --no-all-versions "$package" | sed -n 's/^Version: //p')
hash=$({ echo "$package $version"; cat "$here/stock.sh"; } | sha256sum | cut -c1-16)
out=$cache/stock-$hash
if [ -s "$out/version" ]; then echo "$out"; exit 0; fi

mkdir -p "$cache"
exec 9>"$cache/stock.lock"; flock 9
if [ -s "$out/version" ]; then echo "$out"; exit 0; fi
rm -rf "$out"
work=$out.work
rm -rf "$work"; mkdir -p "$work/deb" "$work/made/modules"; cd "$work"
trap 'rm -rf "$work"' EXIT
apt-get -o APT::Sandbox::User=root download -qq "$package=$version" >&2
dpkg-deb -x ./*.deb deb
release=$(basename deb/lib/modules/*)
depmod --basedir "$PWD/deb" "$release"
list=$(for name in "${modules[@]}"; do
  modprobe --dirname "$PWD/deb" --set-version "$release" --show-depends "$name" 2>/dev/null || true
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++')
number=0
for path in $list; do
  name=$(basename "$path"); name=${name%.xz}; name=${name%.zst}
  target=$(printf 'made/modules/%03d-%s' "$number" "$name")
  case $path in
    *.xz) xz -dc "$path" >"$target" ;;
    *.zst) zstd -qdc "$path" >"$target" ;;
    *) cp "$path" "$target" ;;
  esac
  number=$((number + 1))
done
if [ "$number" -lt 30 ]; then
  echo "kernel: found only $number of the modules in $package" >&2
  exit 1
fi
cp "deb/boot/vmlinuz-$release" made/vmlinuz
echo "$package $version" >made/version
mv made "$out"
echo "$out"
