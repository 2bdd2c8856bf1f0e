//! Store of the box in its state folder: opening, sealing key, and faults for the status.

pub mod opened;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use config::SystemKind;
use resources::Engine;
use status::source::{Filling, StatusSource};
use status::view::{Fault, StatusView, Trouble};
use stdx::Backoff;
use store::{FreeSpace, NewerStore, SealingKey, Store};

use crate::keys::sealing::Keys;

/// Kinds whose values are sealed on disk: BMC passwords, tokens, user data with join secrets.
pub const SEALED: [&str; 5] = [
    "/secrets",
    "bootstrap.cluster.x-k8s.io/kubeadmconfigs",
    "tinkerbell.org/hardware",
    "tinkerbell.org/templates",
    "tinkerbell.org/workflows",
];

/// File with the key that encrypts sealed values.
const KEY: &str = "sealing.key";

/// Size in bytes of the reserve, which is released on a full disk so that objects can be deleted.
const RESERVE: u64 = 8 << 20;

/// Opens `STATE/objects.redb` with the key in `STATE/sealing.key`, and a reserve for a full disk.
#[cfg(test)]
pub fn open(state: &Path) -> anyhow::Result<Store> {
    open_by(state, &Keys::of(state, SystemKind::Guest))
}

/// Opens the store with a key that may be sealed to the TPM.
pub fn open_by(state: &Path, keys: &Keys) -> anyhow::Result<Store> {
    open_with(state, RESERVE, keys)
}

/// Opens a store, without a reserve, in a folder that no running box uses.
pub fn open_aside(folder: &Path) -> anyhow::Result<Store> {
    open_with(folder, 0, &Keys::of(folder, SystemKind::Guest))
}

fn open_with(state: &Path, reserve: u64, keys: &Keys) -> anyhow::Result<Store> {
    let path = state.join(KEY);
    let key = match keys.read(KEY).context("cannot open the store")? {
        // An unsealed key may have a wrong length; `load_or_create` reports this.
        Some(bytes) if !path.exists() => {
            let bytes = bytes.as_slice().try_into();
            SealingKey::new(bytes.context("cannot open the store: its sealed key is damaged")?)
        }
        None if file(state).exists() => {
            anyhow::bail!("cannot open the store: its key {} is missing", path.display())
        }
        _ => SealingKey::load_or_create(&path).context("cannot read the key that seals secrets")?,
    };
    let options = store::Options {
        sealing_key: Some(key),
        reserve,
        sealed: SEALED.map(str::to_owned).to_vec(),
        ..store::Options::default()
    };
    Store::open(&file(state), options).context("cannot open the store")
}

/// Returns the path of the store's file in the folder `state`.
pub fn file(state: &Path) -> PathBuf {
    state.join("objects.redb")
}

/// First and longest interval between write tests on a disk that failed.
const TRIED_EVERY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
/// Bytes that a write test must write before the store is opened again.
const TRIED_BYTES: usize = 4 << 20;

/// Waits until a failed write has stopped the store and the disk accepts writes again, then returns
/// an error. The error ends the process, and the next start opens the store from disk.
pub async fn watch_over(store: Store, state: PathBuf) -> anyhow::Result<()> {
    let cause = stdx::chain(store.until_stopped().await.as_ref());
    tracing::error!(cause, "nothing is stored until the disk accepts writes again");
    let mut waits = Backoff::new(TRIED_EVERY.0, TRIED_EVERY.1);
    loop {
        tokio::time::sleep(waits.next_wait()).await;
        let place = state.join("tried.part");
        match tokio::task::spawn_blocking(move || try_disk(&place)).await? {
            Ok(()) => anyhow::bail!("the store stopped; its disk accepts writes again: {cause}"),
            Err(error) => tracing::warn!(%error, "the disk still accepts no writes"),
        }
    }
}

fn try_disk(place: &Path) -> io::Result<()> {
    let written = File::create(place).and_then(|mut file| {
        file.write_all(&vec![0; TRIED_BYTES])?;
        file.sync_all()
    });
    let removed = fs::remove_file(place);
    written.and(removed)
}

/// Status source of the fault that the store has stopped.
pub struct StoppedStore(pub Engine);

impl StatusSource for StoppedStore {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        view.faults.extend(self.0.stopped().map(|cause| stopped(&cause)));
        Box::pin(std::future::ready(()))
    }
}

fn stopped(cause: &store::Error) -> Fault {
    let trouble = Trouble {
        what: "The box cannot store data".into(),
        why: stdx::chain(cause).into(),
        now: "The box continues by itself when the disk accepts writes again; delete data that is \
              not needed, or replace the disk"
            .into(),
        code: "StoreStopped".into(),
        ..Trouble::default()
    };
    Fault { title: "STORE STOPPED".into(), trouble, urgent: true, ..Fault::default() }
}

/// Minimum interval of counting the largest kinds, because a count reads the whole store.
const COUNTED_EVERY: Duration = Duration::from_secs(60);
/// Maximum number of kinds that the fault names.
const NAMED: usize = 3;

/// Status source of the fault that the disk is nearly full, with the largest kinds.
pub struct FullDisk {
    store: Store,
    counted: Mutex<Option<(Instant, Arc<str>)>>,
}

impl FullDisk {
    /// Creates a source that watches the free space of `store`.
    pub fn new(store: Store) -> Self {
        Self { store, counted: Mutex::default() }
    }

    /// Returns the largest kinds with their sizes, such as `tinkerbell.org/templates (20 MiB)`.
    async fn largest(&self) -> Arc<str> {
        let counted = self.counted().clone();
        if let Some((_, text)) = counted.filter(|(at, _)| at.elapsed() < COUNTED_EVERY) {
            return text;
        }
        let store = self.store.clone();
        let sizes = tokio::task::spawn_blocking(move || store.sizes()).await;
        let sizes = sizes.ok().and_then(Result::ok).unwrap_or_default();
        let texts = sizes
            .iter()
            .take(NAMED)
            .map(|size| format!("{} ({})", size.resource, stdx::bytes(size.bytes)));
        let text: Arc<str> = texts.collect::<Vec<_>>().join(", ").into();
        *self.counted() = Some((Instant::now(), Arc::clone(&text)));
        text
    }

    fn counted(&self) -> MutexGuard<'_, Option<(Instant, Arc<str>)>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StatusSource for FullDisk {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        Box::pin(async {
            let room = self.store.free_space();
            if room.is_short() {
                view.faults.push(nearly_full(room, &self.largest().await));
            }
        })
    }
}

fn nearly_full(room: FreeSpace, largest: &str) -> Fault {
    let (free, needed) = (stdx::bytes(room.free), stdx::bytes(room.needed));
    let trouble = Trouble {
        what: "The box's disk is nearly full".into(),
        why: format!("{free} are free, {needed} are needed; the largest part is {largest}").into(),
        now: "Until there is space, no new data is stored and the box cannot be updated; delete \
              data that is not needed"
            .into(),
        code: "StoreNearlyFull".into(),
        ..Trouble::default()
    };
    Fault { title: "DISK NEARLY FULL".into(), trouble, urgent: true, ..Fault::default() }
}

/// Status source of the fault that this release cannot read data of a later release. The data is
/// kept beside the store (UP-6).
pub struct ReturnedStore(Vec<Fault>);

impl ReturnedStore {
    /// Searches the folder `state` for data of a later release.
    pub fn find(state: &Path) -> Self {
        let found = store::returned(&file(state)).unwrap_or_else(|error| {
            tracing::warn!(error = %stdx::chain(&error), "cannot look for a set-aside store");
            Vec::new()
        });
        Self(found.iter().map(fault).collect())
    }
}

impl StatusSource for ReturnedStore {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        view.faults.extend(self.0.iter().cloned());
        Box::pin(std::future::ready(()))
    }
}

fn fault(aside: &NewerStore) -> Fault {
    let name = aside.file.file_name().unwrap_or_default().to_string_lossy();
    let up_to = match aside.revision {
        Some(revision) => format!("up to revision {revision}"),
        None => "since the update".to_owned(),
    };
    let trouble = Trouble {
        what: "The store from before the update is in use again".into(),
        why: format!("this release cannot read the data of the later release {up_to}").into(),
        now: format!("The changes since the update are in {name}; update again to use them").into(),
        code: "StoreSetAside".into(),
        ..Trouble::default()
    };
    Fault { title: "STORE WENT BACK".into(), trouble, ..Fault::default() }
}

#[cfg(test)]
mod tests {
    use status::source::StatusSource as _;
    use status::view::{StatusView, problems};

    use super::{FullDisk, ReturnedStore, open, try_disk};

    #[test]
    fn a_disk_is_tried_and_left_as_it_was() {
        let state = tempfile::tempdir().unwrap();
        try_disk(&state.path().join("tried.part")).unwrap();
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
        assert!(try_disk(&state.path().join("gone/tried.part")).is_err());
    }

    #[tokio::test]
    async fn a_disk_that_is_nearly_full_says_what_takes_the_room() {
        let state = tempfile::tempdir().unwrap();
        let store = open(state.path()).unwrap();
        let put = |txn: &mut store::Txn<'_>| {
            txn.put(store::Key::new("tinkerbell.org/templates", "default", "a"), vec![0; 1 << 20])
        };
        store.write(move |txn| Ok::<_, store::Error>(put(txn))).await.unwrap().unwrap();
        let full = FullDisk::new(store);
        let text = full.largest().await;
        assert_eq!(&*text, "tinkerbell.org/templates (1.0 MiB)");
        let room = store::FreeSpace { free: 3 << 20, needed: 17 << 20 };
        let mut view = StatusView::default();
        view.faults.push(super::nearly_full(room, &text));
        assert_eq!(
            problems(&view)[0].trouble.sentence(),
            "The box's disk is nearly full: 3.0 MiB are free, 17 MiB are needed; the largest part \
             is tinkerbell.org/templates (1.0 MiB). Until there is space, no new data is stored \
             and the box cannot be updated; delete data that is not needed."
        );
    }

    #[tokio::test]
    async fn what_was_set_aside_is_said_until_it_is_gone() {
        let state = tempfile::tempdir().unwrap();
        let shown = async || {
            let mut view = StatusView::default();
            ReturnedStore::find(state.path()).fill(&mut view).await;
            problems(&view).iter().map(|it| it.trouble.sentence()).collect::<Vec<_>>()
        };
        assert_eq!(shown().await, [""; 0]);
        let file = state.path().join("objects.redb.newer-99-4711");
        std::fs::write(&file, "").unwrap();
        let text = "The store from before the update is in use again: this release cannot read \
                    the data of the later release up to revision 4711. The changes since the \
                    update are in objects.redb.newer-99-4711; update again to use them.";
        assert_eq!(shown().await, [text]);
        std::fs::remove_file(file).unwrap();
        assert_eq!(shown().await, [""; 0]);
    }
}
