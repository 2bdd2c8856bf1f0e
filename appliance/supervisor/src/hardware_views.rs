//! One Hardware as each boot service wants to see it: a reservation, a boot plan, an instance.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use api::tinkerbell::{Dhcp, Hardware, Interface};
use dhcp::Reservation;
use metadata::{Instance, Network, OperatingSystem};
use netboot::{AgentBoot, Boot, Plan};
use stdx::MacAddr;

use crate::boot_token::BootTokens;
use crate::config::Config;
use crate::index::Index;

/// Answers the boot services from the index.
pub struct HardwareViews {
    /// Who is known.
    pub index: Index,
    /// Makes the agents' tokens.
    pub tokens: BootTokens,
    /// Where things are.
    pub config: Arc<Config>,
}

impl dhcp::Directory for HardwareViews {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        let hardware = self.index.by_mac(mac)?;
        reservation(hardware.spec.interface(mac)?, mac)
    }
}

impl netboot::Plans for HardwareViews {
    fn by_mac(&self, mac: MacAddr) -> Option<Plan> {
        let hardware = self.index.by_mac(mac)?;
        Some(self.plan(&hardware, mac))
    }

    fn by_address(&self, address: IpAddr) -> Option<Plan> {
        let hardware = self.index.by_address(address)?;
        let mac = interface_at(&hardware, address)?.0;
        Some(self.plan(&hardware, mac))
    }
}

impl metadata::Instances for HardwareViews {
    fn by_address(&self, address: IpAddr) -> Option<Instance> {
        let hardware = self.index.by_address(address)?;
        Some(instance(&hardware, address))
    }
}

fn interface_at(hardware: &Hardware, address: IpAddr) -> Option<(MacAddr, &Dhcp)> {
    hardware.spec.interfaces.iter().find_map(|interface| {
        let dhcp = interface.dhcp.as_ref()?;
        let reserved: IpAddr = dhcp.ip.as_ref()?.address.parse().ok()?;
        (reserved == address).then_some((dhcp.mac?, dhcp))
    })
}

fn nonempty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn addresses(texts: &[String]) -> Vec<Ipv4Addr> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// The reservation of an interface; `None` when it has no readable IPv4 address and mask.
fn reservation(interface: &Interface, mac: MacAddr) -> Option<Reservation> {
    let from = interface.dhcp.as_ref()?;
    let ip = from.ip.as_ref()?;
    let mut to = Reservation::new(mac, ip.address.parse().ok()?, ip.netmask.parse().ok()?);
    let allowed = interface.netboot.as_ref().and_then(|netboot| netboot.allow_pxe);
    if allowed == Some(true) {
        to.netboot = dhcp::Netboot::Allowed;
    }
    to.hostname = nonempty(&from.hostname);
    to.domain_name = nonempty(&from.domain_name);
    to.gateway = ip.gateway.parse().ok();
    to.name_servers = addresses(&from.name_servers);
    to.time_servers = addresses(&from.time_servers);
    if let Some(secs) = u32::try_from(from.lease_time).ok().filter(|secs| *secs > 0) {
        to.lease_secs = secs;
    }
    to.disable_dhcp = interface.disable_dhcp;
    to.tftp_server_name = nonempty(&from.tftp_server_name);
    to.boot_file_name = nonempty(&from.boot_file_name);
    to.classless_static_routes = from
        .classless_static_routes
        .iter()
        .filter_map(|route| {
            let destination = route.destination_descriptor.parse().ok()?;
            Some(dhcp::Route { destination, router: route.router.parse().ok()? })
        })
        .collect();
    let ipxe = interface.netboot.as_ref().and_then(|netboot| netboot.ipxe.as_ref());
    to.ipxe_binary = ipxe.and_then(|ipxe| nonempty(&ipxe.binary));
    Some(to)
}

impl HardwareViews {
    fn plan(&self, hardware: &Hardware, mac: MacAddr) -> Plan {
        let netboot = hardware.spec.interface(mac).and_then(|it| it.netboot.as_ref());
        let ipxe = netboot.and_then(|netboot| netboot.ipxe.clone()).unwrap_or_default();
        let allowed = netboot.is_some_and(|netboot| netboot.allow_pxe == Some(true));
        let run = self.index.run_of_hardware(&hardware.key());
        let boot = match run {
            _ if !allowed => Boot::LocalDisk,
            _ if !ipxe.url.is_empty() => Boot::Chain { url: ipxe.url },
            _ if !ipxe.contents.is_empty() => Boot::Script { contents: ipxe.contents },
            Some(run) => Boot::Agent(self.agent_boot(hardware, mac, &run.uid)),
            None => Boot::LocalDisk,
        };
        let reserved = hardware.spec.interface(mac).and_then(|it| it.dhcp.as_ref()?.ip.as_ref());
        let address = reserved.and_then(|ip| ip.address.parse().ok());
        Plan { mac, hardware: hardware.key().to_string(), address, boot }
    }

    fn agent_boot(&self, hardware: &Hardware, mac: MacAddr, workflow_uid: &str) -> AgentBoot {
        let interface = hardware.spec.interface(mac);
        let dhcp = interface.and_then(|it| it.dhcp.as_ref());
        let osie = interface.and_then(|it| it.netboot.as_ref()).and_then(|it| it.osie.clone());
        let osie = osie.unwrap_or_default();
        let server = self.config.network.address;
        // Its own id, else the MAC that boots (as Smee has it), which need not be the first.
        let worker_id = hardware.spec.agent_id.clone().filter(|id| !id.is_empty());
        let worker_id = worker_id.unwrap_or_else(|| mac.to_string());
        let token = self.tokens.token(&worker_id, workflow_uid);
        let mut args = vec![format!("tinbox.token={token}")];
        args.extend(self.config.boot.kernel_args.iter().cloned());
        args.extend(osie.kernel_params);
        let boot = &self.config.boot;
        let facility = hardware.spec.metadata.as_ref().map(|it| it.facility.facility_code.clone());
        AgentBoot {
            base_url: nonempty(osie.base_url.trim_end_matches('/'))
                .unwrap_or_else(|| format!("http://{server}:7080/agent")),
            kernel: nonempty(&osie.kernel).unwrap_or_else(|| boot.kernel.clone()),
            initrd: nonempty(&osie.initrd).unwrap_or_else(|| boot.initramfs.clone()),
            vlan_id: dhcp.and_then(|dhcp| nonempty(&dhcp.vlan_id)),
            facility: facility.unwrap_or_default(),
            syslog_host: None,
            grpc_authority: format!("{server}:42113"),
            tls: false,
            insecure_tls: false,
            worker_id,
            consoles: boot.consoles.clone(),
            args,
        }
    }
}

fn instance(hardware: &Hardware, address: IpAddr) -> Instance {
    let spec = &hardware.spec;
    let metadata = spec.metadata.clone().unwrap_or_default();
    let from = metadata.instance.unwrap_or_default();
    let found = interface_at(hardware, address);
    let hostname = [from.hostname.as_str(), found.map_or("", |(_, dhcp)| dhcp.hostname.as_str())]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or(&hardware.metadata.name)
        .to_owned();
    let ip = |family: i64, public: bool| {
        from.ips
            .iter()
            .find(|ip| ip.family == family && (family == 6 || ip.public == public))
            .map(|ip| ip.address.as_str())
    };
    let system = from.operating_system.clone().unwrap_or_default();
    Instance {
        id: nonempty(&from.id).unwrap_or_else(|| hardware.metadata.uid.clone()),
        hardware: hardware.key().to_string(),
        hostname,
        public_keys: from.ssh_keys.clone(),
        user_data: spec.user_data.clone().map(Into::into),
        vendor_data: spec.vendor_data.clone().map(Into::into),
        network: found.and_then(|(mac, dhcp)| network(mac, dhcp)),
        tags: from.tags.clone(),
        plan: metadata.facility.plan_slug,
        facility: metadata.facility.facility_code,
        public_ipv4: ip(4, true).and_then(|text| text.parse().ok()),
        local_ipv4: ip(4, false).and_then(|text| text.parse().ok()),
        public_ipv6: ip(6, true).and_then(|text| text.parse().ok()),
        operating_system: OperatingSystem {
            slug: system.slug,
            distro: system.distro,
            version: system.version,
            image_tag: system.image_tag,
        },
        storage: from.storage.clone(),
    }
}

fn network(mac: MacAddr, dhcp: &Dhcp) -> Option<Network> {
    let ip = dhcp.ip.as_ref()?;
    let mask: Ipv4Addr = ip.netmask.parse().ok()?;
    Some(Network {
        mac,
        address: ip.address.parse().ok()?,
        prefix: u8::try_from(u32::from(mask).leading_ones()).ok()?,
        gateway: ip.gateway.parse().ok(),
        name_servers: addresses(&dhcp.name_servers),
    })
}
