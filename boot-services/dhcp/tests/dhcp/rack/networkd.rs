//! Runs systemd-networkd in the rack's namespace without D-Bus, without udev and with the given
//! settings only.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use stdx::testing::wait_for;

use super::{Wire, sh};

const PROGRAM: &str = "/lib/systemd/systemd-networkd";

/// Script that prepares networkd's mounts, which are private to the client through `ip netns exec`.
/// With a read-only /sys networkd does not wait for udev. networkd must own its state folder.
const PREPARE: &str = "mount -t tmpfs none /run
mount -t tmpfs none /etc/systemd/network
mount -o remount,bind,ro /sys
mkdir -p /run/systemd/netif
chown systemd-network: /run/systemd/netif
printf '[Match]\\nName=nuc0\\n%s' \"$SETTINGS\" >/etc/systemd/network/10-nuc0.network
exec /lib/systemd/systemd-networkd";

/// Running networkd, until dropped.
pub struct Networkd(Child);

impl Networkd {
    /// Starts networkd with these sections of a `.network` file (systemd.network(5)) for `nuc0`.
    pub fn start(wire: &Wire, settings: &str) -> Self {
        assert!(fs::exists(PROGRAM).unwrap(), "systemd is installed");
        let child = wire
            .rack("sh")
            .args(["-ec", PREPARE])
            .env("SETTINGS", settings)
            .stderr(Stdio::null())
            .spawn()
            .expect("ip (iproute2) is installed");
        Self(child)
    }

    /// Returns networkd's recorded IPv4 lease, after it has configured the interface.
    pub fn lease(&self) -> BTreeMap<String, String> {
        self.link("ADMIN_STATE", "configured");
        wait_for("networkd's lease", || self.state("leases"))
    }

    /// Returns networkd's record of the interface, once `key` is `value`.
    pub fn link(&self, key: &str, value: &str) -> BTreeMap<String, String> {
        wait_for(&format!("{key}={value}"), || {
            let link = self.state("links")?;
            (link.get(key).is_some_and(|it| it == value)).then_some(link)
        })
    }

    /// Ends networkd as a shutdown does, and waits for its end.
    pub fn stop(mut self) {
        sh(&format!("kill -TERM {}", self.0.id()));
        assert!(self.0.wait().unwrap().success(), "networkd ends cleanly");
    }

    fn state(&self, folder: &str) -> Option<BTreeMap<String, String>> {
        let root = PathBuf::from(format!("/proc/{}/root", self.0.id()));
        let index = fs::read_to_string(root.join("sys/class/net/nuc0/ifindex")).ok()?;
        let path = root.join("run/systemd/netif").join(folder).join(index.trim());
        let text = fs::read_to_string(path).ok()?;
        let fields = text.lines().filter_map(|line| line.split_once('='));
        Some(fields.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }
}

impl Drop for Networkd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
