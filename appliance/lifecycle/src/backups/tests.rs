//! Tests of backup and restore with a box that consists of its files only: restored data, secrets
//! that must not leave the box, and power cuts at every step.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use apiserver::{AdminAccess, Authenticator, Pki, SigningKey};
use axum::body::Bytes;
use config::{Config, SystemKind};
use dhcp::{Change, Lease, LeaseFile, LeaseState, LeaseStore as _};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use provisioning::images::Images;
use status::backup::{BackupRequest, BackupSummary};
use stdx::{Secret, SystemClock};
use store::{Key, Store};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::{BackupError, BackupProgress, Backups, PIECES, gather, place};
use crate::storage;

mod daily;
mod restoring;

const WORDS: &str = "correct horse";
/// Password of a BMC, which must not appear in a plain backup.
const PASSWORD: &[u8] = br#"{"metadata":{"name":"bmc-nuc1"},"data":{"password":"aHVudGVyMg=="}}"#;
const NUC: &[u8] = br#"{"metadata":{"name":"nuc1"},"spec":{"userData":"hunter3"}}"#;
const CONFIG: &[u8] = br#"{"metadata":{"name":"colours"},"data":{"rack":"blue"}}"#;

/// Box that consists of its files only, without running services.
struct Place {
    folder: TempDir,
    backups: Arc<Backups>,
}

async fn put(store: &Store, resource: &str, name: &str, value: &'static [u8]) {
    let key = Key::new(resource, "default", name);
    let written = store.write(move |txn| Ok::<_, io::Error>(txn.put(key, value.to_vec()))).await;
    written.unwrap().unwrap();
}

fn backups(folder: &Path, store: Store) -> Arc<Backups> {
    let state = folder.join("state");
    fs::create_dir_all(folder.join("cache")).unwrap();
    let config = Arc::new(Config::default());
    let backups = Arc::new(Backups {
        store,
        images: Images::open(&config, &state).unwrap(),
        state,
        is_lost: false,
        kept_in: Some(folder.join("cache/backups")),
        settings: folder.join("box.toml"),
        system_kind: SystemKind::Guest,
        name: "box-7f3a".to_owned(),
        pin: "F3A9-1C20-8BQK-77TM".to_owned(),
        config,
        clock: Arc::new(SystemClock),
        leases: Default::default(),
        now: BackupProgress::default(),
    });
    backups.remember();
    backups
}

fn lease() -> Lease {
    Lease {
        address: "10.77.0.100".parse().unwrap(),
        mac: "52:54:00:77:00:01".parse().unwrap(),
        state: LeaseState::Bound,
        reserved: true,
        expires: 4711,
        last_seen: 4000,
    }
}

impl Place {
    /// Creates a box with new keys and no objects.
    fn fresh() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        let pki = Pki::ensure(&state, &["127.0.0.1".to_owned()], Timestamp::now()).unwrap();
        AdminAccess::ensure(&state, &pki, "https://127.0.0.1:6443").unwrap();
        SigningKey::ensure(&state).unwrap();
        fs::write(state.join("claim.json"), r#"{"code":"7KQ4M2","wrong":0}"#).unwrap();
        let backups = backups(folder.path(), storage::open(&state).unwrap());
        Self { folder, backups }
    }

    /// Creates a box with objects, leases and settings.
    async fn used() -> Self {
        let used = Self::fresh();
        put(&used.backups.store, "/secrets", "bmc-nuc1", PASSWORD).await;
        put(&used.backups.store, "tinkerbell.org/hardware", "nuc1", NUC).await;
        put(&used.backups.store, "/configmaps", "colours", CONFIG).await;
        let state = used.state();
        fs::write(state.join("owner.json"), b"{}").unwrap();
        fs::write(state.join("image-pins"), b"- http://example.org/image\n").unwrap();
        fs::create_dir(state.join("settings")).unwrap();
        fs::write(state.join("settings/1.json"), b"{}").unwrap();
        fs::write(used.folder.path().join("box.toml"), b"name = \"box-7f3a\"\n").unwrap();
        let leases = LeaseFile::open(&state.join("leases-eth1.redb")).unwrap();
        leases.commit(&[Change::Put(lease())]).unwrap();
        // Files of the machine or of the moment, which are not part of a backup.
        for name in ["update.json", "dhcp-eth1", "leases-eth1.part"] {
            fs::write(state.join(name), b"of this machine").unwrap();
        }
        fs::create_dir(state.join("audit")).unwrap();
        fs::write(state.join("audit/audit.log"), b"{}").unwrap();
        used
    }

    fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    async fn backup(&self, order: BackupRequest) -> Result<Vec<u8>, BackupError> {
        let made = self.backups.create(order).await?;
        let (bytes, body) = (made.last.bytes, made.body(&self.backups)?);
        let file = body.collect().await.unwrap().to_bytes();
        assert_eq!(file.len() as u64, bytes);
        Ok(file.to_vec())
    }

    /// Simulates the next start: closes all files, and moves restored files to their places.
    fn restart(self) -> Self {
        let Self { folder, backups } = self;
        let state = backups.state.clone();
        drop(backups);
        let mut settings = None;
        let resumed = place::resume(&state, |text| {
            settings = Some(text.to_owned());
            Ok(())
        });
        assert!(resumed.unwrap());
        if let Some(settings) = settings {
            fs::write(folder.path().join("box.toml"), settings).unwrap();
        }
        let backups = self::backups(folder.path(), storage::open(&state).unwrap());
        Self { folder, backups }
    }

    fn value(&self, resource: &str, name: &str) -> Option<Vec<u8>> {
        let stored = self.backups.store.get(&Key::new(resource, "default", name)).unwrap();
        stored.map(|stored| stored.value.to_vec())
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.state().join(name)).unwrap()
    }
}

fn order() -> BackupRequest {
    BackupRequest { passphrase: Some(Secret::from(WORDS)), ..BackupRequest::default() }
}

fn pieces(file: &[u8]) -> mpsc::Receiver<Bytes> {
    let (send, pieces) = mpsc::channel(PIECES);
    let file = file.to_vec();
    tokio::spawn(async move {
        for piece in file.chunks(1000) {
            if send.send(Bytes::copy_from_slice(piece)).await.is_err() {
                return;
            }
        }
    });
    pieces
}

fn words(text: &str) -> Option<Secret> {
    Some(Secret::from(text))
}

/// Reads every file of a folder.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn holds(bytes: &[u8], words: &[u8]) -> bool {
    bytes.windows(words.len()).any(|found| found == words)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_box_becomes_the_one_that_was_backed_up() {
    let old = Place::used().await;
    let file = old.backup(order()).await.unwrap();
    assert!(file.len() < 64 << 10, "{} bytes", file.len());
    for secret in [&b"hunter"[..], b"aHVudGVyMg", b"PRIVATE KEY", WORDS.as_bytes()] {
        assert!(!holds(&file, secret), "{}", String::from_utf8_lossy(secret));
    }
    assert!(old.backups.last().at.is_some(), "the box remembers when");

    let spare = Place::fresh();
    let untouched = tree(&spare.state());
    let rehearsed = spare.backups.verify(pieces(&file), words(WORDS)).await.unwrap();
    assert_eq!((rehearsed.objects, rehearsed.hardware, rehearsed.secrets), (3, 1, 1));
    assert_eq!((rehearsed.leases, rehearsed.settings, rehearsed.restarts), (1, true, false));
    assert_eq!(tree(&spare.state()), untouched, "a rehearsal changes nothing");

    // Both boxes are closed before their files are read: a redb file is complete only then.
    fs::write(spare.state().join("of-before"), b"goes").unwrap();
    let done = spare.backups.restore(pieces(&file), words(WORDS)).await.unwrap();
    assert_eq!(done, BackupSummary { restarts: true, ..rehearsed });
    let busy = spare.backups.create(order()).await;
    assert!(matches!(busy, Err(BackupError::Restarting)));
    let spare = spare.restart();

    assert_eq!(spare.value("/secrets", "bmc-nuc1").unwrap(), PASSWORD);
    assert_eq!(spare.value("tinkerbell.org/hardware", "nuc1").unwrap(), NUC);
    assert!(spare.backups.store.revision() > old.backups.store.revision() + store::RESTORE_LEAP);
    let same = ["tokens", "pki/ca.key", "pki/ca.crt", "pki/server.key", "pki/serviceaccount.key"];
    for name in [&same[..], &["owner.json", "image-pins", "settings/1.json"]].concat() {
        assert_eq!(spare.text(name), old.text(name), "{name}");
    }
    assert!(Authenticator::load(&spare.state()).is_ok());
    let config = fs::read(spare.folder.path().join("box.toml")).unwrap();
    assert_eq!(config, b"name = \"box-7f3a\"\n");
    let leases = LeaseFile::open(&spare.state().join("leases-eth1.redb")).unwrap();
    assert_eq!(leases.load().unwrap(), [lease()]);
    assert!(spare.text("claim.json").contains("7KQ4M2"), "its own code stays");
    for name in ["of-before", "update.json", "dhcp-eth1", "audit", "restore", "restore.done"] {
        assert!(!spare.state().join(name).exists(), "{name}");
    }
    assert_ne!(
        fs::read(spare.state().join("sealing.key")).unwrap(),
        fs::read(old.state().join("sealing.key")).unwrap(),
        "another disk is sealed with another key"
    );
    let last = old.backups.last().at.map(|at| at.as_second());
    assert_eq!(spare.backups.last().at.map(|at| at.as_second()), last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_for_everybody_has_no_secret_and_makes_no_box() {
    let old = Place::used().await;
    let plain = BackupRequest { plain: true, ..BackupRequest::default() };
    let file = old.backup(plain).await.unwrap();
    let unpacked = read(&file, None);
    assert!(unpacked.iter().any(|content| content == CONFIG));
    for content in &unpacked {
        for secret in [&b"hunter"[..], b"aHVudGVyMg", b"PRIVATE KEY", b"box-7f3a"] {
            assert!(!holds(content, secret), "{}", String::from_utf8_lossy(content));
        }
    }
    let report = old.backups.verify(pieces(&file), None).await.unwrap();
    assert_eq!((report.objects, report.secrets, report.files), (1, 0, 0));
    let refused = old.backups.restore(pieces(&file), None).await;
    assert!(matches!(refused, Err(BackupError::Plain)));
}

fn read(file: &[u8], key: Option<&::backup::Key>) -> Vec<Vec<u8>> {
    let mut reader = ::backup::Reader::open(file, key, "99.0.0").unwrap();
    let mut all = Vec::new();
    while let Some((_, content)) = reader.next_part().unwrap() {
        all.push(content);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_leaves_the_box_as_it_was() {
    let old = Place::used().await;
    let file = old.backup(order()).await.unwrap();
    let before = tree(&old.state());
    let refusal_of = async |file: &[u8], secret: Option<Secret>| {
        let refused = old.backups.restore(pieces(file), secret).await.unwrap_err();
        stdx::chain(&refused).lines().next().unwrap_or_default().to_owned()
    };
    let wrong = refusal_of(&file, words("correct horsf")).await;
    assert_eq!(wrong, "wrong passphrase for this backup");
    assert_eq!(
        refusal_of(&file, None).await,
        "this backup can be decrypted only with its passphrase"
    );
    let cut = refusal_of(&file[..file.len() - 9], words(WORDS)).await;
    assert_eq!(cut, "this backup is truncated");
    let mut changed = file.clone();
    let middle = changed.len() - 100;
    changed[middle] ^= 1;
    assert_eq!(
        refusal_of(&changed, words(WORDS)).await,
        "this backup is damaged: its end was changed"
    );
    assert_eq!(refusal_of(b"PK\x03\x04", words(WORDS)).await, "not a valid backup of a Tinbox");
    let short = BackupRequest { passphrase: words("short"), ..BackupRequest::default() };
    assert!(matches!(old.backups.create(short).await, Err(BackupError::Backup(_))));
    let both = BackupRequest { plain: true, ..order() };
    for unclear in [BackupRequest::default(), both] {
        assert!(matches!(old.backups.create(unclear).await, Err(BackupError::Request)));
    }
    let turn = old.backups.turn().unwrap();
    assert!(matches!(old.backups.create(order()).await, Err(BackupError::Busy)));
    drop(turn);
    assert_eq!(tree(&old.state()), before);
}

#[test]
fn what_a_box_is_and_what_its_machine_is() {
    for (path, of_the_box) in [
        ("tokens", true),
        ("owner.json", true),
        ("pki/ca.key", true),
        ("settings/12.json", true),
        ("something-new.json", true),
        ("claim.json", false),
        ("sealing.key", false),
        ("update.json", false),
        ("unrestored.toml", false),
        ("objects.redb", false),
        ("id.device", false),
        ("objects.restoring", false),
        ("backup.part", false),
        ("dhcp-eth1", false),
        ("audit/audit.log", false),
        ("pki/deeper/key", false),
        ("pki/ca.key.new", false),
        ("pki/ca.key.damaged", false),
        ("backup.key", false),
        ("objects.redb.format-1", false),
        ("objects.redb.reserve", false),
    ] {
        assert_eq!(gather::belongs(path), of_the_box, "{path}");
    }
}
