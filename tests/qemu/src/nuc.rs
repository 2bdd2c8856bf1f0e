//! One NUC: a QEMU process while it is on, only files while it is off.

mod run;

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};

use serde_json::json;
use stdx::MacAddr;

use self::run::{Boot, Run};
use crate::machine::{self, Files};
use crate::namespace::Namespace;
use crate::plain_pxe::PlainPxe;
use crate::power::PowerLog;
use crate::vlan_port::VlanPort;
use crate::{
    Action, BmcAccess, BootDevice, BootPath, Error, Firmware, NucConfig, Origin, PowerEvent,
    Serial, VlanTraffic, children, hold, proc,
};

/// Maximum length of a Unix socket's path (sun_path in unix(7), without its final NUL).
const MAX_SOCKET_PATH: usize = 107;

/// A virtual NUC with its disks, its BMC and its power log.
#[derive(Debug)]
pub struct Nuc {
    number: u8,
    config: NucConfig,
    files: Files,
    rack: Namespace,
    bmc: BmcAccess,
    serial: Arc<Serial>,
    log: PowerLog,
    boot: Mutex<Boot>,
    run: Mutex<Option<Run>>,
    unplugged: AtomicBool,
    retired: AtomicBool,
    plain: Mutex<Option<PlainPxe>>,
    port: Mutex<Option<VlanPort>>,
    me: Weak<Nuc>,
}

impl Nuc {
    /// Creates the files of a NUC that is off: blank disk, fresh firmware variables.
    pub(crate) fn create(
        number: u8,
        config: NucConfig,
        work: &Path,
        out: &Path,
        rack: Namespace,
        bmc: BmcAccess,
        power_log: File,
    ) -> Result<Arc<Self>, Error> {
        let files = Files {
            disk: work.join(format!("disk{number}.img")),
            vars: work.join(format!("vars{number}.fd")),
            monitor: work.join(format!("qmp{number}.sock")),
            qemu_log: out.join(format!("nuc{number}.qemu.log")),
            said: work.join(format!("said{number}.sock")),
            told: work.join(format!("told{number}.sock")),
            came: work.join(format!("came{number}.sock")),
            heard: work.join(format!("heard{number}.sock")),
        };
        if files.monitor.as_os_str().len() > MAX_SOCKET_PATH {
            return Err(Error::Config(format!("{} is too long", files.monitor.display())));
        }
        if config.firmware() == Firmware::Uefi {
            std::fs::copy(machine::OVMF_VARS, &files.vars)
                .map_err(Error::path("copy the firmware's variables to", &files.vars))?;
        }
        let plain = config.path == BootPath::BiosPlainPxe;
        let plain = plain.then(|| PlainPxe::start(&files.said, &files.told)).transpose()?;
        let (up, down) = ([&*files.said, &*files.told], [&*files.came, &*files.heard]);
        let port = config.vlan.map(|vlan| VlanPort::start(vlan, up, down)).transpose()?;
        let console = out.join(format!("nuc{number}.serial.log"));
        let console = File::create(&console).map_err(Error::path("create", &console))?;
        let nuc = Arc::new_cyclic(|me| Self {
            number,
            config,
            files,
            rack,
            bmc,
            serial: Arc::new(Serial::new(number, console)),
            log: PowerLog::new(number, power_log),
            boot: Mutex::new(Boot { once: BootDevice::Normal, index: 0, in_force: true }),
            run: Mutex::new(None),
            unplugged: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            plain: Mutex::new(plain),
            port: Mutex::new(port),
            me: Weak::clone(me),
        });
        nuc.blank_disk()?;
        Ok(nuc)
    }

    /// Number in the rack, from 1; the last byte of MAC address and UUID.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// MAC address of the NUC: `52:54:00:77:00:NN`.
    pub fn mac(&self) -> MacAddr {
        machine::mac(self.number)
    }

    /// The SMBIOS UUID as the firmware shows it, lower case.
    pub fn uuid(&self) -> String {
        machine::uuid(self.number)
    }

    /// Configuration of this NUC.
    pub fn config(&self) -> &NucConfig {
        &self.config
    }

    /// Address and credentials of the NUC's BMC.
    pub fn bmc(&self) -> &BmcAccess {
        &self.bmc
    }

    /// Serial console of the NUC.
    pub fn serial(&self) -> &Serial {
        &self.serial
    }

    /// The raw image file of the NUC's disk. Write to this file only while the NUC is off.
    pub fn disk(&self) -> &Path {
        &self.files.disk
    }

    /// The image file of the NUC's second disk (`which` is 2), third disk (3) and so on.
    pub fn more_disk(&self, which: usize) -> PathBuf {
        self.files.more_disk(which)
    }

    /// The image file of the NUC's NVMe disk.
    pub fn nvme_disk(&self) -> PathBuf {
        self.files.nvme_disk()
    }

    /// Replaces every disk by an empty one of the configured size.
    ///
    /// # Errors
    /// The NUC is on, or the file cannot be made.
    pub fn blank_disk(&self) -> Result<(), Error> {
        if self.is_on() {
            return Err(self.power_error("replace the disk", "it is on"));
        }
        let blank = |path: &Path, bytes: u64| {
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
            file.and_then(|file| file.set_len(bytes)).map_err(Error::path("create disk", path))
        };
        blank(&self.files.disk, self.config.disk_bytes)?;
        let mut more = (2..).zip(&self.config.more_disks);
        more.try_for_each(|(which, bytes)| blank(&self.files.more_disk(which), *bytes))?;
        let others = self.files.others(&self.config);
        others.into_iter().try_for_each(|(other, bytes)| blank(&other.file, bytes))
    }

    /// True while the NUC is on, that is, while its QEMU process runs.
    pub fn is_on(&self) -> bool {
        self.pid().is_some()
    }

    /// IPv4 traffic that the NUC sent through its switch port; `None` for a port without a tagged
    /// VLAN.
    pub fn vlan_traffic(&self) -> Option<VlanTraffic> {
        hold(&self.port).as_ref().map(VlanPort::traffic)
    }

    /// Process ID of the NUC's QEMU; `None` while the NUC is off.
    pub fn pid(&self) -> Option<u32> {
        let mut run = hold(&self.run);
        let child = &mut run.as_mut()?.child;
        matches!(child.try_wait(), Ok(None)).then(|| child.id())
    }

    /// CPU time that the NUC's QEMU has used since power-on; `None` while the NUC is off.
    pub fn cpu(&self) -> Option<Duration> {
        proc::cpu(self.pid()?)
    }

    /// Every power event, oldest first.
    pub fn power_events(&self) -> Vec<PowerEvent> {
        self.log.events()
    }

    /// Power states that clients of the BMC have read, and when each was first read; true for on.
    /// Equal states in sequence are one entry.
    pub fn power_reports(&self) -> Vec<(SystemTime, bool)> {
        self.log.reports()
    }

    /// Number of events of `origin` with `action` that changed the state.
    pub fn count(&self, origin: Origin, action: Action) -> usize {
        let events = self.log.events();
        events.iter().filter(|e| e.origin == origin && e.action == action && e.changed).count()
    }

    /// The one-time boot device for the next boot.
    pub fn boot_override(&self) -> BootDevice {
        hold(&self.boot).once
    }

    /// Presses the power button of a NUC that is off.
    ///
    /// # Errors
    /// QEMU does not start.
    pub fn power_on(&self) -> Result<(), Error> {
        self.on(Origin::Harness)
    }

    /// Switches the NUC off at once, as a long press of the power button does.
    pub fn power_off(&self) {
        self.off(Origin::Harness, Action::Off);
    }

    /// Presses the reset button.
    ///
    /// # Errors
    /// The NUC is off.
    pub fn reset(&self) -> Result<(), Error> {
        self.hard_reset(Origin::Harness)
    }

    /// Cuts the mains power: QEMU is killed. Data that the guest had not written to its disk is
    /// lost. The NUC stays off when the power returns. (Its BMC, unlike a real one, keeps running.)
    pub fn cut_power(&self) {
        self.off(Origin::Harness, Action::PowerCut);
    }

    /// Unplugs the network cable; it stays unplugged over power cycles.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn unplug(&self) -> Result<(), Error> {
        self.cable(false)
    }

    /// Plugs the network cable in again.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn plug(&self) -> Result<(), Error> {
        self.cable(true)
    }

    /// Writes the contents of the NUC's screen to a PNG file.
    ///
    /// # Errors
    /// The NUC is off, or QEMU cannot write to `path`.
    pub fn screenshot(&self, path: &Path) -> Result<(), Error> {
        let path = std::path::absolute(path).map_err(Error::path("find", path))?;
        let qmp = self.running("take a screenshot")?;
        qmp.ask("screendump", json!({ "filename": path, "format": "png" })).map(drop)
    }

    /// Returns true while the NUC is on, and records that the BMC reports this state.
    pub(crate) fn bmc_power(&self) -> bool {
        let is_on = self.is_on();
        self.log.report(is_on);
        is_on
    }

    pub(crate) fn bmc_power_on(&self) -> Result<(), Error> {
        self.on(Origin::Bmc)
    }

    /// Starts the NUC if it is off and its cable is in, because its NIC received a magic packet.
    pub(crate) fn wake(&self) -> Result<(), Error> {
        if self.unplugged.load(Ordering::SeqCst) || self.is_on() {
            return Ok(());
        }
        self.on(Origin::Network)
    }

    pub(crate) fn bmc_power_off(&self) -> Result<(), Error> {
        self.off(Origin::Bmc, Action::Off);
        Ok(())
    }

    pub(crate) fn bmc_reset(&self) -> Result<(), Error> {
        self.hard_reset(Origin::Bmc)
    }

    pub(crate) fn bmc_soft_off(&self) -> Result<(), Error> {
        let qmp = self.running("press the power button")?;
        self.log.record(Origin::Bmc, Action::SoftOff, true);
        qmp.ask("system_powerdown", json!({})).map(drop)
    }

    /// Sets the one-time boot device: it applies to the next boot, whatever its cause, and is then
    /// cleared.
    pub(crate) fn bmc_boot(&self, device: BootDevice) -> Result<(), Error> {
        let qmp = self.run_qmp();
        let mut boot = hold(&self.boot);
        self.log.record(Origin::Bmc, Action::Boot(device), boot.once != device);
        boot.once = device;
        let Some(qmp) = qmp else { return Ok(()) };
        let Some(posted) = self.post_order(&qmp, &mut boot, device) else { return Ok(()) };
        // A reset before QEMU received this order has read the previous order.
        boot.in_force = false;
        drop(boot);
        qmp.wait("qom-set", &posted)?;
        hold(&self.boot).in_force = true;
        Ok(())
    }

    /// Switches the NUC off permanently: the rack is being removed.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
        if let Some(mut run) = hold(&self.run).take() {
            children::end(&mut run.child);
        }
        hold(&self.plain).take();
        hold(&self.port).take();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::SeqCst)
    }

    fn power_error(&self, attempted: &'static str, state: &str) -> Error {
        Error::Power { attempted, number: self.number, state: state.to_owned() }
    }
}

/// Path of a NUC's screenshot in the output folder.
pub fn screenshot_path(out: &Path, number: u8) -> PathBuf {
    out.join(format!("nuc{number}.png"))
}
