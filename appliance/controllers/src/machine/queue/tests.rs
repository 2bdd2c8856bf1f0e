use std::sync::Arc;
use std::time::Duration;

use bmc::fake::{Call, Failure, Fake, Mode};
use bmc::{Address, Credentials, Driver, Endpoint, Error, PoeLogin, PoeOptions, Power, Protocol};
use jiff::{SignedDuration, Timestamp};
use stdx::TestClock;
use tokio::time::{Instant, advance};

use super::QueuedDrivers;
use crate::machine::Drivers;

struct One(Fake);

impl Drivers for One {
    fn open(&self, _endpoint: Endpoint) -> Arc<dyn Driver> {
        Arc::new(self.0.clone())
    }
}

fn endpoint(password: &str) -> Endpoint {
    Endpoint {
        address: Address::ipmi("bmc"),
        credentials: Credentials { username: "admin".into(), password: password.into() },
        protocol: Protocol::Ipmi { cipher_suite: None },
    }
}

fn start() -> (Fake, TestClock, QueuedDrivers) {
    let (fake, clock) = (Fake::new(Power::On), TestClock::at(Timestamp::UNIX_EPOCH));
    let drivers = QueuedDrivers::new(Arc::new(One(fake.clone())), Arc::new(clock.clone()));
    (fake, clock, drivers)
}

/// Ten requests at once, as of a Machine and of nine Tasks.
#[tokio::test(start_paused = true)]
async fn a_refused_login_is_sent_once_for_all_waiting_requests() {
    let (fake, clock, drivers) = start();
    fake.set_mode(Mode::Failing(Failure::WrongPassword));
    let requests: Vec<_> = (0..10)
        .map(|_| {
            let driver = drivers.open(endpoint("wrong"));
            tokio::spawn(async move { driver.power().await })
        })
        .collect();
    for request in requests {
        let error = request.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::LoginHeld { .. }) && error.refuses_login(), "{error}");
        assert!(!error.is_transient());
    }
    assert_eq!(fake.calls(), [Call::Power]);

    fake.set_mode(Mode::Honest);
    assert!(drivers.open(endpoint("wrong")).power().await.is_err(), "still held");
    assert_eq!(drivers.open(endpoint("right")).power().await.unwrap(), Power::On);
    assert!(
        drivers.open(endpoint("wrong")).power().await.is_err(),
        "another login changes nothing"
    );
    assert_eq!(fake.calls().len(), 2);
    clock.advance(SignedDuration::from_secs(300));
    assert_eq!(drivers.open(endpoint("wrong")).power().await.unwrap(), Power::On);
}

#[tokio::test(start_paused = true)]
async fn other_errors_hold_no_login() {
    let (fake, _clock, drivers) = start();
    fake.set_mode(Mode::Failing(Failure::NoAnswer));
    for _ in 0..3 {
        let error = drivers.open(endpoint("right")).power().await.unwrap_err();
        assert!(error.is_transient() && !error.refuses_login(), "{error}");
    }
    assert_eq!(fake.calls().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_silent_bmc_is_probed_seldom_and_used_at_once_after_a_response() {
    let (fake, _clock, drivers) = start();
    fake.set_mode(Mode::Failing(Failure::NoAnswer));
    let driver = drivers.open(endpoint("right"));
    let start = Instant::now();
    let mut last = String::new();
    while start.elapsed() < Duration::from_secs(120) {
        let error = driver.power().await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        last = error.to_string();
        advance(Duration::from_millis(500)).await;
    }
    // Five requests, and probes after 2, 4, 8, 16 and 30 s, each up to a tenth earlier.
    let sent = fake.calls().len();
    assert!((10..=13).contains(&sent), "{sent} of 240 requests were sent");
    assert!(last.starts_with("BMC fake:623 did not respond to a command within"), "{last}");
    assert!(last.contains("after 5 failed requests"), "{last}");

    fake.set_mode(Mode::Honest);
    while driver.power().await.is_err() {
        advance(Duration::from_secs(1)).await;
    }
    let sent = fake.calls().len();
    for _ in 0..3 {
        assert_eq!(driver.power().await.unwrap(), Power::On);
    }
    assert_eq!(fake.calls().len(), sent + 3);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_of_one_port_delays_no_other_port_of_the_switch() {
    let (_fake, _clock, drivers) = start();
    let at = |port: &str| Endpoint {
        address: Address { host: "switch".to_owned(), port: 161 },
        credentials: Credentials::default(),
        protocol: Protocol::Poe(Box::new(PoeOptions {
            host: "switch".to_owned(),
            udp_port: 161,
            login: PoeLogin::Community("write-here".into()),
            port: port.parse().unwrap(),
            name: None,
        })),
    };
    let record = drivers.record(&at("1.1"));
    let _cycle = record.lock().await;
    assert_eq!(drivers.open(at("1.2")).power().await.unwrap(), Power::On);
    let same = drivers.open(at("1.1"));
    let waiting = tokio::time::timeout(Duration::from_secs(1), same.power()).await;
    assert!(waiting.is_err(), "the port has a queue");
}

#[tokio::test(start_paused = true)]
async fn many_requests_to_one_bmc_are_spread_over_time() {
    let (fake, _clock, drivers) = start();
    let driver = drivers.open(endpoint("right"));
    let begin = Instant::now();
    for _ in 0..60 {
        driver.power().await.unwrap();
    }
    assert_eq!(begin.elapsed().as_secs(), 10, "20 at once, then 4 each second");
    let mut other = endpoint("right");
    other.address.host = "other".to_owned();
    let begin = Instant::now();
    drivers.open(other).power().await.unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO, "another BMC does not wait");
    assert_eq!(fake.calls().len(), 61);
}
