//! Boot plans of machines, and the trait through which this crate requests them.

use std::net::IpAddr;
use std::path::PathBuf;

use stdx::MacAddr;

mod ipam;
mod reader;

pub use ipam::Ipam;
pub use reader::Reader;

/// Boot plan of one known machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// MAC address of the interface that boots.
    pub mac: MacAddr,
    /// `namespace/name` of the hardware object, for the screen and the log.
    pub hardware: String,
    /// IP addresses of the interface that boots, from a record or a lease.
    pub addresses: Vec<IpAddr>,
    /// Action that the boot script takes.
    pub boot: Boot,
}

impl Plan {
    /// Returns true if `reader` may have this plan. A plan with [`Boot::Agent`] is secret, because
    /// its kernel command line carries the agent's token.
    pub fn is_for(&self, reader: Reader) -> bool {
        !matches!(self.boot, Boot::Agent(_)) || reader.is(self.mac, &self.addresses)
    }
}

/// Action of a machine once iPXE runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "one lives at a time, for one request")]
pub enum Boot {
    /// Boots the agent OS from memory.
    Agent(AgentBoot),
    /// Continues with another script (`Hardware.spec.interfaces[].netboot.ipxe.url`).
    Chain {
        /// URL of the other script.
        url: String,
    },
    /// Runs this script (`Hardware.spec.interfaces[].netboot.ipxe.contents`).
    Script {
        /// iPXE script, exactly as the operator wrote it.
        contents: String,
    },
    /// Boots the system on the disk: no workflow waits for the machine.
    LocalDisk,
    /// Boots the disk on firmware that does not continue with the disk when a loader ends: iPXE
    /// searches for the disk's own loader. [`crate::fallback`] learns which machines need this.
    DiskLoader,
    /// Netboot is not allowed (`netboot.allowPXE`): no script and no loader, over any protocol.
    NotAllowed,
}

impl Boot {
    /// Returns the name of the action for logs and the boot history.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Chain { .. } => "chain",
            Self::Script { .. } => "script",
            Self::LocalDisk | Self::DiskLoader => "local-disk",
            Self::NotAllowed => "not-allowed",
        }
    }
}

/// Files of the agent and its kernel command line, one field per argument of Smee's script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentBoot {
    /// URL of the folder with both files, without a trailing slash: `http://10.77.0.1:7080/agent`.
    pub base_url: String,
    /// File name of the kernel in that folder: `vmlinuz-x86_64`.
    pub kernel: String,
    /// File name of the initramfs in that folder: `initramfs-x86_64`.
    pub initrd: String,
    /// `vlan_id=`; omitted when `None`.
    pub vlan_id: Option<String>,
    /// `facility=`; written even when empty.
    pub facility: String,
    /// `syslog_host=`; omitted when `None`.
    pub syslog_host: Option<String>,
    /// `grpc_authority=`: address and port of the workflow service, `10.77.0.1:42113`.
    pub grpc_authority: String,
    /// `tinkerbell_tls=`: use TLS for the workflow service.
    pub tls: bool,
    /// `tinkerbell_insecure_tls=`: do not verify the certificate of the workflow service.
    pub insecure_tls: bool,
    /// `worker_id=`: name of the agent.
    pub worker_id: String,
    /// Kernel consoles in order, `tty0`, `ttyS0,115200`. The last one becomes `/dev/console`.
    pub consoles: Vec<String>,
    /// Further arguments in order, at the end of the line: the boot token and the hardware's extra
    /// parameters.
    pub args: Vec<String>,
}

/// Key that identifies the machine whose medium is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// MAC address of an interface of the machine.
    Mac(MacAddr),
    /// `Hardware.spec.metadata.instance.id` of the machine, with dashes instead of colons.
    Instance(&'a str),
    /// IP address of the machine.
    Address(IpAddr),
}

/// Content of a medium (ISO, unified kernel image) for one machine, and the clients that may read
/// the medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    /// MAC address of the interface that the agent uses.
    pub mac: MacAddr,
    /// `namespace/name` of the hardware object, for the log.
    pub hardware: String,
    /// Kernel arguments of the agent; its files are on the medium.
    pub boot: AgentBoot,
    /// Static addresses for a network without DHCP.
    pub ipam: Option<Ipam>,
    /// Path of the ISO to patch, regardless of the requested name: a copy in the
    /// [cache](artifact_cache) of an `isoboot.sourceISO`, or of the ISO that the owner chose for
    /// all machines. `None`: the ISO with the requested name.
    pub iso: Option<PathBuf>,
    /// IP addresses of the interface that the agent uses, from a record or a lease.
    pub addresses: Vec<IpAddr>,
    /// IP address of the machine's BMC, which mounts the medium.
    pub controller: Option<IpAddr>,
}

impl Medium {
    /// Creates a medium for a machine of which only the MAC address and the name are known. The
    /// agent's name is the MAC address.
    pub fn new(mac: MacAddr, hardware: impl Into<String>) -> Self {
        let boot = AgentBoot { worker_id: mac.to_string(), ..AgentBoot::default() };
        let hardware = hardware.into();
        let (addresses, controller) = (Vec::new(), None);
        Self { mac, hardware, boot, ipam: None, iso: None, addresses, controller }
    }

    /// Returns true if `reader` may have the medium, which carries the agent's token.
    pub fn is_for(&self, reader: Reader) -> bool {
        self.controller == Some(reader.address) || reader.is(self.mac, &self.addresses)
    }
}

/// Source of the machines' boot plans. Implementations must answer from memory, because the boot
/// path calls them.
pub trait Plans: Send + Sync + 'static {
    /// Returns the plan of the machine with this interface; `None` for an unknown machine.
    fn by_mac(&self, mac: MacAddr) -> Option<Plan>;
    /// Returns the plan of the machine with this IP address; `None` for an unknown machine.
    fn by_address(&self, address: IpAddr) -> Option<Plan>;
    /// Returns the MAC address of an IP address on a directly connected link, from the kernel's
    /// neighbor table. `None`: the table has no entry.
    fn neighbor(&self, address: IpAddr) -> Option<MacAddr> {
        let _ = address;
        None
    }
    /// Returns the medium of a machine; `None` when the machine is unknown or may not netboot.
    fn medium(&self, owner: Owner<'_>) -> Option<Medium> {
        let _ = owner;
        None
    }
    /// Returns the boot parameters for unknown machines. `None`: unknown machines boot from their
    /// disk. The script sets `worker_id` and the consoles ([`crate::script::unknown_machine`]).
    fn unknown_machine(&self) -> Option<AgentBoot> {
        None
    }
}

/// Implementation without any machines, for tests.
impl Plans for () {
    fn by_mac(&self, _: MacAddr) -> Option<Plan> {
        None
    }

    fn by_address(&self, _: IpAddr) -> Option<Plan> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentBoot, Boot, Medium, Plan};
    use crate::plan::Reader;

    #[test]
    fn an_agents_plan_is_for_its_machine_alone_and_its_medium_for_the_bmc_too() {
        let mac = "52:54:00:77:00:01".parse().unwrap();
        let (own, other) = ("10.77.0.11".parse().unwrap(), "10.77.0.12".parse().unwrap());
        let is_at = |address| Reader { address, neighbor: None };
        let (boot, hardware) = (Boot::Agent(AgentBoot::default()), "default/nuc1".to_owned());
        let mut plan = Plan { mac, hardware, addresses: vec![own], boot };
        assert!(plan.is_for(is_at(own)));
        assert!(!plan.is_for(is_at(other)));
        plan.boot = Boot::LocalDisk;
        assert!(plan.is_for(is_at(other)), "there is nothing secret about booting the disk");
        let mut medium = Medium::new(mac, "default/nuc1");
        assert!(!medium.is_for(is_at(own)), "no address of the machine is known");
        medium.addresses = vec![own];
        assert!(medium.is_for(is_at(own)) && !medium.is_for(is_at(other)));
        medium.controller = Some(other);
        assert!(medium.is_for(is_at(other)));
    }
}
