//! One NUC: a QEMU process when it is on, nothing but files when it is off.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use stdx::MacAddr;

use crate::machine::{self, Files};
use crate::namespace::Namespace;
use crate::power::PowerLog;
use crate::qmp::{Events, Qmp};
use crate::{
    Action, BmcAccess, BootDevice, Error, Firmware, NucConfig, Origin, PowerEvent, Serial,
    children, hold, proc,
};

/// Longest path of a Unix socket (sun_path in unix(7), less its end).
const MAX_SOCKET_PATH: usize = 107;

/// A virtual NUC.
#[derive(Debug)]
pub struct Nuc {
    number: u8,
    config: NucConfig,
    files: Files,
    rack: Namespace,
    bmc: BmcAccess,
    serial: Arc<Serial>,
    log: PowerLog,
    /// The one-time boot device. Guards the order of boot order changes sent to QEMU too.
    once: Mutex<BootDevice>,
    run: Mutex<Option<Run>>,
    unplugged: AtomicBool,
    retired: AtomicBool,
    me: Weak<Nuc>,
}

#[derive(Debug)]
struct Run {
    child: Child,
    qmp: Arc<Qmp>,
}

impl Nuc {
    /// Makes the files of a switched off NUC: blank disk, fresh firmware variables.
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
        };
        if files.monitor.as_os_str().len() > MAX_SOCKET_PATH {
            return Err(Error::Config(format!("{} is too long", files.monitor.display())));
        }
        if config.firmware == Firmware::Uefi {
            std::fs::copy(machine::OVMF_VARS, &files.vars)
                .map_err(Error::path("copy the firmware's variables to", &files.vars))?;
        }
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
            once: Mutex::new(BootDevice::Normal),
            run: Mutex::new(None),
            unplugged: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            me: Weak::clone(me),
        });
        nuc.blank_disk()?;
        Ok(nuc)
    }

    /// From 1; the last byte of MAC address and UUID.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// `52:54:00:77:00:NN`.
    pub fn mac(&self) -> MacAddr {
        machine::mac(self.number)
    }

    /// The SMBIOS UUID as the firmware shows it, lower case.
    pub fn uuid(&self) -> String {
        machine::uuid(self.number)
    }

    /// How it was configured.
    pub fn config(&self) -> &NucConfig {
        &self.config
    }

    /// Where its BMC listens and who may log in.
    pub fn bmc(&self) -> &BmcAccess {
        &self.bmc
    }

    /// Its serial console.
    pub fn serial(&self) -> &Serial {
        &self.serial
    }

    /// The raw file behind its disk. Write to it only while the NUC is off.
    pub fn disk(&self) -> &Path {
        &self.files.disk
    }

    /// Replaces the disk by an empty one of the configured size.
    ///
    /// # Errors
    /// The NUC is on, or the file cannot be made.
    pub fn blank_disk(&self) -> Result<(), Error> {
        if self.is_on() {
            return Err(self.power_error("replace the disk", "it is on"));
        }
        let path = &self.files.disk;
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
        file.and_then(|file| file.set_len(self.config.disk_bytes))
            .map_err(Error::path("create disk", path))
    }

    /// Whether it is powered on, that is, whether its QEMU process lives.
    pub fn is_on(&self) -> bool {
        self.pid().is_some()
    }

    /// Process id of its QEMU.
    pub fn pid(&self) -> Option<u32> {
        let mut run = hold(&self.run);
        let child = &mut run.as_mut()?.child;
        matches!(child.try_wait(), Ok(None)).then(|| child.id())
    }

    /// CPU time this run has used so far.
    pub fn cpu(&self) -> Option<Duration> {
        proc::cpu(self.pid()?)
    }

    /// Everything that happened to its power, oldest first.
    pub fn power_events(&self) -> Vec<PowerEvent> {
        self.log.events()
    }

    /// How many events `origin` caused that were `action` and changed something.
    pub fn count(&self, origin: Origin, action: Action) -> usize {
        let events = self.log.events();
        events.iter().filter(|e| e.origin == origin && e.action == action && e.changed).count()
    }

    /// The one-time boot device that waits for the next boot.
    pub fn boot_override(&self) -> BootDevice {
        *hold(&self.once)
    }

    /// Presses the power button of a NUC that is off.
    ///
    /// # Errors
    /// QEMU does not start.
    pub fn power_on(&self) -> Result<(), Error> {
        self.on(Origin::Harness)
    }

    /// Holds the power button for five seconds.
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

    /// Pulls the mains plug: QEMU is killed. What the guest had not written to its disk is lost.
    /// The NUC stays off when the mains come back. (Its BMC, unlike a real one, lives on.)
    pub fn cut_power(&self) {
        self.off(Origin::Harness, Action::PowerCut);
    }

    /// Pulls the network cable; it stays pulled over power cycles.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn unplug(&self) -> Result<(), Error> {
        self.cable(false)
    }

    /// Puts the network cable back.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn plug(&self) -> Result<(), Error> {
        self.cable(true)
    }

    /// Writes what a monitor would show as a PNG file.
    ///
    /// # Errors
    /// The NUC is off, or QEMU cannot write there.
    pub fn screenshot(&self, path: &Path) -> Result<(), Error> {
        let path = std::path::absolute(path).map_err(Error::path("find", path))?;
        let qmp = self.running("take a screenshot")?;
        qmp.ask("screendump", json!({ "filename": path, "format": "png" })).map(drop)
    }

    pub(crate) fn bmc_power_on(&self) -> Result<(), Error> {
        self.on(Origin::Bmc)
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

    /// Sets the one-time boot device: it rules the next boot, whoever causes it, and is gone then.
    pub(crate) fn bmc_boot(&self, device: BootDevice) -> Result<(), Error> {
        let qmp = self.run_qmp();
        let mut once = hold(&self.once);
        self.log.record(Origin::Bmc, Action::Boot(device), *once != device);
        *once = device;
        let Some(qmp) = qmp else { return Ok(()) };
        let posted = self.post_order(&qmp, device);
        drop(once);
        qmp.wait("qom-set", &posted).map(drop)
    }

    /// Switches off for good: the rack is being taken down.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
        if let Some(mut run) = hold(&self.run).take() {
            children::end(&mut run.child);
        }
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::SeqCst)
    }

    fn on(&self, origin: Origin) -> Result<(), Error> {
        let mut run = hold(&self.run);
        if self.is_retired() {
            return Err(self.power_error("switch on", "the rack is being taken down"));
        }
        let alive = run.as_mut().is_some_and(|run| matches!(run.child.try_wait(), Ok(None)));
        if alive {
            self.log.record(origin, Action::On, false);
            return Ok(());
        }
        let once = *hold(&self.once);
        let started = self.start(once)?;
        self.log.record(origin, Action::On, true);
        *hold(&self.once) = BootDevice::Normal;
        let go = started.qmp.ask("cont", json!({}));
        *run = Some(started);
        go.map(drop)
    }

    /// A paused machine that will boot from `once` now and in its permanent order after that.
    fn start(&self, once: BootDevice) -> Result<Run, Error> {
        // A socket left by a killed QEMU would be in the way of the new one's.
        let _ = std::fs::remove_file(&self.files.monitor);
        let log = &self.files.qemu_log;
        let errors = File::options().create(true).append(true).open(log);
        let errors = errors.map_err(Error::path("open", log))?;
        let index = machine::nic_index(self.config.boot_order, once);
        let mut command = self.rack.command("qemu-system-x86_64");
        command.args(machine::arguments(self.number, &self.config, &self.files, index));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let child = children::spawn(command).map_err(Error::io("start qemu-system-x86_64"))?;
        let mut child = Cradle(Some(child));
        let alive = || child.0.as_mut().is_some_and(|c| matches!(c.try_wait(), Ok(None)));
        let qmp = Arc::new(Qmp::connect(&self.files.monitor, alive).map_err(|error| {
            let said = children::tail(log);
            Error::Qmp { command: "its monitor".into(), answer: format!("{error}; {said}") }
        })?);
        let events = RunEvents {
            nuc: Weak::clone(&self.me),
            qmp: Arc::clone(&qmp),
            guest_off: AtomicBool::new(false),
        };
        qmp.start(events)?;
        qmp.wait("qom-set", &self.post_order(&qmp, BootDevice::Normal))?;
        if self.unplugged.load(Ordering::SeqCst) {
            qmp.ask("set_link", json!({ "name": machine::CABLE, "up": false }))?;
        }
        let mut child = child.0.take().ok_or_else(|| Error::Config("QEMU is gone".into()))?;
        self.serial.attach(&mut child);
        Ok(Run { child, qmp })
    }

    fn off(&self, origin: Origin, action: Action) {
        let mut run = hold(&self.run);
        let was_on = match run.take() {
            Some(mut run) => {
                let alive = matches!(run.child.try_wait(), Ok(None));
                children::end(&mut run.child);
                alive
            }
            None => false,
        };
        self.log.record(origin, action, was_on);
    }

    fn hard_reset(&self, origin: Origin) -> Result<(), Error> {
        let qmp = self.running("reset")?;
        self.log.record(origin, Action::Reset, true);
        qmp.ask("system_reset", json!({})).map(drop)
    }

    fn cable(&self, up: bool) -> Result<(), Error> {
        self.unplugged.store(!up, Ordering::SeqCst);
        let Some(qmp) = self.run_qmp() else { return Ok(()) };
        qmp.ask("set_link", json!({ "name": machine::CABLE, "up": up })).map(drop)
    }

    /// QEMU reads the new order at the next reset of the machine.
    fn post_order(
        &self,
        qmp: &Qmp,
        once: BootDevice,
    ) -> std::sync::mpsc::Receiver<Result<Value, String>> {
        let index = machine::nic_index(self.config.boot_order, once);
        let arguments =
            json!({ "path": machine::NIC_PATH, "property": "bootindex", "value": index });
        qmp.post("qom-set", arguments)
    }

    fn run_qmp(&self) -> Option<Arc<Qmp>> {
        let mut run = hold(&self.run);
        let run = run.as_mut()?;
        matches!(run.child.try_wait(), Ok(None)).then(|| Arc::clone(&run.qmp))
    }

    fn running(&self, attempted: &'static str) -> Result<Arc<Qmp>, Error> {
        self.run_qmp().ok_or_else(|| self.power_error(attempted, "it is off"))
    }

    fn power_error(&self, attempted: &'static str, state: &str) -> Error {
        Error::Power { attempted, number: self.number, state: state.to_owned() }
    }
}

/// A child that dies unless it is taken out.
struct Cradle(Option<Child>);

impl Drop for Cradle {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            children::end(child);
        }
    }
}

/// What QEMU tells about one run.
struct RunEvents {
    nuc: Weak<Nuc>,
    qmp: Arc<Qmp>,
    guest_off: AtomicBool,
}

impl Events for RunEvents {
    fn event(&self, name: &str, data: &Value) {
        let Some(nuc) = self.nuc.upgrade() else { return };
        let guest = data["guest"].as_bool().unwrap_or(false);
        match name {
            "RESET" => {
                if guest {
                    nuc.log.record(Origin::Guest, Action::Reset, true);
                }
                let mut once = hold(&nuc.once);
                if *once != BootDevice::Normal {
                    *once = BootDevice::Normal;
                    drop(nuc.post_order(&self.qmp, BootDevice::Normal));
                }
            }
            "SHUTDOWN" if guest => self.guest_off.store(true, Ordering::SeqCst),
            _ => {}
        }
    }

    fn closed(&self) {
        let Some(nuc) = self.nuc.upgrade() else { return };
        let mut run = hold(&nuc.run);
        let ours = run.as_ref().is_some_and(|run| Arc::ptr_eq(&run.qmp, &self.qmp));
        // Whoever switched it off has taken the run away and recorded that.
        let Some(mut ended) = run.take_if(|_| ours) else { return };
        children::end(&mut ended.child);
        let action = match self.guest_off.load(Ordering::SeqCst) {
            true => Action::SoftOff,
            false => Action::Died,
        };
        nuc.log.record(Origin::Guest, action, true);
    }
}

/// The files that stay in the output folder, for the harness to name.
pub fn screenshot_path(out: &Path, number: u8) -> PathBuf {
    out.join(format!("nuc{number}.png"))
}
