//! Encryption: secret values are not readable in the file, and only their own key decrypts them.

use std::path::Path;

use super::{block_on, write};
use crate::{Error, Key, Options, SealingKey, Store};

const SECRET: &[u8] = b"correct horse battery staple";

fn secret(name: &str) -> Key {
    Key::new("/secrets", "default", name)
}

fn sealing(key: &SealingKey) -> Options {
    Options {
        sealing_key: Some(key.clone()),
        sealed: vec!["/secrets".to_owned()],
        ..Options::default()
    }
}

fn lies_in(path: &Path, needle: &[u8]) -> bool {
    std::fs::read(path).unwrap().windows(needle.len()).any(|window| window == needle)
}

/// Writes, replaces and deletes secrets, so that every kind of row contains one.
fn write_secrets(store: &Store) {
    block_on(async {
        for _ in 0..2 {
            write(store, |txn| txn.put(secret("bmc"), SECRET.to_vec())).await.unwrap();
        }
        write(store, |txn| txn.put(secret("gone"), SECRET.to_vec())).await.unwrap();
        write(store, |txn| txn.delete(&secret("gone"))).await.unwrap().unwrap();
    });
}

#[test]
fn a_sealed_value_is_not_in_the_file_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let key_path = folder.path().join("sealing.key");
    let key = SealingKey::load_or_create(&key_path).unwrap();
    let store = Store::open(&path, sealing(&key)).unwrap();
    write_secrets(&store);
    block_on(write(&store, |txn| {
        txn.put(Key::new("/configmaps", "default", "open"), b"plain and visible".to_vec())
    }))
    .unwrap();
    drop(store);
    assert!(!lies_in(&path, SECRET));
    assert!(lies_in(&path, b"plain and visible"), "the check itself finds what is not sealed");

    let key = SealingKey::load_or_create(&key_path).unwrap();
    let store = Store::open(&path, sealing(&key)).unwrap();
    assert_eq!(*store.get(&secret("bmc")).unwrap().unwrap().value, *SECRET);
    store.check().unwrap();
    let mut watch = store.watch("/secrets", None, 0).unwrap();
    let changes = block_on(super::take(&mut watch, 4));
    assert_eq!(*changes[1].previous().unwrap().value, *SECRET);
    assert_eq!(*changes[3].previous().unwrap().value, *SECRET);
}

#[test]
fn another_key_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    drop(Store::open(&path, sealing(&SealingKey::new(&[1; 32]))).unwrap());
    for options in [sealing(&SealingKey::new(&[2; 32])), Options::default()] {
        let refused = Store::open(&path, options).map(drop).unwrap_err();
        assert!(matches!(refused, Error::WrongKey { .. }), "{refused}");
        assert!(refused.to_string().contains("sealed with another key"));
    }
    drop(Store::open(&path, sealing(&SealingKey::new(&[1; 32]))).unwrap());
}

#[test]
fn a_sealed_value_opens_only_where_it_belongs() {
    let vault = sealing(&SealingKey::new(&[1; 32])).vault();
    let blob = vault.close(&secret("a"), 7, SECRET).unwrap();
    assert_eq!(*vault.open(&secret("a"), 7, &blob).unwrap(), *SECRET);
    assert!(matches!(vault.open(&secret("b"), 7, &blob), Err(Error::Unsealable { .. })));
    assert!(matches!(vault.open(&secret("a"), 8, &blob), Err(Error::Unsealable { .. })));
    for at in 0..blob.len() {
        let mut changed = blob.clone();
        changed[at] ^= 1;
        let opened = vault.open(&secret("a"), 7, &changed);
        assert!(opened.is_err() || at == 0, "byte {at} can be changed unseen");
    }
    assert_ne!(vault.close(&secret("a"), 7, SECRET).unwrap(), blob, "a nonce came again");
}

#[test]
fn a_short_key_file_is_refused_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sealing.key");
    std::fs::write(&path, b"short").unwrap();
    let refused = SealingKey::load_or_create(&path).map(drop).unwrap_err();
    assert!(stdx::chain(&refused).contains("5 bytes instead of 32"), "{}", stdx::chain(&refused));
    assert_eq!(std::fs::read(&path).unwrap(), b"short");
}

/// Store file of format 1, with objects created, replaced and deleted, and a trimmed log.
pub(super) const FORMAT_1: &[u8] = include_bytes!("format-1.redb.zst");

#[test]
fn a_file_of_format_1_is_brought_forward_and_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    std::fs::write(&path, zstd::decode_all(FORMAT_1).unwrap()).unwrap();
    assert!(lies_in(&path, SECRET));
    let key = SealingKey::new(&[1; 32]);
    let store = Store::open(&path, sealing(&key)).unwrap();
    let checked = store.check().unwrap();
    assert_eq!((checked.revision, checked.objects), (14, 4));
    assert_eq!(*store.get(&secret("bmc")).unwrap().unwrap().value, *SECRET);
    let (revision, hardware) = store.list("tinkerbell.org/hardware", None).unwrap();
    assert_eq!((revision, hardware.len()), (14, 3));
    block_on(write(&store, |txn| txn.put(secret("new"), SECRET.to_vec()))).unwrap();
    assert_eq!(store.revision(), 15);
    drop(store);
    assert!(!lies_in(&path, SECRET), "nothing of the old file is left in the new");
    let store = Store::open(&path, sealing(&key)).unwrap();
    store.check().unwrap();
}

#[test]
fn a_snapshot_of_format_1_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("copy.redb");
    let bytes = zstd::decode_all(FORMAT_1).unwrap();
    std::fs::write(&snapshot, &bytes).unwrap();
    let key = SealingKey::new(&[1; 32]);
    let store = Store::open(&folder.path().join("store.redb"), sealing(&key)).unwrap();
    block_on(store.restore(&snapshot)).unwrap();
    assert_eq!(*store.get(&secret("bmc")).unwrap().unwrap().value, *SECRET);
    assert_eq!(std::fs::read(&snapshot).unwrap(), bytes, "it is left as it is");
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 2, "no copy stays behind: {files:?}");
}
