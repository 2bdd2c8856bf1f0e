#!/usr/bin/env bash
# Install the missing Debian packages that the build and the tests of Tinbox need, from this
# machine's own mirror. Without root, print the missing packages and end with an error.
set -euo pipefail

# Package, and a program or file that the package contains.
needs=(
  gcc:gcc g++:g++ make:make bc:bc bison:bison flex:flex cpio:cpio kmod:modprobe lz4:lz4 zstd:zstd
  xz-utils:xz libelf-dev:/usr/include/libelf.h libssl-dev:/usr/include/openssl/ssl.h
  qemu-system-x86:qemu-system-x86_64 qemu-utils:qemu-img ovmf:/usr/share/OVMF/OVMF_CODE_4M.fd
  qemu-block-extra:/usr/lib/x86_64-linux-gnu/qemu/block-curl.so xorriso:xorriso
  systemd-boot-efi:/usr/lib/systemd/boot/efi/linuxx64.efi.stub
  ipxe:/usr/lib/ipxe/snponly.efi ipxe-qemu:/usr/lib/ipxe/qemu/efi-virtio.rom
  openipmi:ipmi_sim ipmitool:ipmitool amtterm:amtterm snmpd:snmpd snmp:snmpget
  zsh:zsh fish:fish man-db:man groff-base:groff
  swtpm:swtpm swtpm-tools:swtpm_setup
  iproute2:ip ethtool:ethtool nftables:nft tcpdump:tcpdump busybox-static:busybox
  etherwake:etherwake wakeonlan:wakeonlan
  atftp:atftp curl:curl openssh-client:ssh isc-dhcp-client:dhclient dhcpcd-base:dhcpcd
  systemd:/lib/systemd/systemd-networkd
  chromium:chromium chrony:chronyd default-jdk-headless:javac maven:mvn
  dnsmasq-base:dnsmasq kea-dhcp4-server:kea-dhcp4 isc-dhcp-relay:dhcrelay procps:sysctl
  mmdebstrap:mmdebstrap gdisk:sgdisk fdisk:sfdisk dosfstools:mkfs.vfat mtools:mcopy
  bzip2:bzip2 zbar-tools:zbarimg rsync:rsync unzip:unzip file:file patch:patch
  e2fsprogs:mkfs.ext4 util-linux:losetup grub-common:grub-mkimage grub2-common:grub-install
  grub-pc-bin:/usr/lib/grub/i386-pc/boot.img grub-efi-amd64-bin:/usr/lib/grub/x86_64-efi/fat.mod
  libdevmapper1.02.1:/lib/x86_64-linux-gnu/libdevmapper.so.1.02.1
  libseccomp2:/usr/lib/x86_64-linux-gnu/libseccomp.so.2
  cryptsetup-bin:veritysetup bmap-tools:bmaptool minisign:minisign
  squashfs-tools:mksquashfs binutils:strip udev:udevadm bsdutils:script
  python3-yaml:/usr/lib/python3/dist-packages/yaml
  python3-requests:/usr/lib/python3/dist-packages/requests
  python3-jinja2:/usr/lib/python3/dist-packages/jinja2
  python3-configobj:/usr/lib/python3/dist-packages/configobj
  python3-jsonpatch:/usr/lib/python3/dist-packages/jsonpatch.py
  python3-jsonschema:/usr/lib/python3/dist-packages/jsonschema
  python3-zeroconf:/usr/lib/python3/dist-packages/zeroconf/__init__.py
  python3-oauthlib:/usr/lib/python3/dist-packages/oauthlib
  python3-netifaces:/usr/share/doc/python3-netifaces python3-venv:/usr/share/doc/python3-venv
)

export PATH=$PATH:/usr/sbin:/sbin
missing=()
for need in "${needs[@]}"; do
  package=${need%%:*} what=${need#*:}
  case $what in
    /*) [ -e "$what" ] || missing+=("$package") ;;
    *) command -v "$what" >/dev/null || missing+=("$package") ;;
  esac
done

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "error: packages are missing: ${missing[*]}" >&2
    echo "why: the box is tested against real firmware, BMCs and clients, which they bring" >&2
    echo "hint: sudo make setup" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  install() { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; }
  install >"$log" 2>&1 || {
    echo "error: apt-get could not install ${missing[*]}; the end of its output:" >&2
    tail -n 15 "$log" >&2
    exit 1
  }
  rm -f "$log"
fi

if ! command -v cargo >/dev/null; then
  echo "error: cargo is missing" >&2
  echo "hint: install Rust by rustup; the toolchain is named in rust-toolchain.toml" >&2
  exit 1
fi

# Debian's kubectl is too old for the API's tests. If PATH contains no kubectl, it is built.
here=$(dirname "$(readlink -f "$0")")
bin=$here/../out/bin
mkdir -p "$bin"
ln -sf "$("$here/nextest.sh")" "$bin/cargo-nextest"
if ! command -v kubectl >/dev/null; then
  ln -sf "$("$here/peers/kubectl/build.sh")" "$bin/kubectl"
fi
