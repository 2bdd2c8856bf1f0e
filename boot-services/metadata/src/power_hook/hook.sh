#!/bin/sh
# Power hook of Tinbox: polls the box, and powers this machine off when the box requests it. Each
# answer of the box has an HMAC with the key of this machine, for this boot and this poll.
set -euf

folder=${TINBOX_POWER_HOOK:-/etc/tinbox}
# Seconds between two polls. The box takes a machine as on for 30 s after a poll.
pause=${TINBOX_POWER_HOOK_PAUSE:-10}
url=$(cat "$folder/power-hook.url")
boot=$(cat /proc/sys/kernel/random/boot_id)
number=0
trouble=

# HMAC-SHA-256 (RFC 2104) of the standard input. The files are the key with the inner and the outer
# pad, so that no program gets the key as an argument.
mac() {
    { cat "$folder/power-hook.inner"; cat; } | openssl dgst -sha256 -binary |
        { cat "$folder/power-hook.outer"; cat; } | openssl dgst -sha256 -r | cut -d ' ' -f 1
}

# Sets the number of the next message: hundredths of a second since the boot, always increasing.
next() {
    read -r up _ </proc/uptime
    up=$((${up%.*} * 100 + 1${up#*.} - 100))
    if [ "$up" -gt "$number" ]; then number=$up; else number=$((number + 1)); fi
}

# Sets Wake-on-LAN by magic packet on each NIC (ioctl SIOCETHTOOL, linux/ethtool.h).
arm() {
    for name in $(ls /sys/class/net); do
        [ -e "/sys/class/net/$name/device" ] || continue
        ethtool -s "$name" wol g 2>/dev/null || python3 -c '
import ctypes, fcntl, socket, struct, sys
SIOCETHTOOL, ETHTOOL_SWOL, WAKE_MAGIC = 0x8946, 6, 1 << 5
wol = ctypes.create_string_buffer(struct.pack("=III6s", ETHTOOL_SWOL, 0, WAKE_MAGIC, b""))
request = struct.pack("16sP16x", sys.argv[1].encode(), ctypes.addressof(wol))
fcntl.ioctl(socket.socket(), SIOCETHTOOL, request)
' "$name" 2>/dev/null || echo "cannot set Wake-on-LAN of $name" >&2
    done
}

# Prints "on" if a NIC may wake the machine, "off" if none may, else "unknown".
wake() {
    found=unknown
    for name in $(ls /sys/class/net); do
        case $(cat "/sys/class/net/$name/device/power/wakeup" 2>/dev/null) in
        enabled) found=on ;;
        disabled) [ "$found" = on ] || found=off ;;
        esac
    done
    echo "$found"
}

# Posts the form $2 to the path $1 of the box, and prints the answer.
post() {
    if command -v curl >/dev/null; then
        curl -fs --noproxy '*' --max-time 10 --data "$2" "$url/power-hook/$1"
    else
        wget -qO- -T 10 --post-data "$2" "$url/power-hook/$1"
    fi
}

poll() {
    next
    wake=$(wake)
    sum=$(printf 'poll %s %s %s' "$boot" "$number" "$wake" | mac)
    if ! answer=$(post poll "boot=$boot&number=$number&wake=$wake&mac=$sum"); then
        [ "$trouble" ] || echo "cannot poll $url: no answer, or the box refuses this machine" >&2
        trouble=yes
        return 0
    fi
    trouble=
    # shellcheck disable=SC2086  # The answer is three words: off, the request, the HMAC.
    set -- $answer
    [ "$#" = 3 ] && [ "$1" = off ] || return 0
    request=$2
    if [ "$3" != "$(printf 'off %s %s %s' "$boot" "$number" "$request" | mac)" ]; then
        echo "ignored a request to power off with a wrong HMAC" >&2
        return 0
    fi
    next
    sum=$(printf 'down %s %s %s' "$boot" "$number" "$request" | mac)
    answer=$(post down "boot=$boot&number=$number&request=$request&mac=$sum") || return 0
    [ "$answer" = "go $(printf 'go %s %s %s' "$boot" "$number" "$request" | mac)" ] || return 0
    echo "powering off, because the box requested it"
    systemctl poweroff
    exit 0
}

arm
while :; do
    poll
    sleep "$pause"
done
