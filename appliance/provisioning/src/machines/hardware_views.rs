//! Views of a Hardware for the boot services: DHCP reservations and boot plans. The view of the
//! installed system is in `instances`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use agent_rpc::Pin;
use agent_service::TokenUse;
use api::tinkerbell::{Dhcp, Hardware, Interface};
use config::{Config, HTTP_PORT};
use dhcp::Reservation;
use dhcp::v6::Identity;
use netboot::{AgentBoot, Boot, Medium, Owner, Plan};
use stdx::{Clock, MacAddr};

use crate::index::Index;
use crate::machines::boot_token::BootTokens;
use crate::machines::learned_loaders::Loaders;
use crate::machines::preserve;

/// Implementation of the boot services' directories of machines, based on the index.
pub struct HardwareViews {
    /// Index of machines by address and agent ID.
    pub index: Index,
    /// Issuer of the agents' boot tokens.
    pub tokens: BootTokens,
    /// Certificate pin, by which agents authenticate the box.
    pub pin: Pin,
    /// Configuration with addresses and boot settings.
    pub config: Arc<Config>,
    /// Clock for the age of a finished workflow.
    pub clock: Arc<dyn Clock>,
    /// Learned boot loader of each machine.
    pub loaders: Arc<Loaders>,
}

impl dhcp::Directory for HardwareViews {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        let hardware = self.index.by_mac(mac)?;
        let mut reservation = reservation(hardware.spec.interface(mac)?, mac)?;
        reservation.installing = self.index.run_of(&hardware).is_some();
        if reservation.ipxe_binary.is_none() {
            reservation.ipxe_binary = self.loaders.learned(mac);
        }
        Some(reservation)
    }

    fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.index.is_reserved(address.into())
    }
}

impl netboot::Plans for HardwareViews {
    fn by_mac(&self, mac: MacAddr) -> Option<Plan> {
        let hardware = self.index.by_mac(mac)?;
        Some(self.plan(&hardware, mac))
    }

    fn by_address(&self, address: IpAddr) -> Option<Plan> {
        let hardware = self.index.by_address(address)?;
        let mac = self.interface_of(&hardware, address)?;
        Some(self.plan(&hardware, mac))
    }

    fn neighbor(&self, address: IpAddr) -> Option<MacAddr> {
        self.index.neighbor(address)
    }

    fn medium(&self, owner: Owner<'_>) -> Option<Medium> {
        let (hardware, mac) = match owner {
            Owner::Mac(mac) => (self.index.by_mac(mac)?, mac),
            Owner::Address(address) => {
                let hardware = self.index.by_address(address)?;
                let mac = self.interface_of(&hardware, address)?;
                (hardware, mac)
            }
            Owner::Instance(id) => {
                let hardware = self.index.by_dashed_instance_id(id)?;
                let mac = hardware.spec.macs().next()?;
                (hardware, mac)
            }
        };
        self.medium_of(&hardware, mac)
    }

    fn unknown_machine(&self) -> Option<AgentBoot> {
        self.index.enrolls().then(|| self.unknown_machine_boot())
    }
}

impl syslog::Names for HardwareViews {
    fn machine(&self, address: IpAddr) -> Option<String> {
        Some(self.index.by_address(address)?.key().to_string())
    }
}

impl dhcp::v6::Directory for HardwareViews {
    fn find(&self, identity: Identity) -> Option<dhcp::v6::Reservation> {
        let Identity::Mac(mac) = identity else { return None };
        let hardware = self.index.by_mac(mac)?;
        let interface = hardware.spec.interface(mac)?;
        let from = interface.dhcp.as_ref()?;
        let address = match from.ip.as_ref()?.address.parse().ok()? {
            IpAddr::V6(address) => address,
            IpAddr::V4(address) => self.index.ipv6_twin(address)?,
        };
        let mut to = dhcp::v6::Reservation::new(mac, address);
        to.name_servers = from.name_servers.iter().filter_map(|text| text.parse().ok()).collect();
        to.netboot = allowed(interface);
        let ipxe = interface.netboot.as_ref().and_then(|netboot| netboot.ipxe.as_ref());
        to.ipxe_binary = ipxe.and_then(|ipxe| nonempty(&ipxe.binary));
        to.ipxe_binary = to.ipxe_binary.or_else(|| self.loaders.learned(mac));
        Some(to)
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

fn allowed(interface: &Interface) -> dhcp::Netboot {
    match interface.netboot.as_ref().and_then(|netboot| netboot.allow_pxe) {
        Some(true) => dhcp::Netboot::Allowed,
        _ => dhcp::Netboot::NotAllowed,
    }
}

/// Converts an interface to its DHCP reservation. Without a valid IPv4 address and netmask, the
/// address comes from a pool.
fn reservation(interface: &Interface, mac: MacAddr) -> Option<Reservation> {
    let from = interface.dhcp.as_ref()?;
    let ip = from.ip.as_ref();
    let fixed = ip.and_then(|ip| Some((ip.address.parse().ok()?, ip.netmask.parse().ok()?)));
    let mut to = match fixed {
        Some((address, netmask)) => Reservation::new(mac, address, netmask),
        None => Reservation::without_address(mac),
    };
    to.netboot = allowed(interface);
    to.hostname = nonempty(&from.hostname);
    to.domain_name = nonempty(&from.domain_name);
    to.gateway = ip.and_then(|ip| ip.gateway.parse().ok());
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
    /// Returns the MAC address of the machine's interface with the address `address`, by its
    /// Hardware, a lease or ARP.
    fn interface_of(&self, hardware: &Hardware, address: IpAddr) -> Option<MacAddr> {
        let reserved = interface_at(hardware, address).map(|(mac, _)| mac);
        reserved.or_else(|| {
            let mac = self.index.holder(address)?;
            hardware.spec.macs().find(|own| *own == mac)
        })
    }

    /// Returns the address of the interface `mac`, by its Hardware or by a lease.
    fn address_of(&self, hardware: &Hardware, mac: MacAddr) -> Option<IpAddr> {
        let reserved = hardware.spec.interface(mac).and_then(|it| it.dhcp.as_ref()?.ip.as_ref());
        let reserved = reserved.and_then(|ip| ip.address.parse().ok());
        reserved.or_else(|| self.index.lease_of(mac))
    }

    /// Returns all addresses from which an interface may send requests: its address, and the IPv6
    /// address derived from an IPv4 address.
    fn addresses_of(&self, hardware: &Hardware, mac: MacAddr) -> Vec<IpAddr> {
        let own = self.address_of(hardware, mac);
        let twin = match own {
            Some(IpAddr::V4(own)) => self.index.ipv6_twin(own).map(IpAddr::V6),
            _ => None,
        };
        own.into_iter().chain(twin).collect()
    }

    /// Returns the box's IPv4 address on the network of the interface `mac`.
    fn server_of(&self, hardware: &Hardware, mac: MacAddr) -> Ipv4Addr {
        let address = match self.address_of(hardware, mac) {
            Some(IpAddr::V4(address)) => Some(address),
            _ => None,
        };
        self.config.address_near(address)
    }

    /// Returns the box's IPv4 address on the network of the agent's machine.
    pub fn server_of_agent(&self, agent_id: &str) -> Ipv4Addr {
        let server = || {
            let hardware = self.index.by_agent(agent_id)?;
            let mac = agent_id.parse().ok().or_else(|| hardware.spec.macs().next())?;
            Some(self.server_of(&hardware, mac))
        };
        server().unwrap_or_else(|| self.config.address())
    }

    fn medium_of(&self, hardware: &Hardware, mac: MacAddr) -> Option<Medium> {
        let interface = hardware.spec.interface(mac)?;
        if allowed(interface) != dhcp::Netboot::Allowed {
            return None;
        }
        let uid = self.index.run_of(hardware).map(|run| run.uid.clone());
        let kind = TokenUse::EveryBoot;
        let boot = self.agent_boot(hardware, mac, (kind, &uid.unwrap_or_default()));
        let mut medium = Medium::new(mac, hardware.key().to_string());
        medium.boot = boot;
        medium.addresses = self.addresses_of(hardware, mac);
        medium.controller = self.index.controller_of(hardware);
        Some(medium)
    }

    /// Returns the boot settings of unknown machines on a network with enrollment. They start the
    /// agent, which reports the machine's hardware.
    fn unknown_machine_boot(&self) -> AgentBoot {
        let server = self.config.address_near(None);
        AgentBoot {
            base_url: format!("http://{server}:{HTTP_PORT}/agent"),
            kernel: "vmlinuz-${arch}".to_owned(),
            initrd: "initramfs-${arch}".to_owned(),
            syslog_host: Some(server.to_string()),
            grpc_authority: format!("{server}:42113"),
            args: [&[self.pin_argument()], &self.config.boot.kernel_args[..]].concat(),
            ..AgentBoot::default()
        }
    }

    fn pin_argument(&self) -> String {
        format!("tinbox.pin={}", self.pin)
    }

    fn plan(&self, hardware: &Hardware, mac: MacAddr) -> Plan {
        let netboot = hardware.spec.interface(mac).and_then(|it| it.netboot.as_ref());
        let ipxe = netboot.and_then(|netboot| netboot.ipxe.clone()).unwrap_or_default();
        let allowed = netboot.is_some_and(|netboot| netboot.allow_pxe == Some(true));
        let (run, kind) = (self.index.run_of(hardware), TokenUse::OneBoot);
        let boot = match run {
            _ if !allowed => Boot::NotAllowed,
            _ if !ipxe.url.is_empty() => Boot::Chain { url: ipxe.url },
            _ if !ipxe.contents.is_empty() => Boot::Script { contents: ipxe.contents },
            Some(run) => Boot::Agent(self.agent_boot(hardware, mac, (kind, &run.uid))),
            // The agent reports its hardware, and a rule set chooses the workflow.
            None if self.config.agents.enrollment && self.index.may_enroll(hardware) => {
                Boot::Agent(self.agent_boot(hardware, mac, (kind, "")))
            }
            None => Boot::LocalDisk,
        };
        let addresses = self.addresses_of(hardware, mac);
        Plan { mac, hardware: hardware.key().to_string(), addresses, boot }
    }

    fn agent_boot(
        &self,
        hardware: &Hardware,
        mac: MacAddr,
        (kind, workflow_uid): (TokenUse, &str),
    ) -> AgentBoot {
        let interface = hardware.spec.interface(mac);
        let dhcp = interface.and_then(|it| it.dhcp.as_ref());
        let osie = interface.and_then(|it| it.netboot.as_ref()).and_then(|it| it.osie.clone());
        let osie = osie.unwrap_or_default();
        let server = self.server_of(hardware, mac);
        // The configured agent ID, or else the MAC address of the booting interface (as in Smee),
        // which need not be the first one.
        let worker_id = hardware.spec.agent_id.clone().filter(|id| !id.is_empty());
        let worker_id = worker_id.unwrap_or_else(|| mac.to_string());
        let token = self.tokens.token(kind, &worker_id, workflow_uid);
        let mut args = vec![format!("tinbox.token={token}"), self.pin_argument()];
        args.extend(self.config.boot.kernel_args.iter().cloned());
        args.extend(osie.kernel_params);
        // For a repeated name, the agent reads the last value.
        args.extend(preserve::argument(&hardware.metadata.annotations));
        let boot = &self.config.boot;
        let facility = hardware.spec.metadata.as_ref().map(|it| it.facility.facility_code.clone());
        AgentBoot {
            base_url: nonempty(osie.base_url.trim_end_matches('/'))
                .unwrap_or_else(|| format!("http://{server}:{HTTP_PORT}/agent")),
            kernel: nonempty(&osie.kernel).unwrap_or_else(|| boot.kernel.clone()),
            initrd: nonempty(&osie.initrd).unwrap_or_else(|| boot.initramfs.clone()),
            vlan_id: dhcp.and_then(|dhcp| nonempty(&dhcp.vlan_id)),
            facility: facility.unwrap_or_default(),
            syslog_host: Some(server.to_string()),
            grpc_authority: format!("{server}:42113"),
            tls: false,
            insecure_tls: false,
            worker_id,
            consoles: boot.consoles.clone(),
            args,
        }
    }
}
