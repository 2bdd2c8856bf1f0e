//! Queue of the requests to each BMC, which Machines and Tasks share. The queue sends one request
//! at a time, within a rate limit, and seldom to a BMC that does not respond. The queue repeats no
//! login that the BMC refused: some BMCs lock an account after a few of them.

mod breaker;
mod rate;
mod refusals;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bmc::{
    BootOverride, Capabilities, Confirmation, Driver, Endpoint, Error, HardwareInventory, LogEntry,
    Pending, PortId, Power, PowerAction, Sensor,
};
use stdx::Clock;
use tokio::io::DuplexStream;
use tokio::time::Instant;

use self::breaker::{Breaker, FAILURES_MAX, Outcome};
use self::rate::RateLimit;
use self::refusals::Refusals;
use super::{Drivers, jitter};
use crate::power::Sightings;

/// Maximum number of stored BMCs. Above this number, BMCs without a running request are dropped.
const BMCS_MAX: usize = 4096;

/// Host in lower case, port, and port of a switch: a cycle must not delay the other machines.
type BmcAddress = (String, u16, Option<PortId>);

/// State of one BMC; locked during each request.
#[derive(Debug, Default)]
struct BmcRecord {
    refusals: Refusals,
    breaker: Breaker,
    rate: RateLimit,
    /// Last error of the BMC; empty after a response.
    last_error: String,
}

impl BmcRecord {
    /// Returns an error if the request must not be sent now.
    fn refusal(&self, endpoint: &Endpoint, now: Duration) -> Option<Error> {
        let is_open = !self.breaker.permits(Instant::now());
        let silent = is_open.then(|| Error::Paused {
            address: endpoint.address.clone(),
            answer: self.last_error.clone(),
            failures: FAILURES_MAX,
        });
        self.refusals.hold(endpoint, now).or(silent)
    }

    /// Records the result of a request.
    fn record<T>(&mut self, endpoint: &Endpoint, result: &Result<T, Error>) {
        let outcome = Outcome::of(result);
        let address = (&endpoint.address.host, endpoint.address.port);
        let vary = |wait| jitter::shortened(wait, &address);
        self.breaker = self.breaker.after(outcome, Instant::now(), vary);
        self.last_error = match (outcome, result) {
            (Outcome::NoResponse, Err(error)) => error.sentence(),
            _ => String::new(),
        };
    }
}

/// Record that all drivers of one BMC share.
type SharedRecord = Arc<tokio::sync::Mutex<BmcRecord>>;

/// Factory of drivers that share one queue for each BMC.
pub struct QueuedDrivers {
    drivers: Arc<dyn Drivers>,
    clock: Arc<dyn Clock>,
    records: Mutex<HashMap<BmcAddress, SharedRecord>>,
}

impl QueuedDrivers {
    /// Creates the queues of the BMCs that `drivers` reaches.
    pub fn new(drivers: Arc<dyn Drivers>, clock: Arc<dyn Clock>) -> Self {
        Self { drivers, clock, records: Mutex::default() }
    }

    fn record(&self, endpoint: &Endpoint) -> SharedRecord {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() >= BMCS_MAX {
            records.retain(|_, record| Arc::strong_count(record) > 1);
        }
        let host = endpoint.address.host.to_ascii_lowercase();
        let address = (host, endpoint.address.port, endpoint.switch_port());
        Arc::clone(records.entry(address).or_default())
    }
}

impl Drivers for QueuedDrivers {
    fn sightings(&self) -> Option<Arc<dyn Sightings>> {
        self.drivers.sightings()
    }

    fn open(&self, endpoint: Endpoint) -> Arc<dyn Driver> {
        Arc::new(QueuedDriver {
            record: self.record(&endpoint),
            driver: self.drivers.open(endpoint.clone()),
            clock: Arc::clone(&self.clock),
            endpoint,
        })
    }
}

/// Driver whose requests wait in the queue of the BMC.
struct QueuedDriver {
    driver: Arc<dyn Driver>,
    record: SharedRecord,
    clock: Arc<dyn Clock>,
    endpoint: Endpoint,
}

impl QueuedDriver {
    /// Sends the request when the earlier ones have ended, or fails without sending it.
    async fn queued<'a, T>(&'a self, request: impl FnOnce() -> Pending<'a, T>) -> Result<T, Error> {
        let mut record = self.record.lock().await;
        if let Some(error) = record.refusal(&self.endpoint, self.clock.steady()) {
            return Err(error);
        }
        tokio::time::sleep(record.rate.take(Instant::now())).await;
        let result = request().await;
        record.record(&self.endpoint, &result);
        match &result {
            Err(error) if error.refuses_login() => {
                Err(record.refusals.refused(&self.endpoint, error, self.clock.as_ref()))
            }
            Ok(_) => {
                record.refusals.forget(&self.endpoint);
                result
            }
            Err(_) => result,
        }
    }

    /// Sends a request in a session of its own, so that power requests do not wait for it. A
    /// refused login counts as in the queue, a missing response does not.
    async fn beside_the_queue<'a, T>(
        &'a self,
        request: impl FnOnce() -> Pending<'a, T>,
    ) -> Result<T, Error> {
        let wait = {
            let mut record = self.record.lock().await;
            if let Some(error) = record.refusal(&self.endpoint, self.clock.steady()) {
                return Err(error);
            }
            record.rate.take(Instant::now())
        };
        tokio::time::sleep(wait).await;
        match request().await {
            Err(error) if error.refuses_login() => {
                let mut record = self.record.lock().await;
                Err(record.refusals.refused(&self.endpoint, &error, self.clock.as_ref()))
            }
            result => result,
        }
    }
}

impl Driver for QueuedDriver {
    fn name(&self) -> &'static str {
        self.driver.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    fn confirmation(&self) -> Confirmation {
        self.driver.confirmation()
    }

    fn power_reason(&self) -> Option<String> {
        self.driver.power_reason()
    }

    fn is_silent(&self) -> bool {
        self.driver.is_silent()
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(self.queued(|| self.driver.power()))
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        Box::pin(self.queued(move || self.driver.set_power(action)))
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        Box::pin(self.queued(move || self.driver.set_boot_device(boot)))
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        Box::pin(self.queued(|| self.driver.boot_device()))
    }

    fn set_http_boot<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        Box::pin(self.queued(move || self.driver.set_http_boot(url)))
    }

    fn insert_media<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        Box::pin(self.queued(move || self.driver.insert_media(url)))
    }

    fn eject_media(&self) -> Pending<'_, ()> {
        Box::pin(self.queued(|| self.driver.eject_media()))
    }

    fn identify(&self, time: Duration) -> Pending<'_, ()> {
        Box::pin(self.queued(move || self.driver.identify(time)))
    }

    fn sensors(&self) -> Pending<'_, Vec<Sensor>> {
        Box::pin(self.queued(|| self.driver.sensors()))
    }

    fn events(&self) -> Pending<'_, Vec<LogEntry>> {
        Box::pin(self.queued(|| self.driver.events()))
    }

    fn inventory(&self) -> Pending<'_, HardwareInventory> {
        Box::pin(self.queued(|| self.driver.inventory()))
    }

    fn console(&self) -> Pending<'_, DuplexStream> {
        Box::pin(self.beside_the_queue(|| self.driver.console()))
    }
}

#[cfg(test)]
mod tests;
