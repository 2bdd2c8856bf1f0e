//! Status of a network: its content, and the decision to write the status.

use api::core::ObjectEvent;
use api::meta::ObjectKey;
use api::network::{ForeignServer, NETWORK, Network, NetworkPlan, NetworkStatus, Phase};
use dhcp::LeaseCounts;
use dhcp::foreign::{Foreign, Hold, Neighbor, State};
use jiff::Timestamp;
use objects::find;

use super::plan::pools;
use super::{Networks, manifest};

/// Status of a network, with its severity.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    status: NetworkStatus,
    /// True if a person should check the network.
    warning: bool,
}

impl Report {
    /// Creates the report for mode `off`: the box answers no DHCP message.
    pub fn off() -> Self {
        Self::new(Phase::Off, "no DHCP message is answered, because spec.mode is off".to_owned())
    }

    /// Creates the report for a network that cannot be served, with the reason `why`.
    pub fn failed(why: &str) -> Self {
        Self { warning: true, ..Self::new(Phase::Failed, why.to_owned()) }
    }

    fn new(phase: Phase, message: String) -> Self {
        let status = NetworkStatus { phase, message, ..NetworkStatus::default() };
        Self { status, warning: false }
    }
}

/// Creates the report from the state of the search for other DHCP servers and the lease counts.
pub fn report(state: &State, plan: &NetworkPlan, bound: LeaseCounts) -> Report {
    let mut report = match state {
        State::Held(Hold::NoCarrier) => Report::new(
            Phase::Probing,
            format!("no link on {}: no cable, or no device at the other end", plan.interface),
        ),
        State::Held(_) => {
            let message = "looking for other DHCP servers before the first answer".to_owned();
            Report::new(Phase::Probing, message)
        }
        State::Serving if plan.mode == api::network::Mode::Pool => {
            Report::new(Phase::Serving, format!("known machines, and {}", pools(plan)))
        }
        State::Serving => Report::new(Phase::Serving, "known machines".to_owned()),
        State::Checking(foreign) => {
            let message = format!(
                "a client accepted the offer of another DHCP server, {foreign}; looking for that \
                 server before the next lease"
            );
            Report { warning: true, ..Report::new(Phase::Probing, message) }
        }
        State::Stopped(foreign) => stopped(foreign),
        State::Proxy(Neighbor::Unknown) => {
            let message = "boot files; looking for the server that gives addresses".to_owned();
            Report::new(Phase::Serving, message)
        }
        State::Proxy(Neighbor::None) => {
            let message = "boot files, but no DHCP server answers here: machines get no address";
            Report { warning: true, ..Report::new(Phase::Serving, message.to_owned()) }
        }
        State::Proxy(Neighbor::Server(foreign)) => {
            Report::new(Phase::Serving, format!("boot files, beside the DHCP server {foreign}"))
        }
    };
    let all: u64 = plan.subnets.iter().map(|subnet| subnet.addresses()).sum();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    report.status.leased = count(bound.leases);
    // A lease from an earlier pool does not reduce the number of free addresses in the current
    // pool.
    report.status.free = u32::try_from(all).unwrap_or(u32::MAX).saturating_sub(count(bound.pooled));
    report
}

fn stopped(foreign: &Foreign) -> Report {
    let message = format!(
        "DHCP stopped: there is another DHCP server, {foreign}; remove it from this network, then \
         serve again with: tinbox network resume {}",
        foreign.interface
    );
    let mut report = Report { warning: true, ..Report::new(Phase::Stopped, message) };
    report.status.foreign_server = Some(ForeignServer {
        address: foreign.server.to_string(),
        mac: foreign.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        offered: foreign.offered.map(|address| address.to_string()).unwrap_or_default(),
        since: Timestamp::try_from(foreign.when).ok(),
    });
    report
}

impl Networks {
    /// Writes the status if the report differs from `last`. A change of phase or message is also
    /// recorded as an Event.
    pub(super) async fn report(
        &self,
        wanted: &Network,
        report: &Report,
        last: &mut Option<Report>,
    ) {
        if last.as_ref() == Some(report) {
            return;
        }
        // The status view shows the new state before it is stored.
        self.board.put(wanted, &report.status, self.clock.now());
        let name = wanted.metadata.name.as_str();
        let key = ObjectKey::new("", name);
        let found = find::<Network>(self.objects.as_ref(), NETWORK, &key).await;
        let Ok(Some(mut network)) = found else { return };
        let before = std::mem::take(&mut network.status);
        network.status = report.status.clone();
        network.status.observed_generation = network.metadata.generation;
        if before != network.status {
            let written = match manifest(&network) {
                Ok(object) => self.objects.update_status(NETWORK, object).await,
                Err(error) => {
                    return tracing::warn!(name, %error, "a network's status is not valid JSON");
                }
            };
            if let Err(error) = written {
                // The object changed at the same time. The change triggers another report.
                return tracing::debug!(name, %error, "cannot write a network's status");
            }
        }
        let summary = |status: &NetworkStatus| (status.phase, status.message.clone());
        if summary(&before) != summary(&network.status) {
            self.record_event(&network, report.warning);
        }
        *last = Some(report.clone());
    }

    fn record_event(&self, network: &Network, warning: bool) {
        let status = &network.status;
        let phase = serde_json::to_value(status.phase).unwrap_or_default();
        self.objects.record(ObjectEvent {
            about: NETWORK,
            namespace: "default".to_owned(),
            name: network.metadata.name.clone(),
            uid: network.metadata.uid.clone(),
            reason: phase.as_str().unwrap_or_default().to_owned(),
            message: status.message.clone(),
            warning,
            component: "tinboxd".to_owned(),
            at: self.clock.now(),
        });
    }
}
