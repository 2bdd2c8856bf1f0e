//! The box in a container: restarts, power cuts, resets, backups and claims of a flashed disk,
//! without an emulated machine (see `firmware::contained` for the omitted parts).

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod backup;
mod boot_volume;
mod claim;
mod confined;
mod damaged;
mod full;
mod loader;
mod lost;
mod networks;
mod panel;
mod power;
mod reset;
mod settings;
mod unmount;

use std::path::{Path, PathBuf};

use firmware::Image;
use firmware::contained::Place;
use qemu::{BoxProcess, Dnsmasq, Host, Pool, Rack, RackConfig, Segment};
use stdx::MacAddr;
use tempfile::TempDir;

/// Addresses that the DHCP server assigns.
const POOL: Pool = Pool { first: ip(100), last: ip(199) };

const fn ip(last: u8) -> std::net::Ipv4Addr {
    std::net::Ipv4Addr::new(10, 77, 0, last)
}

fn mac(last: u8) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0x77, 0xc0, last])
}

/// A near cable with a DHCP server and the owner's machine.
struct Lab {
    // Dropped before the rack that it runs on.
    _server: BoxProcess,
    owner: Host,
    rack: Rack,
    image: Image,
    folder: TempDir,
}

impl Lab {
    /// Builds the lab and the image; `name` is unique to the test.
    fn new(name: &str) -> Self {
        // `/tmp` may be in memory, and each power cut copies a disk.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let image = Image::made(&folder.path().join("image")).unwrap();
        let rack = Rack::build(RackConfig::new(&format!("contained-{name}"))).unwrap();
        let server = rack.add_host("server", &[(Segment::Near, ip(2))]).unwrap();
        let server = Dnsmasq::new(POOL).start(&server, rack.dir(), "dnsmasq").unwrap();
        let owner = rack.add_host("owner", &[(Segment::Near, ip(250))]).unwrap();
        Self { _server: server, owner, rack, image, folder }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a place for a box whose hardware address ends with `last`.
    fn place(&self, name: &str, last: u8) -> Place {
        Place::new(&self.rack, name, mac(last), self.folder()).unwrap()
    }

    /// Copies the image to a new disk.
    fn disk(&self, name: &str) -> PathBuf {
        let disk = self.folder().join(name);
        self.image.copy(&disk).unwrap();
        disk
    }

    fn succeed(self) {
        self.rack.succeed();
    }
}
