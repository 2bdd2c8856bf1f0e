//! A board: one machine with a disk, for a complete system image, alone or with a cable to a rack's
//! network.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stdx::MacAddr;
use stdx::testing::PATIENCE;

use crate::machine::{OVMF_CODE, OVMF_VARS};
use crate::namespace::Namespace;
use crate::qmp::{Events, Qmp};
use crate::tpm::Tpm;
use crate::{Error, Nic, Segment, Serial, children, poll};

/// RAM of the machine; the box requires at least twice this amount.
const MEMORY_MIB: u32 = 512;

/// Bus to which the disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    /// Paravirtual disk of QEMU: virtio-blk.
    Virtio,
    /// NVMe, as in a current NUC.
    Nvme,
    /// SATA, as in an older NUC.
    Ahci,
    /// Memory stick on a USB bus.
    Usb,
}

/// Disk of a board: its image, bus and optional write log.
#[derive(Debug, Clone, Copy)]
pub struct Drive<'a> {
    disk: &'a Path,
    bus: Bus,
    log: Option<&'a Path>,
    tpm: Option<&'a Path>,
}

impl<'a> Drive<'a> {
    /// Disk with the raw image file `disk`, attached to `bus`. The board writes to this file.
    pub fn new(disk: &'a Path, bus: Bus) -> Self {
        Self { disk, bus, log: None, tpm: None }
    }

    /// Adds a log of the disk's writes and flushes, in the new file `log`, for
    /// [`write_again`](crate::write_again).
    pub fn logged(self, log: &'a Path) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Adds a TPM to the board, with its state in the folder `state`.
    pub fn with_tpm(self, state: &'a Path) -> Self {
        Self { tpm: Some(state), ..self }
    }
}

/// Clock of a board's guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuestClock {
    /// Real time, with two processors.
    Real,
    /// Counted instructions of one processor, 16 ns each. Idle time takes no real time: the clock
    /// jumps to the next timer. With two processors such a guest takes minutes to boot. With QEMU's
    /// own choice of nanoseconds (`shift=auto`) the firmware's waits take minutes.
    Counted,
}

/// A NIC and the tap interface at the other end of its cable.
#[derive(Debug)]
pub(crate) struct Cable {
    pub(crate) rack: Namespace,
    pub(crate) tap: String,
    pub(crate) nic: Nic,
    pub(crate) mac: MacAddr,
}

impl Cable {
    /// Creates a cable with a new tap in this rack.
    pub(crate) fn laid(
        rack: Namespace,
        tap: &str,
        (segment, nic, mac): (Segment, Nic, MacAddr),
    ) -> Result<Self, Error> {
        let bridge = segment.bridge();
        rack.ip(&format!("tuntap add dev {tap} mode tap\nlink set {tap} master {bridge} up\n"))?;
        Ok(Self { rack, tap: tap.to_owned(), nic, mac })
    }
}

/// A machine that is on. Dropping this value cuts the power of the machine.
#[derive(Debug)]
pub struct Board {
    child: Child,
    serial: Arc<Serial>,
    monitor: PathBuf,
    qmp: Option<Qmp>,
    log: Option<PathBuf>,
    cables: Vec<Cable>,
    _tpm: Option<Tpm>,
}

/// Ignores QMP events: no test waits for events of a board.
struct Deaf;

impl Events for Deaf {
    fn event(&self, _: &str, _: &Value) {}

    fn closed(&self) {}
}

impl Board {
    /// Starts a machine with `drive` and UEFI firmware. Each start has fresh firmware variables:
    /// changes of an earlier start are lost. The machine's files go to `folder`; `serial.log` is
    /// the console output.
    ///
    /// # Errors
    /// The error of a file or of QEMU.
    pub fn start(folder: &Path, drive: &Drive<'_>) -> Result<Self, Error> {
        Self::launch(folder, drive, Vec::new(), GuestClock::Real)
    }

    /// Starts with a clock that skips idle time, so that minutes of sleep in the guest pass in a
    /// moment. Only for a guest that waits for no external event: no network, no key press.
    ///
    /// # Errors
    /// As [`Board::start`].
    pub fn start_skipping_idle(folder: &Path, drive: &Drive<'_>) -> Result<Self, Error> {
        Self::launch(folder, drive, Vec::new(), GuestClock::Counted)
    }

    pub(crate) fn start_with(
        folder: &Path,
        drive: &Drive<'_>,
        cables: Vec<Cable>,
    ) -> Result<Self, Error> {
        Self::launch(folder, drive, cables, GuestClock::Real)
    }

    fn launch(
        folder: &Path,
        drive: &Drive<'_>,
        cables: Vec<Cable>,
        clock: GuestClock,
    ) -> Result<Self, Error> {
        let variables = folder.join("variables");
        std::fs::copy(OVMF_VARS, &variables).map_err(Error::path("copy to", &variables))?;
        if let Some(log) = drive.log {
            File::create(log).map_err(Error::path("create", log))?;
        }
        let (serial, errors) = (folder.join("serial.log"), folder.join("qemu.log"));
        let open = |path: &Path| File::create(path).map_err(Error::path("create", path));
        let mut command = match cables.first() {
            Some(cable) => cable.rack.command("qemu-system-x86_64"),
            None => Command::new("qemu-system-x86_64"),
        };
        let monitor = folder.join("qmp");
        command.args(arguments(drive, &variables, clock)).args(network(&cables));
        command.args(timing(clock)).args(steps(clock));
        command.args(["-qmp", &format!("unix:{},server=on,wait=off", monitor.display())]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(open(&errors)?);
        let tpm = drive.tpm.map(|state| Tpm::start(state, folder)).transpose()?;
        command.args(tpm.iter().flat_map(|tpm| &tpm.arguments));
        let mut child = children::spawn(command).map_err(Error::io("start qemu-system-x86_64"))?;
        let serial = Arc::new(Serial::new(0, open(&serial)?));
        let attached = serial.attach(&mut child);
        let log = drive.log.map(Path::to_owned);
        let board = Self { child, serial, monitor, qmp: None, log, cables, _tpm: tpm };
        attached.map(|()| board)
    }

    /// Serial console of the board.
    pub fn serial(&self) -> &Serial {
        &self.serial
    }

    /// Presses the power button briefly: the guest receives an ACPI event and can shut down.
    ///
    /// # Errors
    /// The error of QEMU.
    pub fn press_power(&mut self) -> Result<(), Error> {
        self.monitor()?.ask("system_powerdown", json!({})).map(drop)
    }

    /// Cuts the power. Returns the length of the disk's write log in bytes before the cut, or 0
    /// without such a log. Entries after this length are flushes by the end of QEMU, which a real
    /// power cut would not do.
    ///
    /// # Errors
    /// The error of QEMU, or QEMU does not end.
    pub fn cut_power(mut self) -> Result<u64, Error> {
        self.monitor()?;
        let logged = match &self.log {
            Some(log) => std::fs::metadata(log).map_err(Error::path("look at", log))?.len(),
            None => 0,
        };
        self.monitor()?.ask("quit", json!({}))?;
        self.wait_off(PATIENCE)?;
        Ok(logged)
    }

    /// Writes the contents of the board's screen to a PNG file.
    ///
    /// # Errors
    /// QEMU cannot write to `path`.
    pub fn screenshot(&mut self, path: &Path) -> Result<(), Error> {
        let path = std::path::absolute(path).map_err(Error::path("find", path))?;
        let arguments = json!({ "filename": path, "format": "png" });
        self.monitor()?.ask("screendump", arguments).map(drop)
    }

    /// Presses (`down` is true) or releases a key of the board's keyboard. `key` is QEMU's name of
    /// the key, such as `ret`.
    ///
    /// # Errors
    /// The error of QEMU.
    pub fn key(&mut self, key: &str, down: bool) -> Result<(), Error> {
        let key = json!({ "down": down, "key": { "type": "qcode", "data": key } });
        let events = json!({ "events": [{ "type": "key", "data": key }] });
        self.monitor()?.ask("input-send-event", events).map(drop)
    }

    /// Plugs in (`is_in` is true) or unplugs the cable of NIC number `card`, from 0.
    ///
    /// # Errors
    /// The error of QEMU.
    pub fn plug(&mut self, card: usize, is_in: bool) -> Result<(), Error> {
        let link = json!({ "name": format!("n{card}"), "up": is_in });
        self.monitor()?.ask("set_link", link).map(drop)
    }

    /// Adds a USB NIC at the end of this cable. Only a board whose disk is on USB has a USB bus
    /// ([`Bus::Usb`]).
    pub(crate) fn put_in(&mut self, cable: Cable) -> Result<(), Error> {
        let tap = json!({
            "type": "tap", "id": "late", "ifname": cable.tap, "script": "no", "downscript": "no",
        });
        self.monitor()?.ask("netdev_add", tap)?;
        let card = json!({ "driver": "usb-net", "netdev": "late", "mac": cable.mac.to_string() });
        self.monitor()?.ask("device_add", card)?;
        self.cables.push(cable);
        Ok(())
    }

    /// Returns the connection to QEMU's monitor. The first call opens the connection, and later
    /// calls use it again: the monitor accepts one client at a time.
    fn monitor(&mut self) -> Result<&Qmp, Error> {
        let qmp = match self.qmp.take() {
            Some(qmp) => qmp,
            None => {
                let alive = || matches!(self.child.try_wait(), Ok(None));
                let qmp = Qmp::connect(&self.monitor, alive)?;
                qmp.start(Deaf)?;
                qmp
            }
        };
        Ok(self.qmp.insert(qmp))
    }

    /// Waits until the board has switched itself off.
    ///
    /// # Errors
    /// The board is still on after `within`.
    pub fn wait_off(&mut self, within: Duration) -> Result<(), Error> {
        let off = || matches!(self.child.try_wait(), Ok(Some(_))).then_some(());
        poll("the board to switch itself off", within, off)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        children::end(&mut self.child);
        for Cable { rack, tap, .. } in &self.cables {
            // If this fails, the tap is removed together with the rack.
            let _ = rack.ip(&format!("link delete {tap}\n"));
        }
    }
}

fn network(cables: &[Cable]) -> Vec<String> {
    let mut arguments = vec!["-nic".to_owned(), "none".to_owned()];
    for (at, Cable { tap, nic, mac, .. }) in cables.iter().enumerate() {
        let tap = format!("tap,id=n{at},ifname={tap},script=no,downscript=no");
        // No option ROM: the board boots from its disk.
        let card = format!("{},netdev=n{at},mac={mac},romfile=", nic.device());
        arguments.extend(["-netdev".to_owned(), tap, "-device".to_owned(), card]);
    }
    arguments
}

/// QEMU arguments for processors and clock.
fn timing(clock: GuestClock) -> &'static [&'static str] {
    match clock {
        GuestClock::Real => &["-accel", "tcg", "-smp", "2"],
        GuestClock::Counted => {
            &["-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=4,sleep=off"]
        }
    }
}

/// QEMU arguments that limit each jump of the counted clock to 500 microseconds, because the timer
/// of a packet filter expires at this interval. Without the limit, the clock could jump over the
/// guest's disk timeout while a busy computer delays the disk. The filter is on a network without
/// another port.
fn steps(clock: GuestClock) -> &'static [&'static str] {
    match clock {
        GuestClock::Real => &[],
        GuestClock::Counted => &[
            "-netdev",
            "hubport,id=nowhere,hubid=0",
            "-object",
            "filter-buffer,id=steps,netdev=nowhere,interval=500",
        ],
    }
}

/// Value of QEMU's option `aio` for the disk's file. With the counted clock this is `io_uring`, if
/// the kernel permits it: with `threads`, the clock may jump while a busy computer delays the I/O
/// thread.
fn reading(clock: GuestClock) -> &'static str {
    let forbidden = || std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    match clock {
        GuestClock::Counted if forbidden().is_ok_and(|level| level.trim() == "0") => "io_uring",
        GuestClock::Counted | GuestClock::Real => "threads",
    }
}

fn arguments(drive: &Drive<'_>, variables: &Path, clock: GuestClock) -> Vec<String> {
    let flash = "if=pflash,format=raw";
    let device = match drive.bus {
        Bus::Virtio => "virtio-blk-pci,drive=disk,bootindex=1",
        Bus::Nvme => "nvme,drive=disk,serial=TINBOX,bootindex=1",
        Bus::Ahci => "ide-hd,drive=disk,bus=ide.0,bootindex=1",
        Bus::Usb => "usb-storage,drive=disk,bootindex=1",
    };
    let mut arguments = vec!["-nodefaults", "-no-user-config", "-display", "none", "-vga", "std"];
    arguments.extend(["-machine", "q35", "-cpu", "max"]);
    arguments.extend(["-chardev", "stdio,id=serial0,signal=off", "-serial", "chardev:serial0"]);
    if drive.bus == Bus::Usb {
        arguments.extend(["-device", "qemu-xhci"]);
    }
    let mut arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    option("-m", MEMORY_MIB.to_string());
    option("-drive", format!("{flash},readonly=on,file={OVMF_CODE}"));
    option("-drive", format!("{flash},file={}", variables.display()));
    let disk = drive.disk.display();
    match drive.log {
        None => option(
            "-drive",
            format!(
                "if=none,id=disk,format=raw,cache=unsafe,discard=unmap,aio={},file={disk}",
                reading(clock)
            ),
        ),
        // Flushes are in the log; the machine's own disk needs no flush.
        Some(log) => option(
            "-blockdev",
            format!(
                "driver=blklogwrites,node-name=disk,discard=unmap,file.driver=file,\
                 file.cache.no-flush=on,file.filename={disk},log.driver=file,\
                 log.cache.no-flush=on,log.filename={}",
                log.display()
            ),
        ),
    }
    option("-device", device.to_owned());
    arguments
}

#[cfg(test)]
mod tests {
    use super::{GuestClock, reading, steps, timing};

    #[test]
    fn only_one_processor_is_counted_and_its_clock_makes_small_jumps() {
        let line = |clock| [timing(clock), steps(clock)].concat().join(" ");
        assert_eq!(line(GuestClock::Real), "-accel tcg -smp 2");
        assert_eq!(reading(GuestClock::Real), "threads");
        let counted = line(GuestClock::Counted);
        assert!(counted.contains("-smp 1 -icount shift=4,sleep=off "), "{counted}");
        assert!(counted.ends_with("filter-buffer,id=steps,netdev=nowhere,interval=500"));
    }
}
