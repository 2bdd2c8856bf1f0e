//! Updates of the box's own system (UP-1). A signed bundle is written into the slot that does not
//! run. The box restarts when no machine has a running workflow. The update is undone, with a
//! reason, unless the new system passes its checks.
//!
//! Never: a byte of a bundle on the disk before its signature is verified. Never a restart while a
//! workflow runs, unless a person requests the restart.

mod error;
mod handlers;
mod install;
#[cfg(test)]
mod life;
pub mod proving;
mod record;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_service::Runs;
use axum::body::Bytes;
use platform::bundle::{Manifest, PublicKey};
use platform::init::{self, Leave};
use platform::slots::{BootVolume, Slot};
use status::source::{Filling, StatusSource};
use status::update::UpdateReport;
use status::view::system::percent;
use status::view::{self, StatusView, Update, UpdateState};
use stdx::Clock;
use store::Store;
use tokio::sync::{Notify, mpsc, watch};

use crate::settings::LiveSettings;
use crate::storage;
pub use error::UpdateError;
pub use handlers::router;
use install::{Install, Step};
use record::{Record, Stage, judged};

/// File with the public keys of trusted bundle signers.
const KEYS: &str = "/etc/tinbox/update.pub";

/// Updates of this box, and their state.
pub struct Updates {
    running: Slot,
    version: String,
    volume: BootVolume,
    state: PathBuf,
    keys: Vec<PublicKey>,
    runs: Runs,
    store: Store,
    clock: Arc<dyn Clock>,
    /// Allowed hours of restarts, and releases that the box refuses to install.
    live: watch::Receiver<LiveSettings>,
    now: Mutex<UpdateProgress>,
    installed: Notify,
}

/// State of the current or last update, and of its restart.
#[derive(Default)]
struct UpdateProgress {
    /// Current or last update, for the status.
    update: Option<Update>,
    /// True while a bundle or a rollback is being installed, and until the box restarts.
    busy: bool,
    /// True if the restart skips the wait for running workflows.
    at_once: bool,
    /// True if a person agreed to the restart, which then ignores the allowed hours.
    agreed: bool,
}

impl Updates {
    /// Opens the updates of a box that runs from the slot `running`, and evaluates this start.
    /// `last_reason` is the recorded reason why the last run ended. `live` has the owner's settings
    /// for updates.
    ///
    /// # Errors
    /// The system has no public keys, or the boot volume cannot be read.
    pub fn open(
        running: Slot,
        state: &Path,
        (runs, live): (Runs, watch::Receiver<LiveSettings>),
        store: Store,
        clock: Arc<dyn Clock>,
        last_reason: Option<String>,
    ) -> anyhow::Result<Self> {
        let volume = BootVolume::own();
        let keys = install::keys(Path::new(KEYS))?;
        let version = volume.version(running);
        let version = version.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
        let updates = Self {
            running,
            version,
            volume,
            state: state.to_owned(),
            keys,
            runs,
            store,
            clock,
            live,
            now: Mutex::default(),
            installed: Notify::new(),
        };
        updates.judge(last_reason)?;
        Ok(updates)
    }

    fn judge(&self, last_reason: Option<String>) -> anyhow::Result<()> {
        // Repairs the block of variables: a block that a power cut tore would prevent all updates.
        let loader = self.volume.mended(self.running)?;
        let kept = Record::load(&self.state).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the state of the last update");
            None
        });
        let held = loader.trial().and_then(|slot| self.volume.version(slot));
        let found =
            judged(&loader, self.running, kept.clone(), (last_reason, held), self.clock.now());
        if let Some(record) = found.as_ref().filter(|record| Some(*record) != kept.as_ref()) {
            record.keep(&self.state)?;
        }
        if loader.trial().is_some_and(|slot| slot != self.running) {
            let reason = found.as_ref().map(|record| record.reason.as_str());
            tracing::error!(reason, "the update was undone");
            self.volume.change(self.running, |all| record::undo(all, self.running))?;
        }
        self.now().update = found.as_ref().map(shown);
        Ok(())
    }

    fn now(&self) -> MutexGuard<'_, UpdateProgress> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while the running system is new and has not passed its checks yet.
    pub fn on_trial(&self) -> bool {
        let is_proving = |update: &Update| update.state == UpdateState::Proving;
        self.now().update.as_ref().is_some_and(is_proving)
    }

    /// Marks the slot of the running system good. The caller may try again after an error.
    ///
    /// # Errors
    /// The boot loader's variables or the record cannot be written.
    pub fn proved(&self) -> Result<(), UpdateError> {
        let change = self.volume.change(self.running, |all| record::prove(all, self.running));
        change.map_err(UpdateError::Host)?;
        if self.on_trial() {
            let record = Record { stage: Stage::Good, ..self.record() };
            record.keep(&self.state).map_err(UpdateError::Record)?;
            self.now().update = Some(shown(&record));
        }
        Ok(())
    }

    /// Restarts the box because the running system does not work. `reason` is recorded. The next
    /// start tries this system a second time, or starts the previous system.
    pub fn give_up(&self, reason: &str) {
        tracing::error!(reason, "the update does not work; restarting");
        let record = Record { reason: reason.to_owned(), ..self.record() };
        if let Err(error) = record.keep(&self.state) {
            tracing::error!(%error, "cannot save the reason");
        }
        restart();
    }

    fn record(&self) -> Record {
        let kept = Record::load(&self.state).ok().flatten();
        kept.filter(|record| record.slot == self.running.letter()).unwrap_or_else(|| {
            Record::on_trial(self.version.clone(), self.running, self.clock.now())
        })
    }

    /// Writes the bundle from `pieces` into the other slot. `size` is the bundle's length in bytes,
    /// if known. With `at_once`, the restart does not wait for running workflows.
    ///
    /// # Errors
    /// The installation failed. The running system is unchanged; the other slot may be empty.
    pub async fn install(
        self: &Arc<Self>,
        pieces: mpsc::Receiver<Bytes>,
        size: Option<u64>,
        at_once: bool,
    ) -> Result<(), UpdateError> {
        let room = self.store.free_space();
        if room.is_short() {
            return Err(UpdateError::NoRoom(room));
        }
        let before = self.begin()?;
        let this = Arc::clone(self);
        let work = move || {
            let (keys, running, version) = (this.keys.clone(), this.running, &this.version);
            let hold = this.live.borrow().hold.clone();
            let install = Install { keys, running, version, hold, pieces };
            install.run(|step| match step {
                Step::Accepted(manifest) => {
                    this.downloading(manifest);
                    Ok(())
                }
                Step::Received(bytes) => {
                    let percent = size.map(|size| percent(bytes, size));
                    this.step(|update| update.percent = percent);
                    Ok(())
                }
                Step::Written(manifest) => this.written(manifest),
            })
        };
        let done = tokio::task::spawn_blocking(work).await.unwrap_or(Err(UpdateError::Ended));
        match &done {
            Ok(()) => self.restart_next(at_once),
            Err(_) => self.end(before),
        }
        done
    }

    /// Selects the system in the other slot for the next start, on trial as after an update.
    ///
    /// # Errors
    /// The other slot has no usable system, or the boot loader's variables cannot be written.
    pub fn roll_back(&self, at_once: bool) -> Result<(), UpdateError> {
        let before = self.begin()?;
        let done = self.turn_back();
        match &done {
            Ok(()) => self.restart_next(at_once),
            Err(_) => self.end(before),
        }
        done
    }

    fn turn_back(&self) -> Result<(), UpdateError> {
        let other = self.running.other();
        let whole = self.volume.read().map_err(UpdateError::Host)?.whole(other);
        let version = self.volume.version(other).filter(|_| whole);
        let none = || UpdateError::unwanted("the other slot has no working system", None);
        let version = version.ok_or_else(none)?;
        install::held(&version, &self.live.borrow().hold)?;
        self.keep(version)?;
        self.volume.change(self.running, |all| all.put_on_trial(other)).map_err(UpdateError::Host)
    }

    /// Marks an update as under way. Returns the previous status, or an error if one is under way.
    fn begin(&self) -> Result<Option<Update>, UpdateError> {
        let mut now = self.now();
        let on_trial =
            now.update.as_ref().is_some_and(|update| update.state == UpdateState::Proving);
        if now.busy || on_trial {
            return Err(UpdateError::Busy);
        }
        now.busy = true;
        Ok(now.update.clone())
    }

    fn end(&self, shown: Option<Update>) {
        let mut now = self.now();
        now.busy = false;
        now.update = shown;
    }

    fn downloading(&self, manifest: &Manifest) {
        tracing::info!(version = manifest.version, "installing an update");
        self.now().update = Some(Update {
            version: manifest.version.as_str().into(),
            slot: name(self.running.other()).into(),
            state: UpdateState::Downloading,
            since: Some(self.clock.now()),
            ..Update::default()
        });
    }

    fn written(&self, manifest: &Manifest) -> Result<(), UpdateError> {
        // The previous release is overwritten, so its copy of the store is not needed.
        if let Err(error) = store::forget_copy(&storage::file(&self.state)) {
            tracing::warn!(error = %stdx::chain(&error), "cannot delete an old copy of the store");
        }
        self.keep(manifest.version.clone())
    }

    fn keep(&self, version: String) -> Result<(), UpdateError> {
        let record = Record::on_trial(version, self.running.other(), self.clock.now());
        record.keep(&self.state).map_err(UpdateError::Record)?;
        self.now().update = Some(Update { state: UpdateState::Verified, ..shown(&record) });
        Ok(())
    }

    fn step(&self, change: impl FnOnce(&mut Update)) {
        if let Some(update) = &mut self.now().update {
            change(update);
        }
    }

    fn restart_next(&self, at_once: bool) {
        self.step(|update| update.state = UpdateState::Installed);
        {
            let mut now = self.now();
            (now.at_once, now.agreed) = (at_once, at_once);
        }
        self.installed.notify_one();
    }

    fn report(&self) -> UpdateReport {
        let loader = self.volume.read().unwrap_or_default();
        let slot = |slot: Slot| {
            let whole = loader.whole(slot);
            let version = self.volume.version(slot).filter(|_| whole).unwrap_or_default();
            view::Slot {
                name: name(slot).into(),
                version: version.into(),
                good: whole && loader.trial() != Some(slot),
                running: slot == self.running,
            }
        };
        UpdateReport {
            version: self.version.as_str().into(),
            slots: [Slot::A, Slot::B].map(slot).to_vec(),
            update: self.now().update.clone(),
        }
    }
}

impl StatusSource for Updates {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        let UpdateReport { version, slots, update } = self.report();
        (view.version, view.system.slots, view.update) = (version, slots, update);
        Box::pin(std::future::ready(()))
    }
}

fn restart() {
    if let Err(error) = init::ask(Leave::Restart) {
        tracing::error!(error = %stdx::chain(&error), "cannot restart the box");
    }
}

fn name(slot: Slot) -> String {
    slot.letter().to_ascii_uppercase().to_string()
}

/// Converts a record to the update of the status view.
fn shown(record: &Record) -> Update {
    Update {
        version: record.version.as_str().into(),
        state: match record.stage {
            Stage::OnTrial => UpdateState::Proving,
            Stage::Good => UpdateState::Good,
            Stage::Undone => UpdateState::RolledBack,
        },
        slot: record.slot.to_ascii_uppercase().to_string().into(),
        reason: record.reason.as_str().into(),
        since: Some(record.since),
        ..Update::default()
    }
}
