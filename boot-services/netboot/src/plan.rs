//! What a machine should boot, and the trait by which this crate asks.

use std::net::IpAddr;

use stdx::MacAddr;

/// The answer for one known machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The interface that boots.
    pub mac: MacAddr,
    /// `namespace/name` of the hardware, for the screen and the log.
    pub hardware: String,
    /// The address reserved for that interface. Somebody else who asks for the machine's script is
    /// not told how to speak for its agent.
    pub address: Option<IpAddr>,
    /// What to do.
    pub boot: Boot,
}

impl Plan {
    /// Whether `peer` may read this plan: an agent's kernel line carries its token.
    pub fn is_for(&self, peer: IpAddr) -> bool {
        !matches!(self.boot, Boot::Agent(_)) || self.address.is_none_or(|own| own == peer)
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
    /// Netboot is not allowed, or no workflow waits: boot what is on the disk.
    LocalDisk,
}

impl Boot {
    /// One word for logs and stories.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Chain { .. } => "chain",
            Self::Script { .. } => "script",
            Self::LocalDisk => "local-disk",
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

/// Knows what each machine should boot. Must answer from memory: it is called on the boot path.
pub trait Plans: Send + Sync + 'static {
    /// The plan of the machine with this interface; `None` when the machine is unknown.
    fn by_mac(&self, mac: MacAddr) -> Option<Plan>;
    /// The plan of the machine that holds this address; `None` when the machine is unknown.
    fn by_address(&self, address: IpAddr) -> Option<Plan>;
}

#[cfg(test)]
mod tests {
    use super::{AgentBoot, Boot, Plan};

    #[test]
    fn an_agents_plan_is_for_its_own_address_alone() {
        let mac = "52:54:00:77:00:01".parse().unwrap();
        let (own, other) = ("10.77.0.11".parse().unwrap(), "10.77.0.12".parse().unwrap());
        let boot = Boot::Agent(AgentBoot::default());
        let mut plan = Plan { mac, hardware: "default/nuc1".into(), address: Some(own), boot };
        assert!(plan.is_for(own));
        assert!(!plan.is_for(other));
        plan.boot = Boot::LocalDisk;
        assert!(plan.is_for(other), "there is nothing secret about booting the disk");
    }
}
