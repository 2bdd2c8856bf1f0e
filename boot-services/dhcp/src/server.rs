//! The DHCPv4 service: receives datagrams, decides, commits leases, sends answers.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use stdx::{Backoff, MacAddr};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Mode};
use crate::engine::{Engine, Outgoing, Output, ServeMode};
use crate::error::Error;
use crate::events::Observer;
use crate::leases::{LeaseCounts, LeaseStore};
use crate::messages::request::Malformed;
use crate::reservation::Directory;
use crate::sockets::udp::{Link, MAX_DATAGRAM};

mod pending;
mod ra;

use pending::PendingAnswers;

/// Maximum datagrams in one batch, so that the first clients of a rack do not wait for the last.
const MAX_BATCH: usize = 256;
/// Minimum interval between two batches while datagrams arrive. Waking up for each datagram costs
/// more than the answer; clients do not notice the delay.
const BATCH_EVERY: Duration = Duration::from_millis(1);
/// Interval of checking the interface, removing expired entries, and publishing counts.
const INTERFACE_CHECK: Duration = Duration::from_secs(5);
/// Consecutive failed receives (each within one interface check) that end the service. One failure
/// is normal: the kernel reports an interface that goes down.
const MAX_FAILURES: u32 = 8;
/// First and maximum delay between attempts to start router advertisements.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// Configuration and dependencies of the DHCPv4 service.
pub struct Service {
    /// Configuration. A new value applies to the next datagram, except `interface`, `server` and
    /// the router advertisements, which keep their first values.
    pub config: watch::Receiver<Config>,
    /// Serving state, which may change at any time.
    pub serve_mode: watch::Receiver<ServeMode>,
    /// Lookup of machines by MAC.
    pub directory: Arc<dyn Directory>,
    /// Receiver of the service's events.
    pub observer: Arc<dyn Observer>,
    /// Store of leases; the service must be its only writer. [`Mode::Pool`] needs it.
    pub leases: Option<Arc<dyn LeaseStore>>,
    /// Checker of addresses; `None`: every address counts as free.
    pub checker: Option<Checker>,
    /// Receives the number of bound leases every 5 s.
    pub counts: watch::Sender<LeaseCounts>,
}

/// Channels to a program that checks whether addresses are in use.
pub struct Checker {
    /// Addresses to check. If the queue is full, the address is not checked and counts as free.
    pub requests: mpsc::Sender<Ipv4Addr>,
    /// Results, in any order. An address without a result counts as free after 4 s.
    pub results: mpsc::Receiver<CheckResult>,
}

/// Result of a check that an address is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckResult {
    /// Address that was checked.
    pub address: Ipv4Addr,
    /// MAC of the station that uses the address; `None` if the address is free.
    pub holder: Option<MacAddr>,
}

impl Service {
    /// Serves the interface until `shutdown` is cancelled.
    ///
    /// The interface must exist, and should have the address `server`. Needs `CAP_NET_RAW` and
    /// `CAP_NET_BIND_SERVICE`. If router advertisements cannot be sent (no IPv6), the error is
    /// logged and the DHCP service continues.
    ///
    /// # Errors
    /// The configuration has mistakes, a socket cannot be opened, the leases cannot be read,
    /// several commits in a row failed, or the interface was removed. The caller may run the
    /// service again.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), Error> {
        let config = self.config.borrow_and_update().clone();
        self.check(&config)?;
        let leases = match self.leases.clone() {
            Some(store) => blocking(move || store.load()).await?,
            None => Vec::new(),
        };
        let link = Link::open(&config.interface, config.server)?;
        let (interface, server) = (config.interface.clone(), config.server);
        let advertised = self.serve_mode.clone();
        let mut engine = Engine::new(config.clone(), &leases, unix_secs(), Instant::now());
        engine.set_serve_mode(*self.serve_mode.borrow_and_update());
        tracing::info!(interface, %server, mode = ?config.mode, "serving DHCP");
        let pending = PendingAnswers::new(self.leases.clone());
        let serving = ServiceLoop { service: self, link, engine, pending };
        let result = tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            error = serving.serve() => Err(error),
            () = advertise(&config, advertised), if config.router_advertisements => Ok(()),
        };
        tracing::info!(interface, "stopped serving DHCP");
        result
    }

    fn check(&self, config: &Config) -> Result<(), Error> {
        let mut mistakes = config.mistakes();
        if config.mode == Mode::Pool && self.leases.is_none() {
            mistakes.push("mode: pool needs a file for its leases".to_owned());
        }
        if mistakes.is_empty() { Ok(()) } else { Err(Error::Config(mistakes)) }
    }
}

/// Waits for the next result of a check; waits forever without a checker.
async fn next_checked(checker: &mut Option<Checker>) -> CheckResult {
    if let Some(open) = checker {
        if let Some(checked) = open.results.recv().await {
            return checked;
        }
        *checker = None;
    }
    std::future::pending().await
}

/// Sends router advertisements forever, except in mode [`ServeMode::Closed`]. Without IPv6 it
/// retries, because IPv6 may start with the interface's link.
///
/// Mode `Closed` also stops answers to solicitations. An iPXE with IPv6 and without a DHCP answer
/// counts as configured, and gives up sooner than an iPXE that waits for both.
async fn advertise(config: &Config, mut serve_mode: watch::Receiver<ServeMode>) {
    let interface = &config.interface;
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
    loop {
        until(&mut serve_mode, |serve_mode| serve_mode != ServeMode::Closed).await;
        tokio::select! {
            failed = ra::advertise(interface, config.ra_prefix) => {
                if let Err(error) = failed {
                    tracing::warn!(interface, %error, "no router advertisements: iPXE will wait");
                }
                tokio::time::sleep(backoff.next_wait()).await;
            }
            () = until(&mut serve_mode, |serve_mode| serve_mode == ServeMode::Closed) => {}
        }
    }
}

/// Waits until the serve mode satisfies `is`; waits forever if the mode's sender is dropped.
async fn until(serve_mode: &mut watch::Receiver<ServeMode>, is: impl Fn(ServeMode) -> bool) {
    if serve_mode.wait_for(|serve_mode| is(*serve_mode)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn unix_secs() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::Leases { attempt: "reach", source: Box::new(error) }))
}

/// Waits until the time `batch`, and then until a datagram is waiting at either port.
async fn next(link: &Link, batch: tokio::time::Instant) -> std::io::Result<()> {
    tokio::time::sleep_until(batch).await;
    link.readable().await
}

/// Engine of the service with its sockets and its store of leases.
struct ServiceLoop {
    service: Service,
    link: Link,
    engine: Engine,
    pending: PendingAnswers,
}

impl ServiceLoop {
    async fn serve(mut self) -> Error {
        let interface = self.engine_interface();
        let mut buffer = vec![0; MAX_DATAGRAM];
        let mut failures = 0;
        let mut next_batch = tokio::time::Instant::now();
        let mut check = tokio::time::interval(INTERFACE_CHECK);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let outputs = tokio::select! {
                ready = next(&self.link, next_batch), if self.pending.have_room() => {
                    next_batch = tokio::time::Instant::now() + BATCH_EVERY;
                    match ready.and_then(|()| self.batch(&mut buffer)) {
                        Ok(outputs) => {
                            failures = 0;
                            outputs
                        }
                        Err(source) => {
                            failures += 1;
                            tracing::warn!(interface, error = %source, "cannot receive");
                            if failures >= MAX_FAILURES {
                                return Error::Receive { interface, source };
                            }
                            continue;
                        }
                    }
                }
                committed = self.pending.committed() => match committed {
                    Ok(answers) => {
                        self.send(answers);
                        continue;
                    }
                    Err(error) => return error,
                },
                CheckResult { address, holder } = next_checked(&mut self.service.checker) => {
                    self.conclude(address, holder)
                }
                Ok(()) = self.service.config.changed() => {
                    self.reconfigure();
                    continue;
                }
                Ok(()) = self.service.serve_mode.changed() => {
                    self.engine.set_serve_mode(*self.service.serve_mode.borrow_and_update());
                    continue;
                }
                _ = check.tick() => {
                    failures = 0;
                    if let Err(source) = self.link.is_current() {
                        return Error::Interface { interface, source };
                    }
                    self.upkeep();
                    Vec::new()
                }
            };
            self.complete(outputs);
        }
    }

    /// Removes expired entries, and publishes the counts.
    fn upkeep(&mut self) {
        let now = Instant::now();
        self.engine.sweep(now);
        self.service.counts.send_replace(self.engine.counts(now));
    }

    fn engine_interface(&self) -> String {
        self.service.config.borrow().interface.clone()
    }

    /// Receives up to [`MAX_BATCH`] waiting datagrams at both ports, and returns the answers.
    fn batch(&mut self, buffer: &mut [u8]) -> std::io::Result<Vec<Output>> {
        let mut outputs = Vec::new();
        let mut room = MAX_BATCH;
        let now = Instant::now();
        let (directory, observer) = (&*self.service.directory, &*self.service.observer);
        // A mode that changes while datagrams wait also applies to them.
        self.engine.set_serve_mode(*self.service.serve_mode.borrow());
        while room > 0
            && let Some(length) = self.link.receive(buffer)?
        {
            room -= 1;
            let datagram = &buffer[..length];
            understood(self.engine.handle(datagram, directory, observer, now), &mut outputs);
        }
        while room > 0
            && let Some((length, from)) = self.link.receive_boot_server(buffer)?
        {
            room -= 1;
            let datagram = &buffer[..length];
            let answer = self.engine.handle_boot_server(datagram, from, directory, observer, now);
            understood(answer, &mut outputs);
        }
        Ok(outputs)
    }

    fn conclude(&mut self, address: Ipv4Addr, holder: Option<MacAddr>) -> Vec<Output> {
        let (directory, observer) = (&*self.service.directory, &*self.service.observer);
        self.engine.checked(address, holder, directory, observer, Instant::now())
    }

    fn reconfigure(&mut self) {
        let config = self.service.config.borrow_and_update().clone();
        match self.service.check(&config) {
            Ok(()) => self.engine.reconfigure(config, Instant::now()),
            Err(error) => tracing::error!(%error, "keeping the previous settings"),
        }
    }

    /// Starts checks, and sends answers without a stored lease; others wait for their commit.
    fn complete(&mut self, outputs: Vec<Output>) {
        let mut messages = Vec::new();
        let mut rest = outputs;
        // If a check cannot start, the address counts as free, which may cause another check.
        while let Some(output) = rest.pop() {
            match output {
                Output::Send(outgoing) => messages.push(outgoing),
                Output::Check { address } if !self.request_check(address) => {
                    rest.extend(self.conclude(address, None));
                }
                Output::Check { .. } => {}
            }
        }
        // The messages were taken from the end.
        messages.reverse();
        let answers = self.pending.take(self.engine.take_changes(), messages);
        self.send(answers);
    }

    fn send(&self, answers: Vec<Outgoing>) {
        for outgoing in answers {
            match self.link.send(&outgoing) {
                Ok(()) => self.service.observer.observe(outgoing.event),
                Err(error) => {
                    tracing::warn!(to = ?outgoing.to, %error, "cannot send a DHCP reply");
                }
            }
        }
    }

    fn request_check(&self, address: Ipv4Addr) -> bool {
        let checker = self.service.checker.as_ref();
        checker.is_some_and(|checker| checker.requests.try_send(address).is_ok())
    }
}

fn understood(answer: Result<Vec<Output>, Malformed>, outputs: &mut Vec<Output>) {
    match answer {
        Ok(answer) => outputs.extend(answer),
        Err(reason) => tracing::debug!(%reason, "not a client's DHCP message"),
    }
}
