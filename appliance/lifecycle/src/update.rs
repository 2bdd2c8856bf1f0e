//! Updates of the box's own system (UP-1): a signed bundle is streamed into the slot that does not
//! run, the box restarts when no machine is being worked on, and the new system proves itself or
//! is undone with its reason.
//!
//! Never: a byte of a bundle on the disk whose signature is not good, a restart while a machine is
//! being worked on unless somebody says so.

mod handlers;
mod install;
#[cfg(test)]
mod life;
mod record;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_service::Runs;
use axum::body::Bytes;
use platform::bundle::{self, Manifest, PublicKey};
use platform::init::{self, Leave};
use platform::slots::{BootVolume, Slot};
use status::source::{Filling, StatusSource};
use status::update::UpdateReport;
use status::view::system::percent;
use status::view::{self, StatusView, Update, UpdateState};
use stdx::Clock;
use store::{Room, Store};
use tokio::sync::{Notify, mpsc, watch};

use crate::settings::LiveSettings;
use crate::storage;
pub use handlers::router;
use install::{Install, Step};
use record::{Record, Stage, judged};

/// Whose bundles the system takes.
const KEYS: &str = "/etc/tinbox/update.pub";

/// Why an update is not made.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// One at a time.
    #[error("another update is being made\nhint: `tinbox update status` shows how far it is")]
    Busy,
    /// It is no bundle for this box, or damaged.
    #[error(transparent)]
    Bundle(bundle::Error),
    /// It is one that nobody wants here.
    #[error("{0}")]
    Unwanted(String),
    /// A newer release may have to copy the store, which would not fit.
    #[error(
        "the box's disk is nearly full: {} are free, and {} are needed to bring its store to a \
         newer release\nhint: delete what is not needed, then update",
        stdx::bytes(.0.free), stdx::bytes(.0.needed)
    )]
    NoRoom(Room),
    /// The disk or the boot loader.
    #[error(transparent)]
    Host(platform::Error),
    /// The state folder.
    #[error("cannot write down what is being done")]
    Record(#[source] std::io::Error),
    /// The program itself.
    #[error("the update ended without a word")]
    Ended,
}

/// The updates of this box.
pub struct Updates {
    running: Slot,
    version: String,
    volume: BootVolume,
    state: PathBuf,
    keys: Vec<PublicKey>,
    runs: Runs,
    store: Store,
    clock: Arc<dyn Clock>,
    /// When it may restart, and what it never takes.
    live: watch::Receiver<LiveSettings>,
    now: Mutex<Now>,
    installed: Notify,
}

/// What is being done.
#[derive(Default)]
struct Now {
    /// The one that is made, or was made last.
    update: Option<Update>,
    /// Somebody is at it.
    busy: bool,
    /// The other slot is to be started, whatever the machines do.
    at_once: bool,
    /// Somebody said that it is to be started, whatever the hours are.
    agreed: bool,
}

impl Updates {
    /// Those of the box that runs from `running`, with what this start means for the last one.
    /// `said` is why the start before ended, where somebody could write it down; `live` what the
    /// owner says of updates.
    ///
    /// # Errors
    /// The system has no keys, or the boot volume cannot be read.
    pub fn open(
        running: Slot,
        state: &Path,
        (runs, live): (Runs, watch::Receiver<LiveSettings>),
        store: Store,
        clock: Arc<dyn Clock>,
        said: Option<String>,
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
        updates.judge(said)?;
        Ok(updates)
    }

    fn judge(&self, said: Option<String>) -> anyhow::Result<()> {
        // A block that a power cut tore would keep this box from updates for good.
        let loader = self.volume.mended(self.running)?;
        let kept = Record::load(&self.state).unwrap_or_else(|error| {
            tracing::warn!(%error, "what was kept of the last update cannot be read");
            None
        });
        let held = loader.trial().and_then(|slot| self.volume.version(slot));
        let found = judged(&loader, self.running, kept.clone(), (said, held), self.clock.now());
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

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the running system still has to prove itself.
    pub fn on_trial(&self) -> bool {
        let is_proving = |update: &Update| update.state == UpdateState::Proving;
        self.now().update.as_ref().is_some_and(is_proving)
    }

    /// The running system works: its slot is good. Trying again may help after an error.
    ///
    /// # Errors
    /// The boot loader cannot be told, or the record not be written.
    pub fn proved(&self) -> Result<(), Refused> {
        let change = self.volume.change(self.running, |all| record::prove(all, self.running));
        change.map_err(Refused::Host)?;
        if self.on_trial() {
            let record = Record { stage: Stage::Good, ..self.record() };
            record.keep(&self.state).map_err(Refused::Record)?;
            self.now().update = Some(shown(&record));
        }
        Ok(())
    }

    /// The running system does not work, for this reason: the box restarts, into the same system
    /// for a second try or into the one before.
    pub fn give_up(&self, reason: &str) {
        tracing::error!(reason, "the update does not work; restarting");
        let record = Record { reason: reason.to_owned(), ..self.record() };
        if let Err(error) = record.keep(&self.state) {
            tracing::error!(%error, "cannot write down why");
        }
        restart();
    }

    fn record(&self) -> Record {
        let kept = Record::load(&self.state).ok().flatten();
        kept.filter(|record| record.slot == self.running.letter()).unwrap_or_else(|| {
            Record::on_trial(self.version.clone(), self.running, self.clock.now())
        })
    }

    /// The bundle that comes in `pieces`, of `size` bytes where the sender says so, into the other
    /// slot; `at_once` lets the restart not wait for machines.
    ///
    /// # Errors
    /// Nothing changed but that the other slot may hold no system any more.
    pub async fn install(
        self: &Arc<Self>,
        pieces: mpsc::Receiver<Bytes>,
        size: Option<u64>,
        at_once: bool,
    ) -> Result<(), Refused> {
        let room = self.store.room();
        if room.is_short() {
            return Err(Refused::NoRoom(room));
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
        let done = tokio::task::spawn_blocking(work).await.unwrap_or(Err(Refused::Ended));
        match &done {
            Ok(()) => self.restart_next(at_once),
            Err(_) => self.end(before),
        }
        done
    }

    /// The other slot's system again, on trial as an update is.
    ///
    /// # Errors
    /// There is none, or the loader cannot be told.
    pub fn roll_back(&self, at_once: bool) -> Result<(), Refused> {
        let before = self.begin()?;
        let done = self.turn_back();
        match &done {
            Ok(()) => self.restart_next(at_once),
            Err(_) => self.end(before),
        }
        done
    }

    fn turn_back(&self) -> Result<(), Refused> {
        let other = self.running.other();
        let whole = self.volume.read().map_err(Refused::Host)?.whole(other);
        let version = self.volume.version(other).filter(|_| whole);
        let none = || Refused::Unwanted("the other slot holds no system that works".to_owned());
        let version = version.ok_or_else(none)?;
        install::held(&version, &self.live.borrow().hold)?;
        self.keep(version)?;
        self.volume.change(self.running, |all| all.put_on_trial(other)).map_err(Refused::Host)
    }

    /// What was shown before; from here on nobody else may begin.
    fn begin(&self) -> Result<Option<Update>, Refused> {
        let mut now = self.now();
        let on_trial =
            now.update.as_ref().is_some_and(|update| update.state == UpdateState::Proving);
        if now.busy || on_trial {
            return Err(Refused::Busy);
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
        tracing::info!(version = manifest.version, "an update comes");
        self.now().update = Some(Update {
            version: manifest.version.as_str().into(),
            slot: name(self.running.other()).into(),
            state: UpdateState::Downloading,
            since: Some(self.clock.now()),
            ..Update::default()
        });
    }

    fn written(&self, manifest: &Manifest) -> Result<(), Refused> {
        // The release that could have come back for its copy of the store is overwritten.
        if let Err(error) = store::forget_copy(&storage::file(&self.state)) {
            tracing::warn!(error = %stdx::chain(&error), "an old copy of the store stays");
        }
        self.keep(manifest.version.clone())
    }

    fn keep(&self, version: String) -> Result<(), Refused> {
        let record = Record::on_trial(version, self.running.other(), self.clock.now());
        record.keep(&self.state).map_err(Refused::Record)?;
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
        tracing::error!(error = %stdx::chain(&error), "the box does not restart");
    }
}

fn name(slot: Slot) -> String {
    slot.letter().to_ascii_uppercase().to_string()
}

/// A record as people see it.
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
