//! A box in a container: the root file system, the kernel command line and the partitions of a
//! flashed disk, with `tinboxd` as process 1 of its own process, mount, UTS, IPC and network
//! namespaces. It starts in a second or two, at the host's own speed.
//!
//! Real parts: `tinboxd` as process 1 and as supervisor, both file systems that it writes to, on
//! the partitions of a loop device, with their journals and flushes; the network interface (a veth
//! on a rack's cable); restart and power off by `reboot(2)`.
//!
//! Parts that are not real, and stay with the emulated machines:
//! - firmware, GRUB and its script: [`loader`] chooses a slot by `grubenv` as the script does;
//! - the box's kernel, and dm-verity: the root is the squashfs alone, read-only, so that a changed
//!   byte is not noticed;
//! - FAT: the boot volume is in memory while the box runs. [`boot_volume`] copies its files from
//!   the disk before a start and back after the end, so FAT is not tested after a power cut;
//! - hardware: there is no watchdog, no LEDs, no crash record; power button, keys and screen are
//!   files ([`devices`]). The clock is the host's, and the box may not set it. Where the host's
//!   root lacks `CAP_SYS_RESOURCE`, the box cannot grow its cache's file system, and reports that;
//! - a power cut in the middle of a write. [`Contained::cut_power`] gives the next start the disk
//!   as the file systems had written it at one moment. Data that they held in memory is lost, as in
//!   a real cut. `qemu::write_again` simulates writes that a device loses or reorders.
//!
//! The host's kernel needs loop devices, squashfs with zstd, ext4 and overlay; it needs neither
//! FAT nor GPT.
//!
//! Enter at [`Place::new`] and [`Place::start`].

pub mod boot_volume;
pub mod devices;
mod disk;
pub mod loader;
mod root;
pub mod run;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use qemu::{ConsoleProcess, Error, Host, Rack, Segment, Serial};
use stdx::MacAddr;
use stdx::testing::PATIENCE;

use devices::Devices;
pub use root::Staging;

use crate::owner::program;

/// Name of the folder in which the machine lays out the root.
const STAGING: &str = "staging";
/// Name of the folder with the files of the machine's devices.
const DEVICES: &str = "devices";
/// Program that simulates the machine.
const PROGRAM: &str = "contained-box";

/// A command to the program that simulates the machine, as a line of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Cut the power now.
    Cut,
}

impl Order {
    fn word(self) -> &'static str {
        match self {
            Self::Cut => "cut",
        }
    }

    fn of(line: &str) -> Option<Self> {
        (line.trim() == Self::Cut.word()).then_some(Self::Cut)
    }
}

/// A place on a rack's near cable for one box. It outlives the box, because the box needs key
/// devices whose pipes stay open.
#[derive(Debug)]
pub struct Place {
    host: Host,
    name: String,
    /// Folder of the machine's own files.
    work: PathBuf,
    /// The rack's folder, for the box's console output.
    logs: PathBuf,
    starts: Cell<u32>,
    devices: Devices,
}

impl Place {
    /// Creates a place called `name` (at most ten small letters and digits). Its network interface
    /// has the hardware address `mac`, and no address yet. `work` is a folder for its files.
    ///
    /// # Errors
    /// The rack has a place of that name.
    pub fn new(rack: &Rack, name: &str, mac: MacAddr, work: &Path) -> Result<Self, Error> {
        Self::made(rack, (name, &[(Segment::Near, mac)]), work, false)
    }

    /// Creates a place with several network interfaces: their segments and hardware addresses.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn with_cards(
        rack: &Rack,
        name: &str,
        cards: &[(Segment, MacAddr)],
        work: &Path,
    ) -> Result<Self, Error> {
        Self::made(rack, (name, cards), work, false)
    }

    /// Creates a place whose box has a small screen at `/dev/fb0`.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn with_screen(rack: &Rack, name: &str, mac: MacAddr, work: &Path) -> Result<Self, Error> {
        Self::made(rack, (name, &[(Segment::Near, mac)]), work, true)
    }

    fn made(
        rack: &Rack,
        (name, cards): (&str, &[(Segment, MacAddr)]),
        work: &Path,
        has_screen: bool,
    ) -> Result<Self, Error> {
        let unused = [192, 0, 2, 1].into();
        let legs: Vec<_> = cards.iter().map(|(segment, _)| (*segment, unused)).collect();
        let host = rack.add_host(name, &legs)?;
        for (number, (_, mac)) in cards.iter().enumerate() {
            let card = format!("eth{number}");
            host.ip(&format!(
                "link set {card} down\naddress flush dev {card}\nlink set {card} address {mac}\n"
            ))?;
        }
        let (work, logs) = (work.join(name), rack.dir().to_owned());
        let devices = Devices::new(&work.join(DEVICES), has_screen);
        let devices =
            devices.map_err(|source| Error::Io { attempted: "make devices".to_owned(), source })?;
        Ok(Self { host, name: name.to_owned(), work, logs, starts: Cell::new(0), devices })
    }

    /// Power button, keys and screen of the place.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Switches on a box with this disk. Its console output goes to `NAME-serial-NUMBER.log` in the
    /// rack's folder.
    ///
    /// # Errors
    /// The program of the machine does not start.
    pub fn start(&self, disk: &Path) -> Result<Contained, Error> {
        self.start_by_menu(disk, None)
    }

    /// Starts the box with `safe` or `factory` chosen in the boot menu.
    ///
    /// # Errors
    /// As [`Place::start`].
    pub fn start_by_menu(&self, disk: &Path, chosen: Option<&str>) -> Result<Contained, Error> {
        let mut command = self.host.command("unshare");
        command.args(["--mount", "--propagation", "private"]).arg(program(PROGRAM));
        command.arg("on").arg(disk).arg(&self.work).args(chosen);
        let number = self.starts.replace(self.starts.get() + 1);
        let log = self.logs.join(format!("{}-serial-{number}.log", self.name));
        let process = ConsoleProcess::start(command, &log)?;
        let root = Staging::at(&self.work.join(STAGING)).root();
        Ok(Contained { process, root })
    }
}

/// A box that is on; dropping it cuts the power.
#[derive(Debug)]
pub struct Contained {
    process: ConsoleProcess,
    root: PathBuf,
}

impl Contained {
    /// Serial console of the box.
    pub fn serial(&self) -> &Serial {
        self.process.serial()
    }

    /// A command of the host that runs `program` with the box's mounts, which are below
    /// [`Contained::root`].
    ///
    /// # Errors
    /// Process 1 does not run.
    pub fn command(&self, program: &str) -> Result<Command, Error> {
        self.inside("--mount", program)
    }

    /// A command of the host that runs `program` with the box's network interfaces.
    ///
    /// # Errors
    /// Process 1 does not run.
    pub fn network_command(&self, program: &str) -> Result<Command, Error> {
        self.inside("--net", program)
    }

    fn inside(&self, namespace: &str, program: &str) -> Result<Command, Error> {
        let mut command = Command::new("nsenter");
        command.args([namespace, "--target", &self.process_1()?.to_string(), program]);
        Ok(command)
    }

    /// Process ID of the box's process 1 on the host.
    ///
    /// # Errors
    /// It does not run.
    pub fn process_1(&self) -> Result<u32, Error> {
        let of = |parent: u32| {
            let children = format!("/proc/{parent}/task/{parent}/children");
            std::fs::read_to_string(children).unwrap_or_default()
        };
        let starts = of(self.process.pid());
        let inner = starts.split_whitespace().filter_map(|pid| pid.parse().ok()).map(of);
        let mut first = inner.filter_map(|inner| inner.split_whitespace().next()?.parse().ok());
        let missing = || Error::Config("process 1 of the box does not run".to_owned());
        first.next_back().ok_or_else(missing)
    }

    /// The box's root, for [`Contained::command`].
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cuts the power. The disk then has the state that the box's file systems had written at one
    /// moment; data that they still held in memory is lost.
    ///
    /// # Errors
    /// The box is off, or its disk cannot be copied.
    pub fn cut_power(mut self) -> Result<(), Error> {
        self.order(Order::Cut)?;
        self.wait_off()
    }

    /// Waits until the box has switched itself off and its disk is written.
    ///
    /// # Errors
    /// The box is still on after [`PATIENCE`], or the machine failed.
    pub fn wait_off(&mut self) -> Result<(), Error> {
        let status = self.process.wait(PATIENCE)?;
        if status.success() {
            return Ok(());
        }
        let lines = self.serial().lines();
        let last = lines.iter().rev().take(8).rev().map(|line| format!("\n  | {}", line.text));
        let outcome = format!("{status}{}", last.collect::<String>());
        Err(Error::Command { command: PROGRAM.to_owned(), outcome })
    }

    fn order(&self, order: Order) -> Result<(), Error> {
        self.serial().send(&format!("{}\n", order.word()))
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        // A failed test does not need its disk.
        if self.process.is_running() && !std::thread::panicking() && self.order(Order::Cut).is_ok()
        {
            let _ = self.process.wait(PATIENCE);
        }
    }
}
