use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::meta::ObjectKey;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Controller, Reconciled, Reconciler, Requeue};
use objects::ObjectError;

struct Probe {
    runs: AtomicUsize,
    at_once: AtomicUsize,
    gate: Semaphore,
    fail_first: usize,
    requeue: Requeue,
}

impl Reconciler for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn reconcile<'a>(&'a self, _key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            assert_eq!(self.at_once.fetch_add(1, Ordering::SeqCst), 0, "twice at once");
            self.gate.acquire().await.expect("the gate stays open").forget();
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            let run = self.runs.fetch_add(1, Ordering::SeqCst);
            if run < self.fail_first {
                return Err(ObjectError::Internal("disk".into()));
            }
            Ok(self.requeue)
        })
    }
}

fn probe(fail_first: usize, requeue: Requeue) -> Arc<Probe> {
    Arc::new(Probe {
        runs: AtomicUsize::new(0),
        at_once: AtomicUsize::new(0),
        gate: Semaphore::new(0),
        fail_first,
        requeue,
    })
}

async fn reaches(probe: &Probe, runs: usize) {
    while probe.runs.load(Ordering::SeqCst) < runs {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn signals_during_a_run_cause_exactly_one_more() {
    let probe = probe(0, Requeue::OnSignal);
    let controller = Controller::new(probe.clone());
    let signals = controller.signals();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(controller.run(shutdown.clone()));
    let key = ObjectKey::new("default", "a");
    signals.signal(key.clone());
    while probe.at_once.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..5 {
        signals.signal(key.clone());
    }
    probe.gate.add_permits(10);
    reaches(&probe, 2).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(probe.runs.load(Ordering::SeqCst), 2);
    shutdown.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn errors_are_retried_and_ticks_come() {
    let probe = probe(3, Requeue::After(Duration::from_secs(30)));
    probe.gate.add_permits(100);
    let controller = Controller::new(probe.clone());
    controller.signals().signal(ObjectKey::new("default", "a"));
    let task = tokio::spawn(controller.run(CancellationToken::new()));
    reaches(&probe, 6).await;
    task.abort();
}

/// Reconciler with slow objects of 10 s, like a BMC that does not respond, and one quick object
/// that is due every 5 s.
struct Slow {
    quick: Mutex<Vec<Instant>>,
}

impl Reconciler for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn at_once_max(&self) -> usize {
        4
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            if key.name == "quick" {
                self.quick.lock().unwrap().push(Instant::now());
                return Ok(Requeue::After(Duration::from_secs(5)));
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(Requeue::After(Duration::from_secs(1)))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_slow_starve_no_other() {
    let slow = Arc::new(Slow { quick: Mutex::default() });
    let controller = Controller::new(slow.clone());
    for number in 0..40 {
        controller.signals().signal(ObjectKey::new("default", format!("dead-{number}")));
    }
    controller.signals().signal(ObjectKey::new("default", "quick"));
    let task = tokio::spawn(controller.run(CancellationToken::new()));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    task.abort();
    let runs = slow.quick.lock().unwrap().clone();
    let gaps = runs.windows(2).map(|pair| pair[1] - pair[0]);
    // The quick object may wait for all slow objects that were due before it, four at a time.
    assert!(gaps.max().unwrap() <= Duration::from_secs(5 + 40 / 4 * 10 + 10), "{}", runs.len());
    assert!(runs.len() >= 3600 / 115, "{}", runs.len());
}
