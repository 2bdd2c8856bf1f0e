//! Network interfaces in the status view, with the state of DHCP on them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use api::network::{NetworkPlan, Phase};
use config::{Config, Management, Network};
use jiff::Timestamp;
use lifecycle::names::Names;
use platform::net::InterfaceState;
use provisioning::networks::board::{Board, Standing, Wait};
use status::source::{Filling, StatusSource};
use status::view::{Fault, ForeignServer, Nic, Role, StatusView, Trouble};

/// Status source of the network interfaces.
pub struct NetworkSource {
    config: Arc<Config>,
    board: Board,
    /// Names in the certificate; `None` on a guest.
    names: Option<Arc<Names>>,
    /// State of each interface's cable: true if plugged in, and the time of the last change.
    cables: Mutex<HashMap<String, (bool, Option<Timestamp>)>>,
}

impl NetworkSource {
    /// Creates a source of the machine's interfaces. `config` and `board` have the state of DHCP.
    pub fn new(config: Arc<Config>, board: Board, names: Option<Arc<Names>>) -> Self {
        Self { config, board, names, cables: Mutex::default() }
    }

    async fn look(&self) -> Vec<InterfaceState> {
        match &self.names {
            Some(names) => names.look().await,
            None => platform::net::look().await.unwrap_or_default(),
        }
    }

    /// Returns the time at which the cable was last plugged in or removed; `None` without a change.
    fn link_since(&self, seen: &InterfaceState, now: Timestamp) -> Option<Timestamp> {
        let mut cables = self.cables.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in = seen.mbps.is_some();
        let cable = cables.entry(seen.link.name.clone()).or_insert((is_in, None));
        if cable.0 != is_in {
            *cable = (is_in, Some(now));
        }
        cable.1
    }
}

impl StatusSource for NetworkSource {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        Box::pin(async move {
            let seen = self.look().await;
            let (ports, seen): (Vec<InterfaceState>, Vec<InterfaceState>) =
                seen.into_iter().partition(|seen| seen.port_of.is_some());
            view.faults.extend(ports.iter().filter_map(without_cable));
            view.faults.extend(self.board.waits().iter().map(waiting));
            for one in &seen {
                let name = &one.link.name;
                let plan = self.config.networks.iter().find(|plan| plan.interface == *name);
                let standing = self.board.of(name);
                view.faults.extend(standing.as_ref().and_then(|it| fault(name, it)));
                let joined = |rack: &Network| rack.interface == *name && rack.joined;
                let both = seen.len() == 1 || self.config.network.iter().any(joined);
                let mut nic = nic(one, plan, standing.unwrap_or_default(), both);
                let unused = |card: &Management| card.interface == *name && card.unused;
                if plan.is_none() && self.config.management.iter().any(unused) {
                    nic.role = Role::Unused;
                }
                let link_since = self.link_since(one, view.now);
                view.nics.push(Nic { link_since, ..nic });
            }
        })
    }
}

fn nic(seen: &InterfaceState, plan: Option<&NetworkPlan>, standing: Standing, both: bool) -> Nic {
    // An address that a person can type is preferred.
    let rank = |address: &&(IpAddr, u8)| (address.0.is_ipv6(), link_local(address.0));
    let own = plan.and_then(|plan| {
        seen.addresses.iter().find(|(address, _)| *address == IpAddr::V4(plan.address))
    });
    let best = own.or_else(|| seen.addresses.iter().min_by_key(rank));
    let Standing { mode, status, armed_since, probed } = standing;
    let serves = status.phase == Phase::Serving;
    let foreign = status.foreign_server.map(|server| ForeignServer {
        address: server.address.into(),
        mac: server.mac.into(),
        offered: server.offered.into(),
        heard: server.since,
        ..ForeignServer::default()
    });
    Nic {
        name: seen.link.name.as_str().into(),
        mac: Some(seen.link.mac),
        link_mbps: seen.mbps,
        role: match plan {
            Some(_) if both => Role::Both,
            Some(_) => Role::Provisioning,
            None => Role::Management,
        },
        address: best.map(|(ip, prefix)| format!("{ip}/{prefix}")).unwrap_or_default().into(),
        mode,
        armed_since,
        held: if serves || status.phase == Phase::Off {
            String::new().into()
        } else {
            status.message.into()
        },
        foreign: foreign.into_iter().collect(),
        probed,
        leased: status.leased,
        free: status.free,
        ..Nic::default()
    }
}

/// Returns a fault if the network cannot be served as configured.
fn fault(name: &str, standing: &Standing) -> Option<Fault> {
    let failed = standing.status.phase == Phase::Failed;
    let trouble = || Trouble {
        what: "No request is answered".into(),
        on: name.into(),
        why: standing.status.message.as_str().into(),
        now: "Correct its Network, or box.toml".into(),
        code: "NetworkFailed".into(),
        ..Trouble::default()
    };
    failed.then(|| Fault {
        title: format!("{name} NOT SERVED").into(),
        trouble: trouble(),
        urgent: true,
        ..Fault::default()
    })
}

/// Returns the fault of a service that is not served yet. The box retries by itself.
fn waiting(wait: &Wait) -> Fault {
    let Wait { interface, service, why } = wait;
    let trouble = Trouble {
        what: format!("{service} is not served").into(),
        on: interface.as_str().into(),
        why: why.as_str().into(),
        now: "The box tries again".into(),
        code: "NetworkWaits".into(),
        ..Trouble::default()
    };
    Fault { title: format!("{interface} WAITS").into(), trouble, ..Fault::default() }
}

/// Returns a fault if a port of a bond has no cable. The bond itself still works.
fn without_cable(port: &InterfaceState) -> Option<Fault> {
    let (name, bond) = (&port.link.name, port.port_of.as_ref()?);
    let trouble = || Trouble {
        what: format!("{bond} lost a cable").into(),
        on: name.as_str().into(),
        why: "it has no link".into(),
        now: format!("Connect {name}; {bond} continues with its other ports").into(),
        code: "NoCarrier".into(),
        ..Trouble::default()
    };
    let title = format!("{name} HAS NO CABLE").into();
    port.mbps.is_none().then(|| Fault { title, trouble: trouble(), ..Fault::default() })
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use api::network::{Mode, NetworkSpec, NetworkStatus};
    use platform::net::Link;
    use serde_json::json;
    use status::view::{StatusView, health};
    use stdx::MacAddr;

    use super::*;

    fn seen() -> InterfaceState {
        let link = Link { name: "eth1".into(), index: 2, mac: MacAddr([2, 0, 0, 0, 0, 1]) };
        let addresses = ["fe80::1", "192.0.2.9", "10.77.0.1"].map(|it| (it.parse().unwrap(), 24));
        InterfaceState { link, mbps: Some(1_000), addresses: addresses.into(), port_of: None }
    }

    fn standing(phase: Phase, foreign: bool) -> Standing {
        let server = || api::network::ForeignServer {
            address: "10.77.0.254".into(),
            ..api::network::ForeignServer::default()
        };
        let status = NetworkStatus {
            phase,
            message: "as it is".into(),
            foreign_server: foreign.then(server),
            ..NetworkStatus::default()
        };
        let armed_since = (phase == Phase::Serving).then_some(Timestamp::UNIX_EPOCH);
        Standing { mode: Mode::Reserved, status, armed_since, probed: None }
    }

    #[test]
    fn the_word_for_a_box_is_that_of_its_networks() {
        let spec = json!({ "interface": "eth1", "address": "10.77.0.1/24", "mode": "pool" });
        let spec = NetworkSpec { mode: Mode::Reserved, ..serde_json::from_value(spec).unwrap() };
        let plan = spec.plan().unwrap();
        let word = |standing: Standing| {
            let faults = fault("eth1", &standing).into_iter().collect();
            let nics = vec![nic(&seen(), Some(&plan), standing, false)];
            assert_eq!(nics[0].address.as_str(), "10.77.0.1/24", "the one it serves by");
            health::health(&StatusView { nics, faults, ..StatusView::default() }).0.text
        };
        assert_eq!(word(standing(Phase::Serving, false)), "serving");
        assert_eq!(word(standing(Phase::Probing, false)), "not serving");
        assert_eq!(word(standing(Phase::Stopped, true)), "stopped");
        assert_eq!(word(standing(Phase::Failed, false)), "stopped");
        assert_eq!(word(Standing::default()), "not serving");
    }

    #[test]
    fn what_is_told_of_an_interface() {
        let held = nic(&seen(), None, standing(Phase::Probing, false), false);
        assert_eq!(held.held.as_str(), "as it is");
        assert_eq!((held.role, held.address.as_str()), (Role::Management, "192.0.2.9/24"));
        let serves = nic(&seen(), None, standing(Phase::Serving, false), false);
        assert!(serves.armed() && serves.held.is_empty());
    }
    #[test]
    fn a_ports_cable_that_is_out_is_told() {
        let port = |mbps, bond: Option<&str>| {
            let seen = InterfaceState { mbps, port_of: bond.map(str::to_owned), ..seen() };
            without_cable(&seen).map(|fault| fault.trouble.sentence())
        };
        assert_eq!(port(Some(1_000), Some("bond0")), None);
        assert_eq!(port(None, None), None, "that is told of an interface itself");
        let expected = "bond0 lost a cable on eth1: it has no link. Connect eth1; bond0 \
            continues with its other ports.";
        assert_eq!(port(None, Some("bond0")).as_deref(), Some(expected));
    }
}
