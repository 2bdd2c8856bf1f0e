use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use api::meta::ObjectKey;
use jiff::Timestamp;
use objects::Objects as _;
use objects::fake::Memory;
use serde_json::json;
use tokio::time::advance;

use super::{Activity, DEADLINE, Heartbeat, INTERVAL, RETRY};
use crate::management::lease::{DURATION, Device, LEASE, key};
use crate::remote::tests::{json_reply, remote, status};

fn heartbeat(holder: &str, take_over_from: Option<&str>) -> Heartbeat {
    let device = Device { box_id: "b1".to_owned(), holder: holder.to_owned() };
    Heartbeat::new(device, None, take_over_from.map(str::to_owned))
}

/// Runs a step one second later, by the clock of the device.
async fn step(heartbeat: &mut Heartbeat, remote: &Memory) -> bool {
    static SECOND: AtomicI64 = AtomicI64::new(0);
    let now = Timestamp::from_second(SECOND.fetch_add(1, Ordering::SeqCst)).unwrap();
    heartbeat.step(remote, now).await;
    heartbeat.is_active()
}

async fn lease(remote: &Memory) -> serde_json::Value {
    remote.get(LEASE, &key("b1", None)).await.unwrap()["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_second_device_takes_over_by_an_order_and_the_first_stays_out() {
    let cluster = Memory::default();
    let (mut first, mut second) = (heartbeat("one", None), heartbeat("two", None));
    assert!(!first.is_active(), "before the first look");
    assert!(step(&mut first, &cluster).await);
    assert!(!step(&mut second, &cluster).await);
    // The first device is off. The second has no order to take over.
    for _ in 0..20 {
        advance(INTERVAL).await;
        assert!(!step(&mut second, &cluster).await);
    }
    let Activity::Waits { holder, is_named } = second.activity() else { panic!() };
    assert!(holder.name == "one" && holder.is_expired && !is_named, "{holder:?}");

    // A device with an order waits until the other is silent for the whole duration.
    let mut second = heartbeat("two", Some("one"));
    let mut waited = Duration::ZERO;
    while !step(&mut second, &cluster).await {
        assert!(matches!(second.activity(), Activity::Waits { is_named: true, .. }));
        advance(INTERVAL).await;
        waited += INTERVAL;
    }
    assert!(waited >= DURATION && waited < 2 * DURATION, "{waited:?}");
    assert_eq!(lease(&cluster).await["holderIdentity"], "two");
    assert_eq!(lease(&cluster).await["leaseTransitions"], 1);

    // The first device returns: it finds the conflict at its next renewal.
    assert!(!step(&mut first, &cluster).await || first.renewed.is_some());
    advance(RETRY).await;
    assert!(!step(&mut first, &cluster).await);
    // The order to the second device was about the first only.
    assert!(matches!(first.activity(), Activity::Waits { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_device_with_an_order_does_not_disturb_a_living_one() {
    let cluster = Memory::default();
    let (mut first, mut second) = (heartbeat("one", None), heartbeat("two", Some("one")));
    for _ in 0..100 {
        assert!(step(&mut first, &cluster).await);
        assert!(!step(&mut second, &cluster).await);
        advance(INTERVAL).await;
    }
    // The connection of the first ends on request of a person.
    first.release(&cluster).await;
    advance(INTERVAL).await;
    assert!(step(&mut second, &cluster).await);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_device_holds_its_lease_at_once() {
    let cluster = Memory::default();
    assert!(step(&mut heartbeat("one", None), &cluster).await);
    assert!(step(&mut heartbeat("one", None), &cluster).await);
    assert_eq!(lease(&cluster).await["leaseTransitions"], 0);
    // A deleted Lease is created again.
    let mut one = heartbeat("one", None);
    assert!(step(&mut one, &cluster).await);
    cluster.delete(LEASE, &ObjectKey::new("tinbox-pairing", "tinbox-b1")).await.unwrap();
    advance(INTERVAL).await;
    step(&mut one, &cluster).await;
    advance(RETRY).await;
    assert!(step(&mut one, &cluster).await);
    assert_eq!(lease(&cluster).await["holderIdentity"], "one");
}

#[tokio::test(start_paused = true)]
async fn work_stops_before_another_device_may_take_the_lease() {
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let (remote, _events) = remote(move |sent| match down.load(Ordering::SeqCst) {
        true => json_reply(503, &status(503, "ServiceUnavailable")),
        false if sent.method == "GET" => json_reply(404, &not_found()),
        false => json_reply(200, &sent.body),
    });
    let mut one = heartbeat("one", None);
    one.step(&remote, Timestamp::UNIX_EPOCH).await;
    assert_eq!((one.activity(), one.is_active()), (&Activity::Holds, true));
    is_down.store(true, Ordering::SeqCst);
    let mut waited = Duration::ZERO;
    while one.is_active() {
        advance(RETRY).await;
        waited += RETRY;
        one.step(&remote, Timestamp::UNIX_EPOCH).await;
    }
    assert!(waited >= DEADLINE && waited < DURATION, "{waited:?}");
    assert!(matches!(one.activity(), Activity::Unknown(why) if why.contains("the message")));
}

fn not_found() -> serde_json::Value {
    let mut status = status(404, "NotFound");
    status["details"] = json!({
        "name": "tinbox-b1", "group": "coordination.k8s.io", "kind": "leases",
    });
    status
}

#[tokio::test(start_paused = true)]
async fn a_box_without_the_right_to_write_a_lease_works() {
    let (remote, _events) = remote(|_| json_reply(403, &status(403, "Forbidden")));
    let mut one = heartbeat("one", None);
    one.step(&remote, Timestamp::UNIX_EPOCH).await;
    assert!(one.is_active() && matches!(one.activity(), Activity::NoLease(_)));
}
