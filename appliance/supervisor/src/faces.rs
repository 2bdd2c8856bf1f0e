//! What the box's faces show: one view of it, taken from what this process knows.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use api::network::Mode;
use api::tinkerbell::{Hardware, State};
use ntp::Standing;
use platform::net::Seen;
use status::view::{
    Claim, Fault, Machine, MachineState, Nic, Role, StatusView, TimeState, Trouble,
};
use stdx::Clock;
use tokio::sync::watch;
use web::claim::TRIES_MAX;
use web::owner::Owner;

use crate::chronicle::Chronicle;
use crate::config::Config;
use crate::firmware::time::Known;
use crate::index::Index;
use crate::update::Updates;

/// Where a view comes from.
pub struct Faces {
    /// Machines and their workflows.
    pub index: Index,
    /// The racks' networks.
    pub config: Arc<Config>,
    /// What the box is called.
    pub name: String,
    /// How far its clock can be believed; only of a box of its own.
    pub time: Option<watch::Receiver<Known>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// When this process began.
    pub began: Instant,
    /// What process 1 could not do.
    pub trouble: Vec<String>,
    /// Whose the box is.
    pub owner: Arc<Owner>,
    /// What happened.
    pub chronicle: Chronicle,
    /// SHA-256 of the certificate's public key.
    pub key: [u8; 32],
    /// Its slots and updates; only of a box of its own.
    pub updates: Option<Arc<Updates>>,
}

impl Faces {
    /// The box at this moment.
    pub async fn view(&self) -> StatusView {
        let seen = platform::net::look().await.unwrap_or_default();
        let machines = self.index.machines();
        let slot = platform::init::slot().ok().flatten().unwrap_or_default();
        let mut view = StatusView {
            now: self.clock.now(),
            name: self.name.as_str().into(),
            version: env!("CARGO_PKG_VERSION").into(),
            slot: slot.to_uppercase().into(),
            clock: self.time.as_ref().map(|time| clock(&time.borrow())).unwrap_or_default(),
            uptime_seconds: self.began.elapsed().as_secs(),
            nics: seen.iter().map(|seen| self.nic(seen)).collect(),
            machines: machines.iter().map(|hardware| self.machine(hardware)).collect(),
            faults: self.trouble.iter().map(|what| fault(what)).collect(),
            pin: status::pin::pin(&self.key).into(),
            ..StatusView::default()
        };
        view.system.certificate_sha256 = stdx::hex(&self.key).into();
        if let Some(updates) = &self.updates {
            updates.tell(&mut view);
        }
        view.claim = self.claim(&view);
        let bmc = |it: &Arc<Hardware>| {
            Some((it.metadata.name.clone(), it.spec.bmc_ref.as_ref()?.name.clone()))
        };
        let controllers: HashMap<_, _> = machines.iter().filter_map(bmc).collect();
        self.chronicle.tell(&mut view, &controllers).await;
        view
    }

    fn claim(&self, view: &StatusView) -> Option<Claim> {
        let (code, tries_left) = self.owner.code()?;
        let url = match &self.config.web {
            Some(web) => Some(format!("https://{}", web.listen)),
            None => view.address().map(|(_, address)| match address.contains(':') {
                true => format!("https://[{address}]"),
                false => format!("https://{address}"),
            }),
        };
        let urls = url.into_iter().map(Into::into).collect();
        Some(Claim { urls, code: code.into(), tries_left, tries_max: TRIES_MAX })
    }

    fn nic(&self, seen: &Seen) -> Nic {
        let plan = self.config.networks.iter().find(|plan| plan.interface == seen.link.name);
        // An address that people can type.
        let rank = |address: &&(IpAddr, u8)| (address.0.is_ipv6(), link_local(address.0));
        let best = seen.addresses.iter().min_by_key(rank);
        Nic {
            name: seen.link.name.as_str().into(),
            mac: Some(seen.link.mac),
            link_mbps: seen.mbps,
            role: if plan.is_some() { Role::Provisioning } else { Role::Management },
            address: best.map(|(ip, prefix)| format!("{ip}/{prefix}")).unwrap_or_default().into(),
            mode: plan.map_or(Mode::Off, |plan| plan.mode),
            ..Nic::default()
        }
    }

    fn machine(&self, hardware: &Hardware) -> Machine {
        let latest = self.index.runs.latest(&hardware.key());
        let state = latest.as_ref().map_or(MachineState::Ready, |(_, run)| state(run.state));
        let dhcp = hardware.spec.interfaces.iter().find_map(|it| it.dhcp.as_ref());
        let reserved = dhcp.and_then(|dhcp| dhcp.ip.as_ref()).map(|ip| ip.address.clone());
        Machine {
            name: hardware.metadata.name.as_str().into(),
            state,
            mac: dhcp.and_then(|dhcp| dhcp.mac),
            ip: reserved.unwrap_or_default().into(),
            workflow: latest.map(|(key, _)| key.name).unwrap_or_default().into(),
            ..Machine::default()
        }
    }
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// A machine in the words of its workflow.
fn state(state: State) -> MachineState {
    match state {
        State::New | State::Preparing | State::Pending => MachineState::Waiting,
        State::Running | State::Post => MachineState::Installing,
        State::Success => MachineState::InService,
        State::Failed => MachineState::Failed,
        State::Timeout => MachineState::TimedOut,
    }
}

fn fault(what: &str) -> Fault {
    let trouble = Trouble { what: what.into(), ..Trouble::default() };
    Fault { title: "START".into(), trouble, urgent: true, ..Fault::default() }
}

fn clock(known: &Known) -> status::view::Clock {
    let state = match known.standing {
        Standing::Unset => TimeState::Unset,
        Standing::Holdover(_) => TimeState::Holdover,
        Standing::Synced(_) => TimeState::Synced,
    };
    status::view::Clock { state, source: known.source.as_str().into(), utc_offset_seconds: 0 }
}
