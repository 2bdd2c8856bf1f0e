//! Packet loss: packets dropped at random on one NUC's port (nftables, `netdev` family). Delay and
//! reordering are not offered, because they need a network emulator that many kernels lack.

use std::process::Command;

use crate::namespace::Namespace;
use crate::{Error, children, machine};

/// Direction of the dropped packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Sent by the NUC.
    FromNuc,
    /// Sent to the NUC.
    ToNuc,
}

impl Direction {
    fn hook(self) -> &'static str {
        match self {
            Self::FromNuc => "ingress",
            Self::ToNuc => "egress",
        }
    }
}

/// Drops `per_mille` of a thousand packets; 0 ends the loss, 1000 drops every packet.
pub fn drop_packets(
    rack: &Namespace,
    number: u8,
    direction: Direction,
    per_mille: u16,
) -> Result<(), Error> {
    if per_mille > 1000 {
        return Err(Error::Config(format!("cannot drop {per_mille} of 1000 packets")));
    }
    let (tap, hook) = (machine::tap(number), direction.hook());
    let table = format!("netdev {tap}-{hook}");
    // A table that is created first can always be deleted, even if it did not exist.
    let mut script = format!("add table {table}\ndelete table {table}\n");
    if per_mille > 0 {
        // nft rejects a comparison that is always true.
        let some = match per_mille {
            1000 => String::new(),
            _ => format!("numgen random mod 1000 < {per_mille} "),
        };
        let hook = format!("{{ type filter hook {hook} device {tap} priority 0; }}");
        script += &format!(
            "add table {table}\n\
             add chain {table} lossy {hook}\n\
             add rule {table} lossy {some}counter drop\n"
        );
    }
    let mut command: Command = rack.command("nft");
    command.args(["-f", "-"]);
    children::run(command, &script).map(drop)
}
