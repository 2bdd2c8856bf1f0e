//! A rack with a box in a container, its owner, attackers, and machines that boot.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use firmware::contained::{Contained, Place};
use firmware::owner::Owner;
use firmware::steps::CLAIM;
use firmware::{FIRST_LINE, Image, PATIENCE, boot_volume};
use qemu::{BoxProcess, BoxProgram, Host, Mark, Rack, RackConfig, Segment, poll};
use stdx::MacAddr;
use tempfile::TempDir;

use crate::machine::{IMAGE, IMAGE_PORT, Machine};

/// Address of the box on the rack's network, with the machines and attackers.
pub const BOX: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Address of the box on the owner's network.
pub const OWNERS_BOX: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// Address of the box's name server.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 20);
/// Address of the first attacker; the others follow it.
pub const ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 20);
/// Number of attackers' addresses.
pub const ATTACKERS: u8 = 6;
/// MAC address of the attackers' machine, which has Hardware on the box.
pub const ATTACKER_MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0xac, 1]);
/// Address of the owner's machine, which also serves the image.
pub const OWNER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 250);
/// Number of machines that boot.
pub const MACHINES: u8 = 20;
/// Size in bytes of the installed image.
const IMAGE_BYTES: usize = 8 << 20;
/// Box configuration. Unknown machines are answered and enrolled, so that a burst of them can be
/// tested.
const BOX_TOML: &str = "[[management]]\n\
    interface = \"eth1\"\n\
    address = \"10.78.0.1/24\"\n\
    name_servers = [\"10.78.0.20\"]\n\
    [[network]]\n\
    interface = \"eth0\"\n\
    address = \"10.77.0.1/24\"\n\
    mode = \"pool\"\n\
    pool = \"10.77.0.100-10.77.0.149\"\n\
    enroll = true\n\
    [images]\n\
    networks = [\"10.78.0.0/24\"]\n";
/// Console messages of a missed liveness check: of the supervisor, and of process 1.
const MISSED: [&str; 2] = ["a task of the box is stuck", "the supervisor hangs"];

/// All parts, in the order in which they must be dropped.
pub struct Lab {
    /// Container with the box.
    pub machine: Contained,
    _place: Place,
    _images: BoxProcess,
    /// Machines of the rack, which boot.
    pub machines: Vec<Machine>,
    /// Host of the owner.
    pub owner: Host,
    /// Host with all attackers' addresses.
    pub attacker: Host,
    rack: Rack,
    /// Path of the administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    _folder: TempDir,
}

impl Lab {
    /// Starts the box, claims it and waits until it serves the rack.
    ///
    /// # Errors
    /// A part of the rack cannot be built, or the box does not start.
    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir_in("/var/tmp")?;
        let image = Image::made(&folder.path().join("image"))?;
        let rack = Rack::build(RackConfig::new("hostile"))?;
        let owner = rack.add_host("owner", &[(Segment::Far, OWNER)])?;
        let images = images(&owner, &rack, folder.path())?;
        let attacker =
            rack.add_host("attacker", &[(Segment::Near, ATTACKER), (Segment::Far, NAME_SERVER)])?;
        attacker.set_mac("eth0", ATTACKER_MAC)?;
        attacker.ip(&attackers())?;
        let machines = (1..=MACHINES).map(|number| Machine::new(&rack, number, folder.path()));
        let machines = machines.collect::<Result<_>>()?;
        let disk = folder.path().join("disk");
        image.copy(&disk)?;
        boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes())?;
        let mac = |last| MacAddr([0x52, 0x54, 0, 0x77, 0xb0, last]);
        let cards = [(Segment::Near, mac(0)), (Segment::Far, mac(1))];
        let place = Place::with_cards(&rack, "box", &cards, folder.path())?;
        let machine = place.start(&disk)?;
        let serial = machine.serial();
        serial.wait_for_whole(Mark::START, CLAIM, PATIENCE)?;
        let claimed = Owner::claims(&owner, &OWNERS_BOX.to_string(), serial, folder.path());
        let kubeconfig = claimed.kubeconfig().to_owned();
        let lab = Self {
            machine,
            _place: place,
            _images: images,
            machines,
            owner,
            attacker,
            rack,
            kubeconfig,
            _folder: folder,
        };
        poll("the box to serve its network", PATIENCE, || lab.serves().then_some(()))?;
        Ok(lab)
    }

    fn serves(&self) -> bool {
        let lines = self.machine.serial().lines();
        lines.iter().any(|line| line.text.contains("reason=\"Serving\""))
    }

    /// Number of missed liveness checks and restarts of the supervisor.
    pub fn missed(&self) -> usize {
        let lines = self.machine.serial().lines();
        let said = |words: &str| lines.iter().filter(|line| line.text.contains(words)).count();
        MISSED.map(said).iter().sum::<usize>() + said(FIRST_LINE).saturating_sub(1)
    }

    /// Stops all parts.
    ///
    /// # Errors
    /// The box has ended before.
    pub fn end(self) -> Result<()> {
        ensure!(self.machine.process_1().is_ok(), "the box ended");
        let Self { machine, rack, .. } = self;
        drop(machine);
        rack.succeed();
        Ok(())
    }
}

/// Serves the image from the owner's machine with busybox httpd.
fn images(owner: &Host, rack: &Rack, folder: &Path) -> Result<BoxProcess> {
    let served = folder.join("images");
    fs::create_dir(&served)?;
    // Neither zeros, which are skipped, nor constant data.
    let block = (0..IMAGE_BYTES).map(|at| (at ^ at >> 7 ^ at >> 13) as u8);
    fs::write(served.join(IMAGE), block.collect::<Vec<_>>())?;
    let mut server = BoxProgram::new("busybox", rack.dir().join("images.log"));
    server = server.args(["httpd", "-f", "-p", &IMAGE_PORT.to_string(), "-h"]).args([&served]);
    owner.spawn(server).context("cannot serve the image")
}

/// Lines for `ip` that add the attackers' addresses.
fn attackers() -> String {
    let [a, b, c, first] = ATTACKER.octets();
    let address = |number| format!("address add {a}.{b}.{c}.{}/24 dev eth0\n", first + number);
    (1..ATTACKERS).map(address).collect::<String>()
}
