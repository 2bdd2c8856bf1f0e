//! Parses the kernel command line: Tinkerbell's arguments, and Tinbox's own.

use std::fmt;

use agent_rpc::Pin;
use imaging::preserve::{self, PreservedName};
use platform::net::{Addressing, ClientIdentity, InterfaceConfig, InterfaceSelector, VLANS};
use stdx::{MacAddr, Secret};

use super::ipam::Ipam;
use crate::Error;

/// DHCP vendor class (option 60) of the agent.
const VENDOR_CLASS: &str = "tinbox-agent";

/// Parameters from the box's boot script, on the kernel command line.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// `grpc_authority`: host:port of the workflow service.
    pub grpc_authority: String,
    /// `syslog_host`: IP address or name of the syslog server; `None` for none.
    pub syslog_host: Option<String>,
    /// `worker_id`: id of this agent; `None` to use the MAC address.
    pub worker_id: Option<String>,
    /// `hw_addr`: MAC address of the interface that booted.
    pub hw_addr: Option<MacAddr>,
    /// `vlan_id`: VLAN for which the agent creates a tagged interface; `None` for untagged.
    pub vlan: Option<u16>,
    /// `ipam`: static address for a machine without DHCP.
    pub ipam: Option<Ipam>,
    /// `tinbox.preserve`: disks that no action may write to.
    pub preserve: Vec<PreservedName>,
    /// `tinbox.token`: bearer token that authenticates this boot to the box.
    pub token: Option<Secret>,
    /// `tinbox.pin`: pin of the box's public key, for TLS; `None` for no TLS.
    pub pin: Option<Pin>,
}

impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandLine")
            .field("grpc_authority", &self.grpc_authority)
            .field("syslog_host", &self.syslog_host)
            .field("worker_id", &self.worker_id)
            .field("hw_addr", &self.hw_addr)
            .field("vlan", &self.vlan)
            .field("ipam", &self.ipam)
            .field("preserve", &self.preserve)
            .finish_non_exhaustive()
    }
}

impl CommandLine {
    /// Reads the command line of the running kernel.
    pub fn read() -> Result<Self, Error> {
        let text = std::fs::read_to_string("/proc/cmdline")
            .map_err(Error::io("read the kernel command line"))?;
        Self::parse(&text)
    }

    /// Parses a command line. The last value of a repeated name counts, as in the kernel.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let words = words(text);
        let value = |name: &str| {
            let mut pairs = words.iter().rev().filter_map(|word| word.split_once('='));
            let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
            value.filter(|value| !value.is_empty())
        };
        let bad = |name, reason: String| Error::CommandLine { name, reason };
        let hw_addr = value("hw_addr")
            .map(|text| text.parse::<MacAddr>())
            .transpose()
            .map_err(|error| bad("hw_addr", error.to_string()))?;
        Ok(Self {
            grpc_authority: value("grpc_authority")
                .ok_or_else(|| bad("grpc_authority", "it is missing".to_owned()))?,
            syslog_host: value("syslog_host"),
            worker_id: value("worker_id"),
            hw_addr,
            vlan: vlan(&value("vlan_id").unwrap_or_default())
                .map_err(|reason| bad("vlan_id", reason))?,
            ipam: value("ipam")
                .map(|text| text.parse().map_err(|reason| bad("ipam", reason)))
                .transpose()?,
            preserve: preserve::parse(&value("tinbox.preserve").unwrap_or_default())
                .map_err(|reason| bad("tinbox.preserve", reason))?,
            token: value("tinbox.token").map(Secret::from),
            pin: value("tinbox.pin")
                .map(|text| text.parse().map_err(|reason: &str| bad("tinbox.pin", reason.into())))
                .transpose()?,
        })
    }

    /// Returns the network configuration: interface, VLAN, and static address or DHCP.
    pub fn network(&self) -> InterfaceConfig {
        let ipam = self.ipam.as_ref();
        let mac = ipam.and_then(|ipam| ipam.mac).or(self.hw_addr);
        InterfaceConfig {
            interface: mac.map_or(InterfaceSelector::Any, InterfaceSelector::Mac),
            vlan: ipam.and_then(|ipam| ipam.vlan).or(self.vlan),
            addressing: ipam
                .and_then(|ipam| ipam.address.clone())
                .map_or(Addressing::Dhcp, Addressing::Fixed),
            caller: ClientIdentity { class: VENDOR_CLASS, name: String::new() },
        }
    }
}

/// Parses a VLAN ID, 1 to 4094. Returns `None` for empty text and for 0 (no VLAN, IEEE 802.1Q).
pub(super) fn vlan(text: &str) -> Result<Option<u16>, String> {
    if matches!(text, "" | "0") {
        return Ok(None);
    }
    let id = text.parse().ok().filter(|id| VLANS.contains(id));
    id.map(Some)
        .ok_or_else(|| format!("{text:?} is not a VLAN ID, {} to {}", VLANS.start(), VLANS.end()))
}

/// Splits the command line at white space outside double quotes, as kernel/params.c does.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            character if character.is_whitespace() && !quoted => words.push(String::new()),
            character => {
                if let Some(word) = words.last_mut() {
                    word.push(character);
                }
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use platform::net::{Addressing, InterfaceSelector};

    use super::CommandLine;

    #[test]
    fn reads_what_the_boot_script_writes() {
        let line = CommandLine::parse(
            "initrd=initramfs-x86_64 vlan_id= facility=onprem syslog_host=10.77.0.1 \
             grpc_authority=10.77.0.1:42113 tinkerbell_tls=false \
             worker_id=52:54:00:77:00:01 hw_addr=52:54:00:77:00:01 \
             tinbox.preserve=/dev/sdb;wwn=0x5 \
             tinbox.token=abc note=\"two words\" console=ttyS0,115200\n",
        )
        .unwrap();
        assert_eq!(line.grpc_authority, "10.77.0.1:42113");
        assert_eq!(line.syslog_host.as_deref(), Some("10.77.0.1"));
        assert_eq!(line.worker_id.as_deref(), Some("52:54:00:77:00:01"));
        assert_eq!(line.hw_addr.unwrap().to_string(), "52:54:00:77:00:01");
        assert_eq!(line.preserve.len(), 2);
        assert_eq!(line.token.as_ref().unwrap().expose(), "abc");
        assert!(!format!("{line:?}").contains("abc"));
        assert_eq!(line.pin, None);
        assert_eq!((line.vlan, &line.ipam), (None, &None));
    }

    #[test]
    fn the_network_is_what_the_medium_says() {
        let with = |text: &str| {
            let line = format!("grpc_authority=a:1 hw_addr=52:54:00:77:00:02 {text}");
            CommandLine::parse(&line).map(|line| line.network())
        };
        let plain = with("vlan_id=7").unwrap();
        assert_eq!((plain.vlan, plain.addressing), (Some(7), Addressing::Dhcp));
        assert_eq!(with("vlan_id=0").unwrap().vlan, None);
        let fixed =
            with("ipam=52-54-00-77-00-01:9:10.77.0.11:255.255.255.0::::: vlan_id=7").unwrap();
        let mac = "52:54:00:77:00:01".parse().unwrap();
        assert_eq!(fixed.interface, InterfaceSelector::Mac(mac));
        assert_eq!(fixed.vlan, Some(9));
        assert!(matches!(fixed.addressing, Addressing::Fixed(it) if it.prefix == 24));
        let empty = with("ipam=52-54-00-77-00-01:::::::: vlan_id=7").unwrap();
        assert_eq!((empty.vlan, empty.addressing), (Some(7), Addressing::Dhcp));
        let error = with("vlan_id=4095").unwrap_err().to_string();
        assert!(error.contains("vlan_id") && error.contains("1 to 4094"), "{error}");
    }

    #[test]
    fn the_boxs_key_is_named_whole_or_not_at_all() {
        let with = |pin: &str| CommandLine::parse(&format!("grpc_authority=a:1 tinbox.pin={pin}"));
        let pin = "0f".repeat(32);
        assert_eq!(with(&pin).unwrap().pin.unwrap().to_string(), pin);
        assert!(with("0f0f").unwrap_err().to_string().contains("tinbox.pin"));
    }

    #[test]
    fn says_what_is_missing_or_wrong() {
        let error = CommandLine::parse("quiet").unwrap_err().to_string();
        assert!(error.contains("grpc_authority"), "{error}");
        let error = CommandLine::parse("grpc_authority=a:1 hw_addr=nonsense").unwrap_err();
        assert!(error.to_string().contains("hw_addr"), "{error}");
        let error = CommandLine::parse("grpc_authority=a:1 tinbox.preserve=sdb").unwrap_err();
        assert!(error.to_string().contains("tinbox.preserve"), "{error}");
        let line = CommandLine::parse("grpc_authority=a:1 worker_id=x worker_id=y").unwrap();
        assert_eq!(line.worker_id.as_deref(), Some("y"));
    }
}
