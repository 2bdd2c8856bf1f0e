//! Task of one endpoint: takes the address, checks the machines and forwards connections.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use http_edge::Connections;
use platform::net::{Claim, Confirmation, VirtualAddress};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use crate::backends::Health;
use crate::forward::{self, SharedBackends};
use crate::host::AddressHost;
use crate::probe::Prober;
use crate::state::State;

/// Interval of the checks of each machine.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Wait before the next attempt to take an address that another machine has.
const RETRY: Duration = Duration::from_secs(15);
/// Interval at which the endpoint confirms that the interface still has the address and a carrier,
/// and that no other machine answers for the address. Other programs may remove addresses, such as
/// a DHCP client.
const CONFIRM: Duration = Duration::from_secs(10);
/// Wait between the first and the second announcement (RFC 5227 section 1.1, ANNOUNCE_INTERVAL).
/// The first confirmation makes the second announcement.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
/// Number of conflicts in sequence after which the box gives the address back to a machine that
/// must yield: that machine is not a box.
const CONFLICTS_MAX: u32 = 3;
/// Wait after an error of `accept`, such as too many open files.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// Result of the check of a machine; `None` if the health is unknown.
type Checked = (SocketAddrV4, Option<Health>);

/// Parts that all endpoints share.
#[derive(Clone)]
pub struct Shared {
    /// Addresses of the host.
    pub host: Arc<dyn AddressHost>,
    /// Health checks; each endpoint checks its own machines.
    pub prober: Prober,
    /// Limits of the connections.
    pub connections: Connections,
}

/// Task of one endpoint.
pub struct Endpoint {
    /// Parts that all endpoints share.
    pub shared: Shared,
    /// Address and its interface.
    pub at: VirtualAddress,
    /// TCP port of the endpoint.
    pub port: u16,
    /// Machines of the control plane.
    pub machines: watch::Receiver<Vec<SocketAddrV4>>,
    /// State for the status.
    pub state: watch::Sender<State>,
}

impl Endpoint {
    /// Runs until `stop`, and then gives back the address.
    pub async fn run(mut self, stop: CancellationToken) {
        let stopped = stop.clone();
        stopped.run_until_cancelled(self.hold()).await;
        self.give_back().await;
        tracing::info!(address = %self.at.address, interface = self.at.interface, "endpoint ended");
    }

    async fn give_back(&self) {
        if let Err(error) = self.shared.host.give_back(&self.at).await {
            // The address may already be gone with the link.
            let (address, reason) = (self.at.address, stdx::chain(&error));
            tracing::debug!(%address, reason, "not removed");
        }
    }

    /// Takes the address and forwards, again after each failure. A failure is reported after the
    /// address was given back.
    async fn hold(&mut self) {
        loop {
            let next = match self.shared.host.take(&self.at).await {
                Ok(Claim::Held) => match forward::listen(self.socket()) {
                    Ok(listener) => {
                        let (address, interface) = (self.at.address, &self.at.interface);
                        tracing::info!(%address, port = self.port, interface, "endpoint forwards");
                        self.serve(listener).await
                    }
                    Err(error) => State::Failed(format!(
                        "cannot listen on {}: {error}; another program of the box may use the port",
                        self.socket()
                    )),
                },
                Ok(Claim::InUse(mac)) => State::InUse(mac),
                Err(error) => State::Failed(stdx::chain(&error)),
            };
            let is_retry = next != State::Probing;
            if is_retry {
                self.give_back().await;
            }
            self.show(next);
            if is_retry {
                sleep(RETRY).await;
            }
        }
    }

    /// Forwards connections until the box loses the address or must give the address back. Returns
    /// the next state.
    async fn serve(&mut self, listener: TcpListener) -> State {
        let backends = SharedBackends::default();
        backends.lock().set(&self.machines.borrow_and_update());
        let (mut checks, mut open) = (JoinSet::new(), JoinSet::new());
        // The first connection would find no machine with a known health.
        self.check(&backends, &mut checks);
        for checked in checks.join_all().await {
            record(&backends, checked);
        }
        let mut checks = JoinSet::new();
        let mut due = interval(CHECK_INTERVAL);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut confirmations, mut unannounced, mut conflicts) = (JoinSet::new(), true, 0);
        let mut confirm = interval_at(Instant::now() + ANNOUNCE_INTERVAL, CONFIRM);
        confirm.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.show_backends(&backends);
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((client, _)) => {
                        let connections = self.shared.connections.clone();
                        open.spawn(forward::forward(client, backends.clone(), connections));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(ACCEPT_WAIT).await;
                    }
                },
                Some(ended) = open.join_next() => drop(finished(ended)),
                Some(checked) = checks.join_next() => {
                    if let Some(checked) = finished(checked) {
                        record(&backends, checked);
                    }
                }
                // A check takes up to four seconds; the next one begins after it.
                _ = due.tick(), if checks.is_empty() => self.check(&backends, &mut checks),
                _ = confirm.tick(), if confirmations.is_empty() => {
                    let (host, at) = (Arc::clone(&self.shared.host), self.at.clone());
                    confirmations.spawn(async move { host.confirm(&at, unannounced).await });
                }
                Some(confirmed) = confirmations.join_next() => {
                    let Some(confirmed) = finished(confirmed) else { continue };
                    unannounced = unannounced && confirmed.is_err();
                    if let Some(next) = self.after(confirmed, &mut conflicts) {
                        return next;
                    }
                }
                Ok(()) = self.machines.changed() => {
                    backends.lock().set(&self.machines.borrow_and_update());
                    due.reset_immediately();
                }
            }
        }
    }

    fn check(&self, backends: &SharedBackends, checks: &mut JoinSet<Checked>) {
        for address in backends.lock().addresses() {
            let prober = self.shared.prober.clone();
            checks.spawn(async move { (address, prober.check(address).await) });
        }
    }

    /// Returns the state after a confirmation that ends the forwarding. `None` while the box keeps
    /// the address. `conflicts` counts the conflicts in sequence.
    fn after(
        &self,
        confirmed: Result<Confirmation, platform::Error>,
        conflicts: &mut u32,
    ) -> Option<State> {
        let address = self.at.address;
        match confirmed {
            Ok(Confirmation::Held) => {
                *conflicts = 0;
                None
            }
            Ok(Confirmation::Gone) => {
                tracing::warn!(%address, "the address is gone");
                Some(State::Probing)
            }
            // Another machine may take the address until the carrier returns.
            Ok(Confirmation::NoCarrier) => {
                let interface = &self.at.interface;
                Some(State::Failed(format!("network interface {interface} has no carrier")))
            }
            Ok(Confirmation::Conflict { mac, must_yield }) => {
                *conflicts += 1;
                tracing::warn!(%address, %mac, must_yield, "another machine answers");
                (must_yield || *conflicts >= CONFLICTS_MAX).then_some(State::InUse(mac))
            }
            Err(error) => {
                tracing::warn!(%address, reason = stdx::chain(&error), "cannot confirm");
                None
            }
        }
    }

    fn show_backends(&self, backends: &SharedBackends) {
        let (healthy, total) = {
            let backends = backends.lock();
            (backends.healthy(), backends.addresses().len())
        };
        self.show(State::Forwarding { interface: self.at.interface.clone(), healthy, total });
    }

    fn show(&self, state: State) {
        self.state.send_if_modified(|shown| {
            let is_news = *shown != state;
            *shown = state;
            is_news
        });
    }

    fn socket(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.at.address, self.port)
    }
}

fn record(backends: &SharedBackends, (address, health): Checked) {
    if let Some(health) = health {
        backends.lock().checked(address, health);
    }
}

/// Returns the result of a task, and passes on its panic.
fn finished<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        ended => ended.ok(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
