//! Virtual time for parts of the product that use threads, or that must take no virtual time. The
//! store's writer is a thread, so virtual time must not advance while the writer works.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use super::world::World;

/// Interval between two checks of the writer thread.
const LOOK: Duration = Duration::from_micros(20);

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs `work` to its end and blocks this thread, so that no virtual time passes. `work` must wait
/// for other threads only.
pub fn at_once<T>(work: impl Future<Output = T>) -> T {
    // No cooperative budget: tokio would not continue a task here that has used up its budget.
    let mut work = pin!(tokio::task::unconstrained(work));
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Runs `writing`, which writes to the store; no virtual time passes while the store works for it.
pub async fn in_step(store: store::Store, writing: impl Future<Output = ()>) {
    let mut writing = pin!(writing);
    std::future::poll_fn(|context| {
        loop {
            let polled = writing.as_mut().poll(context);
            if polled.is_ready() || store.stats().waiting == 0 {
                return polled;
            }
            while store.stats().waiting > 0 {
                std::thread::sleep(LOOK);
            }
        }
    })
    .await;
}

/// Runs `watching`, which gets each event late, by a random delay.
pub async fn late(world: Weak<World>, watching: impl Future<Output = ()>) {
    let mut watching = pin!(watching);
    loop {
        let mut is_polled = false;
        // The second poll comes with the next event, which is not shown to `watching` yet.
        let has_ended = std::future::poll_fn(|context| {
            if std::mem::replace(&mut is_polled, true) {
                return Poll::Ready(false);
            }
            watching.as_mut().poll(context).map(|()| true)
        });
        if has_ended.await {
            return;
        }
        let Some(world) = world.upgrade() else { return };
        world.chance.delay().await;
    }
}
