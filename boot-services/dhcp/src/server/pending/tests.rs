use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use super::*;
use crate::engine::Destination;
use crate::events::DhcpEvent;
use crate::leases::{Lease, LeaseState};
use crate::vectors::{ADDRESS, MAC};

/// Store that counts commits; every commit fails while `broken` is true.
#[derive(Default)]
struct Store {
    commits: Mutex<Vec<Vec<Change>>>,
    broken: AtomicBool,
}

impl LeaseStore for Store {
    fn load(&self) -> Result<Vec<Lease>, Error> {
        Ok(Vec::new())
    }

    fn commit(&self, changes: &[Change]) -> Result<(), Error> {
        if self.broken.load(Ordering::Relaxed) {
            let source = Box::new(std::io::Error::from(std::io::ErrorKind::StorageFull));
            return Err(Error::Leases { attempt: "write", source });
        }
        self.commits.lock().unwrap().push(changes.to_vec());
        Ok(())
    }
}

impl Store {
    fn sizes(&self) -> Vec<usize> {
        self.commits.lock().unwrap().iter().map(Vec::len).collect()
    }
}

fn change(last_seen: u64) -> Change {
    let (address, mac, state) = (ADDRESS, MAC, LeaseState::Bound);
    Change::Put(Lease { address, mac, state, expires: 9_000, last_seen, reserved: false })
}

fn answer(number: u8, needs_commit: bool) -> Outgoing {
    let event = DhcpEvent::Acked { mac: MAC, address: ADDRESS, file: None };
    Outgoing { message: vec![number], to: Destination::Broadcast, needs_commit, event }
}

fn numbers(answers: &[Outgoing]) -> Vec<u8> {
    answers.iter().map(|answer| answer.message[0]).collect()
}

fn pending() -> (Arc<Store>, PendingAnswers) {
    let store = Arc::new(Store::default());
    (store.clone(), PendingAnswers::new(Some(store)))
}

/// Returns true if no answer is delayed and no commit runs.
async fn rests(pending: &mut PendingAnswers) -> bool {
    tokio::time::timeout(Duration::from_secs(60), pending.committed()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn only_promises_wait() {
    let (store, mut pending) = pending();
    assert_eq!(
        numbers(&pending.take(vec![], vec![answer(1, true)])),
        [1],
        "there is no change to commit"
    );
    let now = pending.take(vec![change(1)], vec![answer(2, true), answer(3, false)]);
    assert_eq!(numbers(&now), [3]);
    assert_eq!(numbers(&pending.committed().await.unwrap()), [2]);
    assert_eq!(store.sizes(), [1]);
    assert!(rests(&mut pending).await);
}

#[tokio::test(start_paused = true)]
async fn everybody_who_asks_meanwhile_shares_a_commit() {
    let (store, mut pending) = pending();
    pending.take(vec![change(1)], vec![answer(1, true)]);
    let begun = Instant::now();
    assert_eq!(numbers(&pending.committed().await.unwrap()), [1]);
    for number in 2..50 {
        assert!(pending.take(vec![change(2)], vec![answer(number, true)]).is_empty());
    }
    assert_eq!(pending.committed().await.unwrap().len(), 48);
    assert!(begun.elapsed() >= COMMIT_EVERY);
    assert_eq!(store.sizes(), [1, 48]);
}

#[tokio::test(start_paused = true)]
async fn who_asks_again_waits_for_the_commit_under_way() {
    let (store, mut pending) = pending();
    pending.take(vec![change(1)], vec![answer(1, true)]);
    let commit = pending.begin().await;
    pending.running = Some(commit);
    assert!(pending.take(vec![], vec![answer(2, true)]).is_empty());
    assert_eq!(numbers(&pending.committed().await.unwrap()), [1, 2]);
    assert_eq!(store.sizes(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_store_promises_nothing_and_is_given_everything_again() {
    let (store, mut pending) = pending();
    store.broken.store(true, Ordering::Relaxed);
    pending.take(vec![change(1)], vec![answer(1, true)]);
    assert!(pending.committed().await.unwrap().is_empty());
    assert!(rests(&mut pending).await, "until the next request");
    store.broken.store(false, Ordering::Relaxed);
    assert!(pending.take(vec![change(2)], vec![answer(2, true)]).is_empty());
    assert_eq!(numbers(&pending.committed().await.unwrap()), [2]);
    assert_eq!(*store.commits.lock().unwrap(), [[change(1), change(2)]]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_broken_ends_the_service() {
    let (store, mut pending) = pending();
    store.broken.store(true, Ordering::Relaxed);
    for attempt in 1..=MAX_FAILED {
        pending.take(vec![change(1)], vec![answer(1, true)]);
        assert_eq!(pending.committed().await.is_err(), attempt == MAX_FAILED);
    }
}

#[tokio::test(start_paused = true)]
async fn held_answers_are_bounded_and_nothing_is_lost_when_the_wait_is_dropped() {
    let (store, mut pending) = pending();
    for _ in 0..MAX_PENDING {
        assert!(pending.have_room());
        pending.take(vec![change(1)], vec![answer(1, true)]);
    }
    assert!(!pending.have_room());
    tokio::time::advance(COMMIT_EVERY).await;
    {
        let _no_commit_ends = store.commits.lock().unwrap();
        let answers = std::pin::pin!(pending.committed());
        assert!(answers.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert!(pending.running.is_some(), "the wait was for a commit");
    assert!(!pending.have_room());
    assert_eq!(pending.committed().await.unwrap().len(), MAX_PENDING);
    assert!(pending.have_room());
    assert_eq!(store.sizes(), [MAX_PENDING]);
}

/// In this test, all of the process's threads for blocking work are busy.
#[test]
fn a_lease_waits_for_no_thread_that_others_hold() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(1).enable_time().build().unwrap();
    let (let_go, blocked) = std::sync::mpsc::sync_channel::<()>(1);
    runtime.spawn_blocking(move || blocked.recv().ok());
    let (store, mut pending) = pending();
    pending.take(vec![change(1)], vec![answer(1, true)]);
    let answers = runtime.block_on(pending.committed()).unwrap();
    assert_eq!((numbers(&answers), store.sizes()), (vec![1], vec![1]));
    drop(let_go);
}
