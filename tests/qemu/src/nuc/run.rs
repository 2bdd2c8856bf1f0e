//! One run of a NUC from power on to power off: its QEMU process, started paused, controlled by its
//! monitor, and reaped.

use std::fs::File;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::Nuc;
use crate::machine;
use crate::qmp::{Events, Posted, Qmp};
use crate::{Action, BootDevice, Error, Origin, children, hold};

/// The boot order, locked while a change is sent to QEMU so that changes keep their order.
#[derive(Debug)]
pub(super) struct Boot {
    /// The one-time device for the next boot.
    pub(super) once: BootDevice,
    /// The NIC's `bootindex` in the running QEMU, which refuses to set the current value again.
    pub(super) index: u8,
    /// True when the running QEMU has acknowledged the boot order, so that its next reset reads
    /// this order.
    pub(super) in_force: bool,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) child: Child,
    pub(super) qmp: Arc<Qmp>,
}

impl Nuc {
    pub(super) fn on(&self, origin: Origin) -> Result<(), Error> {
        let mut run = hold(&self.run);
        if self.is_retired() {
            return Err(self.power_error("switch on", "the rack is being taken down"));
        }
        let alive = run.as_mut().is_some_and(|run| matches!(run.child.try_wait(), Ok(None)));
        if alive {
            self.log.record(origin, Action::On, false);
            return Ok(());
        }
        let started = self.start()?;
        self.log.record(origin, Action::On, true);
        hold(&self.boot).once = BootDevice::Normal;
        let go = started.qmp.ask("cont", json!({}));
        *run = Some(started);
        go.map(drop)
    }

    /// Starts a paused machine. The first boot uses the one-time device, later boots the permanent
    /// order.
    pub(super) fn start(&self) -> Result<Run, Error> {
        if let Some(plain) = &*hold(&self.plain) {
            plain.reset();
        }
        // A socket left by a killed QEMU would block the new QEMU's socket.
        let _ = std::fs::remove_file(&self.files.monitor);
        let log = &self.files.qemu_log;
        let errors = File::options().create(true).append(true).open(log);
        let errors = errors.map_err(Error::path("open", log))?;
        let mut boot = hold(&self.boot);
        boot.index = machine::nic_index(self.config.boot_order, boot.once);
        boot.in_force = true;
        let index = boot.index;
        drop(boot);
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
        let posted = self.post_order(&qmp, &mut hold(&self.boot), BootDevice::Normal);
        if let Some(posted) = posted {
            qmp.wait("qom-set", &posted)?;
        }
        if self.unplugged.load(Ordering::SeqCst) {
            qmp.ask("set_link", json!({ "name": machine::CABLE, "up": false }))?;
        }
        let mut child = child.0.take().ok_or_else(|| Error::Config("QEMU is gone".into()))?;
        self.serial.attach(&mut child)?;
        Ok(Run { child, qmp })
    }

    pub(super) fn off(&self, origin: Origin, action: Action) {
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

    pub(super) fn hard_reset(&self, origin: Origin) -> Result<(), Error> {
        let qmp = self.running("reset")?;
        self.log.record(origin, Action::Reset, true);
        qmp.ask("system_reset", json!({})).map(drop)
    }

    pub(super) fn cable(&self, up: bool) -> Result<(), Error> {
        self.unplugged.store(!up, Ordering::SeqCst);
        let Some(qmp) = self.run_qmp() else { return Ok(()) };
        qmp.ask("set_link", json!({ "name": machine::CABLE, "up": up })).map(drop)
    }

    /// Sends the boot order to QEMU, which reads the order at the next reset of the machine.
    /// Returns `None` when QEMU already has this order.
    pub(super) fn post_order(
        &self,
        qmp: &Qmp,
        boot: &mut Boot,
        once: BootDevice,
    ) -> Option<Posted> {
        let index = machine::nic_index(self.config.boot_order, once);
        if index == std::mem::replace(&mut boot.index, index) {
            return None;
        }
        let path = machine::NIC_PATH;
        let arguments = json!({ "path": path, "property": "bootindex", "value": index });
        Some(qmp.post("qom-set", arguments))
    }

    pub(super) fn run_qmp(&self) -> Option<Arc<Qmp>> {
        let mut run = hold(&self.run);
        let run = run.as_mut()?;
        matches!(run.child.try_wait(), Ok(None)).then(|| Arc::clone(&run.qmp))
    }

    pub(super) fn running(&self, attempted: &'static str) -> Result<Arc<Qmp>, Error> {
        self.run_qmp().ok_or_else(|| self.power_error(attempted, "it is off"))
    }
}

/// A child that is killed on drop, unless it is taken out.
struct Cradle(Option<Child>);

impl Drop for Cradle {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            children::end(child);
        }
    }
}

/// Handler of QEMU's events during one run.
struct RunEvents {
    nuc: Weak<Nuc>,
    qmp: Arc<Qmp>,
    guest_off: AtomicBool,
}

impl RunEvents {
    /// Handles a reset: the one-time device applies to this boot and is cleared for the next.
    ///
    /// SeaBIOS follows a reset with one or two more of its own before it starts over (its
    /// `HaveRunPost`), and each reads the boot order again. So a boot begins when the firmware
    /// prints something; resets before that belong to the same boot.
    fn reset(&self, nuc: &Nuc, guest: bool) {
        if let Some(plain) = &*hold(&nuc.plain) {
            plain.reset();
        }
        let armed = {
            let boot = hold(&nuc.boot);
            boot.in_force && boot.once != BootDevice::Normal
        };
        let (weak, qmp) = (Weak::clone(&self.nuc), Arc::clone(&self.qmp));
        let same_boot = nuc.serial.on_next_output(move || {
            let Some(nuc) = weak.upgrade().filter(|_| armed) else { return };
            let mut boot = hold(&nuc.boot);
            boot.once = BootDevice::Normal;
            // The answer is not needed: QEMU executes its commands in order.
            drop(nuc.post_order(&qmp, &mut boot, BootDevice::Normal));
        });
        if guest && !same_boot {
            nuc.log.record(Origin::Guest, Action::Reset, true);
        }
    }
}

impl Events for RunEvents {
    fn event(&self, name: &str, data: &Value) {
        let Some(nuc) = self.nuc.upgrade() else { return };
        let guest = data["guest"].as_bool().unwrap_or(false);
        match name {
            "RESET" => self.reset(&nuc, guest),
            "SHUTDOWN" if guest => self.guest_off.store(true, Ordering::SeqCst),
            _ => {}
        }
    }

    fn closed(&self) {
        let Some(nuc) = self.nuc.upgrade() else { return };
        let mut run = hold(&nuc.run);
        let ours = run.as_ref().is_some_and(|run| Arc::ptr_eq(&run.qmp, &self.qmp));
        // The function that switched the NUC off has taken the run away and recorded the event.
        let Some(mut ended) = run.take_if(|_| ours) else { return };
        children::end(&mut ended.child);
        let action = match self.guest_off.load(Ordering::SeqCst) {
            true => Action::SoftOff,
            false => Action::Died,
        };
        nuc.log.record(Origin::Guest, action, true);
    }
}
