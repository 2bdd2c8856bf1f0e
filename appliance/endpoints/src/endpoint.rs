//! Task of one endpoint: takes the address, checks the machines and forwards connections.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use http_edge::Connections;
use platform::net::{Claim, VirtualAddress};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep};
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
/// Interval at which the endpoint confirms that the interface still has the address. Other programs
/// may remove addresses, such as a DHCP client.
const CONFIRM: Duration = Duration::from_secs(10);
/// Wait after an error of `accept`, such as too many open files.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

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
        if let Err(error) = self.shared.host.give_back(&self.at).await {
            // The address may already be gone with the link.
            let (address, reason) = (self.at.address, stdx::chain(&error));
            tracing::debug!(%address, reason, "not removed");
        }
        tracing::info!(address = %self.at.address, interface = self.at.interface, "endpoint ended");
    }

    /// Takes the address and forwards, again after each failure.
    async fn hold(&mut self) {
        loop {
            let next = match self.shared.host.take(&self.at).await {
                Ok(Claim::Held) => match forward::listen(self.socket()) {
                    Ok(listener) => {
                        let (address, interface) = (self.at.address, &self.at.interface);
                        tracing::info!(%address, port = self.port, interface, "endpoint forwards");
                        self.serve(listener).await;
                        State::Probing
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
            self.show(next);
            if is_retry {
                sleep(RETRY).await;
            }
        }
    }

    /// Forwards connections until the address is gone.
    async fn serve(&mut self, listener: TcpListener) {
        let backends = SharedBackends::default();
        backends.lock().set(&self.machines.borrow_and_update());
        let (mut checks, mut open) = (JoinSet::new(), JoinSet::new());
        // The first connection would find no machine with a known health.
        self.check(&backends, &mut checks);
        for (address, health) in checks.join_all().await {
            backends.lock().checked(address, health);
        }
        let mut checks = JoinSet::new();
        let mut due = interval(CHECK_INTERVAL);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut confirm = interval(CONFIRM);
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
                    if let Some((address, health)) = finished(checked) {
                        backends.lock().checked(address, health);
                    }
                }
                // A check takes up to four seconds; the next one begins after it.
                _ = due.tick(), if checks.is_empty() => self.check(&backends, &mut checks),
                _ = confirm.tick() => {
                    if !self.is_held().await {
                        tracing::warn!(address = %self.at.address, "the address is gone");
                        return;
                    }
                }
                Ok(()) = self.machines.changed() => {
                    backends.lock().set(&self.machines.borrow_and_update());
                    due.reset_immediately();
                }
            }
        }
    }

    fn check(&self, backends: &SharedBackends, checks: &mut JoinSet<(SocketAddrV4, Health)>) {
        for address in backends.lock().addresses() {
            let prober = self.shared.prober.clone();
            checks.spawn(async move { (address, prober.check(address).await) });
        }
    }

    /// Returns false if the interface has lost the address, and true if the addresses are unknown.
    async fn is_held(&self) -> bool {
        self.shared.host.all().await.map_or(true, |all| all.contains(&self.at))
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

/// Returns the result of a task, and passes on its panic.
fn finished<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        ended => ended.ok(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
