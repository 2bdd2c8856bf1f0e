#!/bin/sh
# A box of its own without a machine of its own: what process 1 and the disk are to it is made here,
# in namespaces that the caller made; the boot volume is always writable. Ends as the browser does;
# prints what is in box.toml then, and the addresses of the rack's card once the box has started
# with it.
#   setup.sh TINBOXD ROOT NODE SCRIPT PICTURES PLAYWRIGHT
set -eu
tinboxd=$1 root=$2 node=$3 script=$4 pictures=$5 library=$6

ip link set lo up
for card in eth0 eth1; do
  ip tuntap add "$card" mode tap
  ip link set "$card" up
done
ip addr add 10.20.30.40/24 dev eth0
ip route add default via 10.20.30.1

mount -t tmpfs tmpfs "$root"
for place in /*; do
  case $place in
    /proc | /sys | /dev | /run | /state | /boot | /cache) continue ;;
  esac
  if [ -L "$place" ]; then
    cp -P "$place" "$root$place"
  elif [ -d "$place" ]; then
    mkdir "$root$place"
    mount --rbind "$place" "$root$place"
  fi
done
for place in proc sys dev run state boot cache; do mkdir "$root/$place"; done
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
for place in dev run state boot cache; do mount -t tmpfs tmpfs "$root/$place"; done
mkdir -p "$root/run/tinbox/artifacts" "$root/state/tinbox" "$root/dev/shm"
for device in null zero full random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done

# Until a command succeeds, for two minutes at most.
until_it() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 1200 ]; then
      echo "error: never came true: $*" >&2
      tail -n 20 "$root/state/log" >&2
      exit 1
    fi
    sleep 0.1
  done
}
serves() { grep -q ':01BB 0.* 0A ' /proc/net/tcp /proc/net/tcp6 && [ -s "$claim" ]; }
claim=$root/state/tinbox/claim.json
begin() {
  chroot "$root" "$tinboxd" --firmware >>"$root/state/log" 2>&1 &
  box=$!
  until_it serves
}
asked=no
trap 'asked=yes' TERM

begin
code=$(sed 's/.*"code":"\([^"]*\)".*/\1/' "$claim")
chroot "$root" "$node" "$script" https://127.0.0.1 "$code" "$pictures" "$library" &
browser=$!
# A signal ends a wait early.
while :; do
  status=0
  wait "$browser" || status=$?
  kill -0 "$browser" 2>/dev/null || break
done
echo "restart asked: $asked"
cat "$root/boot/box.toml"
kill "$box"
wait "$box" || true
begin
racks_card() { ip -4 -o addr show dev eth1 | grep -q 'inet 10.99.0.1/24 '; }
until_it racks_card
echo 'the rack has its address'
exit "$status"
