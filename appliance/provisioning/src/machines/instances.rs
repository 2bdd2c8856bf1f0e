//! View of a Hardware as instance metadata for its installed system.

use std::net::IpAddr;
use std::time::Duration;

use agent_service::End;
use api::tinkerbell::{Dhcp, Hardware, InstanceIp, Interface};
use ipnet::IpNet;
use jiff::Timestamp;
use metadata::{Instance, OperatingSystem, Provisioning, Route, Unmatched};

use crate::index::Requester;
use crate::machines::hardware_views::HardwareViews;

/// Prefix of annotations that the machine can read as metadata. cloud-init reads the annotation
/// `meta-data.tinbox.dev/role` as `ds.meta_data.role`.
const EXTRA: &str = "meta-data.tinbox.dev/";
/// VLAN IDs that a tagged frame may have (IEEE 802.1Q, 9.6).
const VLANS: std::ops::RangeInclusive<u16> = 1..=4094;

impl metadata::Instances for HardwareViews {
    fn by_address(&self, address: IpAddr) -> Result<Instance, Unmatched> {
        match self.index.requester(address) {
            Requester::Machine(hardware) => Ok(self.instance(&hardware, Some(address))),
            Requester::OtherNic(hardware, mac) => {
                Err(Unmatched::OtherNic { hardware: hardware.key().to_string(), mac })
            }
            Requester::Unknown => Err(Unmatched::UnknownAddress),
        }
    }

    fn by_instance_id(&self, id: &str) -> Option<Instance> {
        Some(self.instance(&*self.index.by_instance_id(id)?, None))
    }
}

impl HardwareViews {
    fn instance(&self, hardware: &Hardware, asked: Option<IpAddr>) -> Instance {
        let (underway, ended) = self.index.runs.progress(&hardware.key());
        // A system without a disk needs its user data at every boot.
        let underway = underway || boots_from_network(hardware);
        let provisioning = provisioning(underway, ended, self.clock.now());
        Instance { provisioning, ..instance(hardware, asked) }
    }
}

/// Returns true if the machine boots a custom iPXE script from the network instead of the agent.
fn boots_from_network(hardware: &Hardware) -> bool {
    let netboots = hardware.spec.interfaces.iter().filter_map(|it| it.netboot.as_ref());
    let mut allowed = netboots.filter(|netboot| netboot.allow_pxe == Some(true));
    allowed.any(|netboot| {
        let ipxe = netboot.ipxe.as_ref();
        ipxe.is_some_and(|ipxe| !ipxe.url.is_empty() || !ipxe.contents.is_empty())
    })
}

fn provisioning(underway: bool, ended: Option<End>, now: Timestamp) -> Provisioning {
    match ended {
        _ if underway => Provisioning::Underway,
        // An end seen in this run is measured with the monotonic clock, so setting the clock does
        // not change the age.
        Some(End { seen: Some(seen), .. }) => Provisioning::Ended { ago: seen.elapsed() },
        // An end in the future means that the clock was set back. Its age counts as zero.
        Some(End { time, seen: None }) => Provisioning::Ended {
            ago: Duration::try_from(now.duration_since(time)).unwrap_or_default(),
        },
        None => Provisioning::Unrecorded,
    }
}

/// Builds the instance metadata of a machine. `asked` is the source address of the request; its
/// interface comes first.
fn instance(hardware: &Hardware, asked: Option<IpAddr>) -> Instance {
    let spec = &hardware.spec;
    let metadata = spec.metadata.clone().unwrap_or_default();
    let from = metadata.instance.unwrap_or_default();
    let system = from.operating_system.unwrap_or_default();
    let mut interfaces: Vec<_> = spec.interfaces.iter().filter_map(interface).collect();
    let holds = |it: &metadata::Interface| it.address.map(|address| address.addr()) == asked;
    if let Some(place) = asked.and_then(|_| interfaces.iter().position(holds)) {
        interfaces[..=place].rotate_right(1);
    }
    let ip = |wanted: fn(&InstanceIp) -> bool| {
        let found = from.ips.iter().find(|ip| wanted(ip) && !ip.address.is_empty());
        found.map(|ip| ip.address.clone()).unwrap_or_default()
    };
    let own = &hardware.metadata;
    let extra = own
        .annotations
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(EXTRA)?.to_owned(), value.clone())));
    Instance {
        id: from.id.clone(),
        hardware: hardware.key().to_string(),
        name: own.name.clone(),
        uuid: own.uid.clone(),
        // Format of Cluster API Provider Tinkerbell.
        provider_id: format!("tinkerbell://{}/{}", own.namespace, own.name),
        hostname: from.hostname.clone(),
        public_keys: from.ssh_keys.clone(),
        user_data: spec.user_data.clone().map(Into::into),
        vendor_data: spec.vendor_data.clone().map(Into::into),
        interfaces,
        tags: from.tags.clone(),
        plan: metadata.facility.plan_slug,
        facility: metadata.facility.facility_code,
        public_ipv4: ip(|it| it.family == 4 && it.public),
        local_ipv4: ip(|it| it.family == 4 && !it.public),
        public_ipv6: ip(|it| it.family == 6),
        operating_system: OperatingSystem {
            slug: system.slug,
            distro: system.distro,
            version: system.version,
            image_tag: system.image_tag,
        },
        storage: from.storage.clone(),
        extra: extra.collect(),
        provisioning: Provisioning::default(),
    }
}

/// Converts one interface; `None` without a MAC address, the only identifier of interfaces.
fn interface(from: &Interface) -> Option<metadata::Interface> {
    let dhcp = from.dhcp.as_ref()?;
    let routes = dhcp.classless_static_routes.iter();
    Some(metadata::Interface {
        name: dhcp.iface_name.clone(),
        hostname: dhcp.hostname.clone(),
        address: address(dhcp),
        gateway: dhcp.ip.as_ref().and_then(|ip| ip.gateway.parse().ok()),
        name_servers: dhcp.name_servers.iter().filter_map(|text| text.parse().ok()).collect(),
        domain: dhcp.domain_name.clone(),
        routes: routes
            .filter_map(|route| {
                let to = route.destination_descriptor.parse().ok()?;
                Some(Route { to, via: route.router.parse().ok()? })
            })
            .collect(),
        vlan: dhcp.vlan_id.parse().ok().filter(|vlan| VLANS.contains(vlan)),
        dhcp: !from.disable_dhcp,
        ..metadata::Interface::new(dhcp.mac?)
    })
}

/// Returns the reserved address with its prefix length; `None` without a valid address and netmask.
/// For IPv6, the netmask may be a prefix length.
fn address(dhcp: &Dhcp) -> Option<IpNet> {
    let ip = dhcp.ip.as_ref()?;
    let address: IpAddr = ip.address.parse().ok()?;
    match ip.netmask.parse::<u8>() {
        Ok(length) if address.is_ipv6() => IpNet::new(address, length).ok(),
        _ => IpNet::with_netmask(address, ip.netmask.parse().ok()?).ok(),
    }
}

#[cfg(test)]
mod tests;
