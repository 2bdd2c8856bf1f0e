//! A disk with little free space, and the reserve file.

use std::sync::Arc;

use super::seal::FORMAT_1;
use super::{block_on, key, options, write};
use crate::fake::FreeSpace;
use crate::{Error, Options, Store};

const MIB: u64 = 1 << 20;
/// Number of objects of 1 MiB.
const OBJECTS: u64 = 8;

fn disk() -> (Arc<FreeSpace>, Options) {
    let free = Arc::new(FreeSpace::new(1 << 40));
    let volume = Arc::clone(&free) as _;
    (free, Options { volume, reserve: 8 * MIB, ..options() })
}

/// Returns the free space after a write without changes.
async fn looked_at(store: &Store) -> crate::FreeSpace {
    write(store, |_| ()).await.unwrap();
    store.free_space()
}

#[test]
fn a_store_that_is_short_of_room_keeps_little_history() {
    let folder = tempfile::tempdir().unwrap();
    let (free, options) = disk();
    let store = Store::open(&folder.path().join("objects.redb"), options).unwrap();
    block_on(async {
        for number in 0..OBJECTS {
            let value = vec![0; 1 << 20];
            write(&store, move |txn| txn.put(key("", &number.to_string()), value)).await.unwrap();
        }
        assert!(!looked_at(&store).await.is_short());
        store.watch_all(0).expect("the whole history is there");

        free.set(MIB);
        let free_space = looked_at(&store).await;
        assert!(free_space.is_short(), "{free_space:?}");
        assert!(matches!(store.watch_all(0), Err(Error::Compacted { .. })));
        let own = write(&store, |txn| txn.free_space().is_short()).await.unwrap();
        assert!(own, "whoever writes can see it");
    });
}

#[test]
fn what_a_commit_takes_already_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let (free, options) = disk();
    let store = Store::open(&folder.path().join("objects.redb"), options).unwrap();
    block_on(async {
        let needed = looked_at(&store).await.needed;
        free.set(needed + MIB);
        assert!(!looked_at(&store).await.is_short());
        // Three in one commit: the first holds the writer until the others wait.
        let (hold, held) = std::sync::mpsc::sync_channel::<()>(1);
        let first = write(&store, move |_| held.recv().unwrap());
        let put = |name: &'static str| {
            write(&store, move |txn| {
                let short = txn.free_space().is_short();
                txn.put(key("", name), vec![0; 1 << 20]);
                short
            })
        };
        let both = async {
            let others = async { futures_util::join!(put("a"), put("b")) };
            let go = async {
                while store.stats().waiting < 3 {
                    tokio::task::yield_now().await;
                }
                hold.send(()).unwrap();
            };
            futures_util::join!(others, go).0
        };
        let (_, (a, b)) = futures_util::join!(first, both);
        assert_eq!((a.unwrap(), b.unwrap()), (false, true));
    });
}

#[test]
fn what_was_deleted_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.redb");
    let (free, options) = disk();
    let store = Store::open(&path, options.clone()).unwrap();
    block_on(async {
        for number in 0..OBJECTS {
            let value = vec![0; 1 << 20];
            write(&store, move |txn| txn.put(key("", &number.to_string()), value)).await.unwrap();
        }
        let largest = store.sizes().unwrap().remove(0);
        assert_eq!((largest.resource.as_str(), largest.objects), (super::RESOURCE, OBJECTS));
        assert!(largest.bytes > OBJECTS * MIB, "{largest:?}");
        free.set(16 * MIB);
        assert!(looked_at(&store).await.is_short());
        for number in 0..OBJECTS {
            let deleted = move |txn: &mut crate::Txn<'_>| txn.delete(&key("", &number.to_string()));
            write(&store, deleted).await.unwrap().unwrap();
        }
    });
    drop(store);
    // The pages in use are counted at most every few seconds, and at the first write.
    let store = Store::open(&path, options).unwrap();
    let free_space = block_on(looked_at(&store));
    assert!(
        !free_space.is_short(),
        "the file keeps its length, and its pages are free: {free_space:?}"
    );
}

#[test]
fn the_reserve_is_given_up_on_a_full_disk_and_set_aside_again() {
    let folder = tempfile::tempdir().unwrap();
    let reserve = folder.path().join("objects.redb.reserve");
    let (free, options) = disk();
    let store = Store::open(&folder.path().join("objects.redb"), options).unwrap();
    block_on(async {
        looked_at(&store).await;
        assert_eq!(reserve.metadata().unwrap().len(), 8 * MIB);
        free.set(MIB);
        looked_at(&store).await;
        assert!(!reserve.exists(), "given up");
        free.set(10 * MIB);
        looked_at(&store).await;
        assert!(!reserve.exists(), "still short");
        free.set(1 << 40);
        looked_at(&store).await;
        assert!(reserve.exists(), "there is room again");
    });
}

#[test]
fn a_store_is_brought_forward_only_where_a_copy_fits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.redb");
    let old = zstd::decode_all(FORMAT_1).unwrap();
    std::fs::write(&path, &old).unwrap();
    let (free, options) = disk();
    free.set(MIB);
    let refused = Store::open(&path, options.clone()).err().unwrap();
    assert!(matches!(refused, Error::NoRoom { free: MIB, .. }), "{refused}");
    assert!(!path.with_extension("redb.format-1").exists());

    free.set(1 << 40);
    Store::open(&path, options).expect("the old store is as it was");
}
