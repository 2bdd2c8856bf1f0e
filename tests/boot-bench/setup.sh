#!/usr/bin/env bash
# Bring the programs that `make bench-boot` measures the box beside, as far as they are missing,
# from this machine's own Debian mirror. They are unpacked into the cache, not installed: none of
# their services starts. Prints the folder, whose usr/sbin and usr/bin belong in front of PATH.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../cached.sh"

packages=(
  nginx wrk tftpd-hpa atftpd dnsmasq-base kea-dhcp4-server kea-admin kea-common isc-dhcp-server
  libluajit-5.1-2 libluajit-5.1-common libwrap0 libpcre2-8-0 libnetfilter-conntrack3 libnftables1
  libnfnetlink0 libnftnl11 libjansson4 libmnl0 libidn2-0 libunistring2
  libnettle8 libhogweed6 libgmp10 libdbus-1-3 libxtables12
  libboost-filesystem1.74.0 libboost-iostreams1.74.0 libboost-program-options1.74.0
  libboost-regex1.74.0 libboost-thread1.74.0 liblog4cplus-2.0.5 libmariadb3 libpq5
)
folder=$(printf '%s\n' "${packages[@]}" | cache_folder boot-bench)

unpack() {
  local part=$1 downloads
  downloads=$(mktemp -d)
  (cd "$downloads" && apt-get -o APT::Sandbox::User=root -qq download "${packages[@]}" >&2)
  for package in "$downloads"/*.deb; do dpkg -x "$package" "$part"; done
  rm -r "$downloads"
}
cached "$folder/root" "setup: fetching nginx, wrk, three TFTP and three DHCP servers" unpack
