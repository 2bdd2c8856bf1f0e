//! What a machine should boot, and the trait by which this crate asks.

use std::net::IpAddr;
use std::path::PathBuf;

use stdx::MacAddr;

use crate::iso::Ipam;
use crate::reader::Reader;

/// The answer for one known machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The interface that boots.
    pub mac: MacAddr,
    /// `namespace/name` of the hardware, for the screen and the log.
    pub hardware: String,
    /// The addresses that interface has, by a record or a lease.
    pub addresses: Vec<IpAddr>,
    /// What to do.
    pub boot: Boot,
}

impl Plan {
    /// Whether `reader` may have this plan: an agent's kernel line carries its token.
    pub fn is_for(&self, reader: Reader) -> bool {
        !matches!(self.boot, Boot::Agent(_)) || reader.is(self.mac, &self.addresses)
    }
}

/// What a machine is told to do once iPXE runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "one lives at a time, for one request")]
pub enum Boot {
    /// Start the agent from memory.
    Agent(AgentBoot),
    /// Go on to another script (`Hardware.spec.interfaces[].netboot.ipxe.url`).
    Chain {
        /// Where that script is.
        url: String,
    },
    /// Run this script (`Hardware.spec.interfaces[].netboot.ipxe.contents`).
    Script {
        /// The script, as the operator wrote it.
        contents: String,
    },
    /// No workflow waits: boot what is on the disk.
    LocalDisk,
    /// The same for a machine whose firmware does not go on to its disk when a loader ends: iPXE
    /// looks for the disk's loader. [`crate::fallback`] learns which machines those are.
    DiskLoader,
    /// Netboot is not allowed (`netboot.allowPXE`): no script, no loader, by no protocol.
    NotAllowed,
}

impl Boot {
    /// One word for logs and stories.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Chain { .. } => "chain",
            Self::Script { .. } => "script",
            Self::LocalDisk | Self::DiskLoader => "local-disk",
            Self::NotAllowed => "not-allowed",
        }
    }
}

/// The agent's files and its kernel command line, field by field as Smee's script has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentBoot {
    /// Folder of the two files, no slash at the end: `http://10.77.0.1:7080/agent`.
    pub base_url: String,
    /// The kernel's name in that folder: `vmlinuz-x86_64`.
    pub kernel: String,
    /// The initramfs' name in that folder: `initramfs-x86_64`.
    pub initrd: String,
    /// `vlan_id=`, left out when there is none.
    pub vlan_id: Option<String>,
    /// `facility=`, empty is said as `facility=`.
    pub facility: String,
    /// `syslog_host=`, left out when there is none.
    pub syslog_host: Option<String>,
    /// `grpc_authority=`: where the agent finds the workflow service, `10.77.0.1:42113`.
    pub grpc_authority: String,
    /// `tinkerbell_tls=`.
    pub tls: bool,
    /// `tinkerbell_insecure_tls=`.
    pub insecure_tls: bool,
    /// `worker_id=`: the agent's name.
    pub worker_id: String,
    /// Kernel consoles in order, the last one becomes `/dev/console`: `tty0`, `ttyS0,115200`.
    pub consoles: Vec<String>,
    /// Everything else, in order, last: the boot token, the hardware's extra parameters.
    pub args: Vec<String>,
}

/// Whose medium is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// The machine with this interface.
    Mac(MacAddr),
    /// The machine whose `Hardware.spec.metadata.instance.id`, with dashes for its colons, is this.
    Instance(&'a str),
    /// The machine that holds this address.
    Address(IpAddr),
}

/// What a medium (ISO, unified kernel image) tells one machine, and who may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    /// The interface that the agent is to use.
    pub mac: MacAddr,
    /// `namespace/name` of the hardware, for the log.
    pub hardware: String,
    /// The agent's arguments; its files lie on the medium.
    pub boot: AgentBoot,
    /// Addresses for a network without DHCP.
    pub ipam: Option<Ipam>,
    /// The ISO to patch, whatever name is asked for: the copy in the [cache](artifact_cache) of an
    /// `isoboot.sourceISO`, or of the ISO that the owner chose for all. `None`: the one of that
    /// name.
    pub iso: Option<PathBuf>,
    /// The addresses that interface has, by a record or a lease.
    pub addresses: Vec<IpAddr>,
    /// Where the machine's BMC is, which mounts the medium.
    pub controller: Option<IpAddr>,
}

impl Medium {
    /// Of a machine of which no more is known.
    pub fn new(mac: MacAddr, hardware: impl Into<String>) -> Self {
        let boot = AgentBoot { worker_id: mac.to_string(), ..AgentBoot::default() };
        let hardware = hardware.into();
        let (addresses, controller) = (Vec::new(), None);
        Self { mac, hardware, boot, ipam: None, iso: None, addresses, controller }
    }

    /// Whether `reader` may have it: it carries the agent's token.
    pub fn is_for(&self, reader: Reader) -> bool {
        self.controller == Some(reader.address) || reader.is(self.mac, &self.addresses)
    }
}

/// Knows what each machine should boot. Must answer from memory: it is called on the boot path.
pub trait Plans: Send + Sync + 'static {
    /// The plan of the machine with this interface; `None` when the machine is unknown.
    fn by_mac(&self, mac: MacAddr) -> Option<Plan>;
    /// The plan of the machine that holds this address; `None` when the machine is unknown.
    fn by_address(&self, address: IpAddr) -> Option<Plan>;
    /// The hardware address behind an address on one of the box's own links, as the kernel knows
    /// it; `None` where it knows none.
    fn neighbour(&self, address: IpAddr) -> Option<MacAddr> {
        let _ = address;
        None
    }
    /// What the media of a machine say; `None` when the machine is unknown or may not netboot.
    fn medium(&self, owner: Owner<'_>) -> Option<Medium> {
        let _ = owner;
        None
    }
    /// What a machine that nobody knows is told to boot; `None`: nothing, it goes on to its disk.
    /// Its `worker_id` and consoles are left to the script ([`crate::script::stranger`]).
    fn stranger(&self) -> Option<AgentBoot> {
        None
    }
}

/// No machine is known.
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
    use crate::reader::Reader;

    #[test]
    fn an_agents_plan_is_for_its_machine_alone_and_its_medium_for_the_bmc_too() {
        let mac = "52:54:00:77:00:01".parse().unwrap();
        let (own, other) = ("10.77.0.11".parse().unwrap(), "10.77.0.12".parse().unwrap());
        let is_at = |address| Reader { address, neighbour: None };
        let (boot, hardware) = (Boot::Agent(AgentBoot::default()), "default/nuc1".to_owned());
        let mut plan = Plan { mac, hardware, addresses: vec![own], boot };
        assert!(plan.is_for(is_at(own)));
        assert!(!plan.is_for(is_at(other)));
        plan.boot = Boot::LocalDisk;
        assert!(plan.is_for(is_at(other)), "there is nothing secret about booting the disk");
        let mut medium = Medium::new(mac, "default/nuc1");
        assert!(!medium.is_for(is_at(own)), "nobody is known to be the machine");
        medium.addresses = vec![own];
        assert!(medium.is_for(is_at(own)) && !medium.is_for(is_at(other)));
        medium.controller = Some(other);
        assert!(medium.is_for(is_at(other)));
    }
}
