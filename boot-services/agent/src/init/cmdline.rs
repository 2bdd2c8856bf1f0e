//! The kernel command line, in Tinkerbell's words and one of ours.

use std::fmt;

use stdx::{MacAddr, Secret};

use crate::Error;
use crate::select::Selector;

/// What the box told the machine through its boot script.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// `grpc_authority`: host:port of the workflow service.
    pub grpc_authority: String,
    /// `worker_id`: this agent's id; without one it is the hardware address.
    pub worker_id: Option<String>,
    /// `hw_addr`: the interface that booted.
    pub hw_addr: Option<MacAddr>,
    /// `tinbox.preserve`: disks that no action may write.
    pub preserve: Vec<Selector>,
    /// `tinbox.token`: proves to the box which boot this is.
    pub token: Option<Secret>,
}

impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandLine")
            .field("grpc_authority", &self.grpc_authority)
            .field("worker_id", &self.worker_id)
            .field("hw_addr", &self.hw_addr)
            .field("preserve", &self.preserve)
            .finish_non_exhaustive()
    }
}

impl CommandLine {
    /// Of the running kernel.
    pub fn read() -> Result<Self, Error> {
        let text = std::fs::read_to_string("/proc/cmdline")
            .map_err(Error::io("read the kernel command line"))?;
        Self::parse(&text)
    }

    /// Understand a command line; the last of several equal names wins, as in the kernel.
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
            worker_id: value("worker_id"),
            hw_addr,
            preserve: crate::preserve::parse(&value("tinbox.preserve").unwrap_or_default())
                .map_err(|reason| bad("tinbox.preserve", reason))?,
            token: value("tinbox.token").map(Secret::from),
        })
    }
}

/// Words apart by white space; double quotes hold it together (kernel/params.c).
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
        assert_eq!(line.worker_id.as_deref(), Some("52:54:00:77:00:01"));
        assert_eq!(line.hw_addr.unwrap().to_string(), "52:54:00:77:00:01");
        assert_eq!(line.preserve.len(), 2);
        assert_eq!(line.token.as_ref().unwrap().expose(), "abc");
        assert!(!format!("{line:?}").contains("abc"));
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
