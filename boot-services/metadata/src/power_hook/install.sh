#!/bin/sh
# Installs the power hook of Tinbox: a service that lets the box power this machine off. Needs root,
# systemd, openssl, and curl or wget. With DESTDIR, installs into the system at that folder.
set -eu

root=${DESTDIR:-}
if [ -z "$root" ]; then
    for program in openssl systemctl; do
        command -v "$program" >/dev/null || { echo "$program is not installed" >&2; exit 1; }
    done
fi
install -d -m 0755 "$root/usr/local/sbin" "$root/etc/systemd/system/multi-user.target.wants"
install -d -m 0700 "$root/etc/tinbox"
(
    umask 077
    printf '@INNER@' >"$root/etc/tinbox/power-hook.inner"
    printf '@OUTER@' >"$root/etc/tinbox/power-hook.outer"
)
echo '@URL@' >"$root/etc/tinbox/power-hook.url"
cat >"$root/usr/local/sbin/tinbox-power-hook" <<'HOOK'
@HOOK@
HOOK
chmod 0755 "$root/usr/local/sbin/tinbox-power-hook"
cat >"$root/etc/systemd/system/tinbox-power-hook.service" <<'UNIT'
[Unit]
Description=Power hook of Tinbox
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=/usr/local/sbin/tinbox-power-hook
Restart=always
RestartSec=10
NoNewPrivileges=yes
ProtectHome=yes
ProtectSystem=strict

[Install]
WantedBy=multi-user.target
UNIT
ln -sf ../tinbox-power-hook.service "$root/etc/systemd/system/multi-user.target.wants/"
if [ -z "$root" ]; then
    systemctl daemon-reload
    systemctl restart --no-block tinbox-power-hook.service
fi
