//! Events of a machine's boot, as sentences.
//!
//! A boot service records a [`BootEvent`], stored as a core/v1 Event on the machine's Hardware:
//! [`BootEvent::reason`] is the Event's reason, [`BootEvent::sentence`] its message. The subject of
//! every sentence is the machine.

use std::net::IpAddr;

use stdx::MacAddr;

use crate::plain;

/// Program on the machine that sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Boot ROM of a BIOS machine.
    BiosFirmware,
    /// UEFI firmware that loads by TFTP.
    UefiFirmware,
    /// UEFI firmware that loads by HTTP.
    UefiHttpFirmware,
    /// The boot loader iPXE.
    Ipxe,
    /// Operating system of the agent.
    Agent,
    /// Installed system, or another program that does not boot from the network.
    System,
}

/// Protocol of a file transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    /// Trivial File Transfer Protocol (RFC 1350).
    Tftp,
    /// HTTP, with or without TLS.
    Http,
}

/// Event of a machine's boot.
#[derive(Debug, Clone, PartialEq)]
pub enum BootEvent {
    /// The BMC confirmed that the machine is on.
    PoweredOn,
    /// The BMC confirmed that the machine is off.
    PoweredOff,
    /// The BMC accepted a network boot as the next boot.
    NetworkBootArmed,
    /// The machine sent a DHCP discover, or an inform that requests boot options.
    AskedForAddress {
        /// Program on the machine that sent the request.
        stage: Stage,
    },
    /// The box sent a DHCP acknowledgement (DHCPACK).
    GotAddress {
        /// Address of the machine.
        ip: IpAddr,
        /// Program on the machine that got the address.
        stage: Stage,
    },
    /// The box sent a network boot loader completely.
    FetchedLoader {
        /// Name of the sent file.
        file: String,
        /// Protocol of the transfer.
        via: Via,
        /// Size of the file in bytes.
        bytes: u64,
        /// Time from the first to the last packet, in milliseconds.
        millis: u64,
    },
    /// The box sent the iPXE script that boots the agent.
    FetchedScript,
    /// The box sent the iPXE script that boots the disk.
    SentToDisk,
    /// The box sent the agent's kernel completely.
    FetchedKernel {
        /// Size of the file in bytes.
        bytes: u64,
        /// Time from the first to the last byte, in milliseconds.
        millis: u64,
    },
    /// The box sent the agent's initramfs completely.
    FetchedInitrd {
        /// Size of the file in bytes.
        bytes: u64,
        /// Time from the first to the last byte, in milliseconds.
        millis: u64,
    },
    /// The box sent another file, or the requested range of the file.
    FetchedFile {
        /// Name of the sent file.
        file: String,
        /// Protocol of the transfer.
        via: Via,
        /// Number of bytes sent.
        bytes: u64,
        /// Time from the first to the last byte, in milliseconds.
        millis: u64,
    },
    /// The box did not send a requested file, or sent only a part of the file.
    FetchFailed {
        /// File that was requested.
        file: String,
        /// Protocol of the request.
        via: Via,
        /// Reason, as a phrase: `no such file`.
        why: String,
    },
    /// The agent connected to the box.
    AgentHello {
        /// Version of the agent.
        version: String,
    },
    /// The agent began an action.
    ActionStarted {
        /// Name of the action.
        name: String,
    },
    /// The agent ended an action.
    ActionEnded {
        /// Name of the action.
        name: String,
        /// True if the action succeeded.
        ok: bool,
        /// Message of the agent; may be empty.
        message: String,
        /// Duration of the action in milliseconds.
        millis: u64,
    },
    /// The machine read its metadata; reported once per boot.
    AskedMetadata {
        /// Path of the request.
        path: String,
    },
    /// The installed system reported that it is up.
    PhonedHome {
        /// Host name that the installed system reported.
        hostname: String,
    },
    /// A machine without Hardware sent a request.
    UnknownMachine {
        /// MAC address of the machine.
        mac: MacAddr,
    },
    /// A machine without Hardware boots the agent for its enrollment.
    Enrolls {
        /// MAC address of the machine.
        mac: MacAddr,
    },
    /// Another station uses the IP address that is reserved or leased for the machine.
    AddressInUse {
        /// Address that is in use.
        ip: IpAddr,
        /// MAC address of the other station.
        by: MacAddr,
    },
    /// The boot loader did not start on the machine; the next boot gets another loader.
    ChangedLoader {
        /// File that the firmware fetched.
        from: String,
        /// File that the machine gets at its next boot.
        to: String,
    },
    /// The box refused a request of the machine.
    Refused {
        /// Refused object, as a noun: `work`, `user data`.
        what: String,
        /// Reason, as a phrase: `its token is not of this boot`.
        why: String,
    },
}

/// Returns the object name that stores the events of a machine without Hardware: `unknown-MAC`.
pub fn unknown_machine(mac: MacAddr) -> String {
    format!("unknown-{}", mac.dashed())
}

impl Stage {
    /// Returns the name for use in a sentence.
    pub fn word(self) -> &'static str {
        match self {
            Stage::BiosFirmware => "BIOS firmware",
            Stage::UefiFirmware => "UEFI firmware",
            Stage::UefiHttpFirmware => "UEFI firmware, HTTP boot",
            Stage::Ipxe => "iPXE",
            Stage::Agent => "agent",
            Stage::System => "operating system",
        }
    }
}

impl Via {
    /// Returns the name for use in a sentence.
    pub fn word(self) -> &'static str {
        match self {
            Via::Tftp => "TFTP",
            Via::Http => "HTTP",
        }
    }
}

impl BootEvent {
    /// Returns the Event's `reason`: a stable word in upper camel case.
    pub fn reason(&self) -> &'static str {
        match self {
            BootEvent::PoweredOn => reason::POWERED_ON,
            BootEvent::PoweredOff => reason::POWERED_OFF,
            BootEvent::NetworkBootArmed => "NetworkBootArmed",
            BootEvent::AskedForAddress { .. } => reason::ASKED_FOR_ADDRESS,
            BootEvent::GotAddress { .. } => reason::GOT_ADDRESS,
            BootEvent::FetchedLoader { .. } => reason::FETCHED_LOADER,
            BootEvent::FetchedScript => reason::FETCHED_SCRIPT,
            BootEvent::SentToDisk => reason::SENT_TO_DISK,
            BootEvent::FetchedKernel { .. } => reason::FETCHED_KERNEL,
            BootEvent::FetchedInitrd { .. } => reason::FETCHED_INITRD,
            BootEvent::FetchedFile { .. } => "FetchedFile",
            BootEvent::FetchFailed { .. } => "FetchFailed",
            BootEvent::AgentHello { .. } => reason::AGENT_STARTED,
            BootEvent::ActionStarted { .. } => reason::ACTION_STARTED,
            BootEvent::ActionEnded { ok: true, .. } => reason::ACTION_SUCCEEDED,
            BootEvent::ActionEnded { ok: false, .. } => reason::ACTION_FAILED,
            BootEvent::AskedMetadata { .. } => reason::ASKED_METADATA,
            BootEvent::PhonedHome { .. } => reason::PHONED_HOME,
            BootEvent::UnknownMachine { .. } => "UnknownMachine",
            BootEvent::Enrolls { .. } => "Enrolls",
            BootEvent::AddressInUse { .. } => "AddressInUse",
            BootEvent::ChangedLoader { .. } => "ChangedLoader",
            BootEvent::Refused { .. } => "Refused",
        }
    }

    /// Returns the event as a sentence without its subject (the machine) and without a full stop.
    pub fn sentence(&self) -> String {
        match self {
            BootEvent::PoweredOn => "is on, according to its BMC".to_owned(),
            BootEvent::PoweredOff => "is off, according to its BMC".to_owned(),
            BootEvent::NetworkBootArmed => "will boot from the network next".to_owned(),
            BootEvent::AskedForAddress { stage } => {
                format!("requested an address ({})", stage.word())
            }
            BootEvent::GotAddress { ip, stage } => format!("got {ip} ({})", stage.word()),
            BootEvent::FetchedLoader { file, via, bytes, millis }
            | BootEvent::FetchedFile { file, via, bytes, millis } => {
                fetched(&plain(file), *via, *bytes, *millis)
            }
            BootEvent::FetchedScript => "fetched the script that boots the agent".to_owned(),
            BootEvent::SentToDisk => "boots its disk".to_owned(),
            BootEvent::FetchedKernel { bytes, millis } => {
                fetched("the agent's kernel", Via::Http, *bytes, *millis)
            }
            BootEvent::FetchedInitrd { bytes, millis } => {
                fetched("the agent's initramfs", Via::Http, *bytes, *millis)
            }
            BootEvent::FetchFailed { file, via, why } => {
                format!("did not get {} by {}: {}", plain(file), via.word(), plain(why))
            }
            BootEvent::AgentHello { version } => format!("runs agent {}", plain(version)),
            BootEvent::ActionStarted { name } => format!("{ACTION}{} started", plain(name)),
            BootEvent::ActionEnded { name, ok, message, millis } => {
                let end = if *ok { SUCCEEDED } else { FAILED };
                let mut text = format!("{ACTION}{}{end}{}", plain(name), stdx::seconds(*millis));
                if !message.is_empty() {
                    text.push_str(": ");
                    text.push_str(&plain(message));
                }
                text
            }
            BootEvent::AskedMetadata { path } => format!("read its metadata ({})", plain(path)),
            BootEvent::PhonedHome { hostname } => {
                format!("phoned home as {}: the installed system is up", plain(hostname))
            }
            BootEvent::UnknownMachine { mac } => {
                format!("{mac} requested an address, but no Hardware has this MAC")
            }
            BootEvent::Enrolls { mac } => {
                format!("{mac} is unknown and boots the agent for its enrollment")
            }
            BootEvent::AddressInUse { ip, by } => {
                format!("cannot get {ip}: {by} uses it")
            }
            BootEvent::ChangedLoader { from, to } => {
                format!("did not start {}: it gets {} from now on", plain(from), plain(to))
            }
            BootEvent::Refused { what, why } => {
                format!("was refused {}: {}", plain(what), plain(why))
            }
        }
    }

    /// Returns true for an event that needs attention (Event type `Warning`).
    pub fn warning(&self) -> bool {
        matches!(
            self,
            BootEvent::ActionEnded { ok: false, .. }
                | BootEvent::FetchFailed { .. }
                | BootEvent::UnknownMachine { .. }
                | BootEvent::AddressInUse { .. }
                | BootEvent::ChangedLoader { .. }
                | BootEvent::Refused { .. }
        )
    }
}

/// Event reasons that [`crate::history`] reads.
pub(crate) mod reason {
    pub const POWERED_ON: &str = "PoweredOn";
    pub const POWERED_OFF: &str = "PoweredOff";
    pub const ASKED_FOR_ADDRESS: &str = "AskedForAddress";
    pub const GOT_ADDRESS: &str = "GotAddress";
    pub const FETCHED_LOADER: &str = "FetchedLoader";
    pub const FETCHED_SCRIPT: &str = "FetchedScript";
    pub const FETCHED_KERNEL: &str = "FetchedKernel";
    pub const FETCHED_INITRD: &str = "FetchedInitrd";
    pub const SENT_TO_DISK: &str = "SentToDisk";
    pub const AGENT_STARTED: &str = "AgentStarted";
    pub const ACTION_STARTED: &str = "ActionStarted";
    pub const ACTION_SUCCEEDED: &str = "ActionSucceeded";
    pub const ACTION_FAILED: &str = "ActionFailed";
    pub const ASKED_METADATA: &str = "AskedMetadata";
    pub const PHONED_HOME: &str = "PhonedHome";
}

const ACTION: &str = "action ";
const SUCCEEDED: &str = " succeeded after ";
const FAILED: &str = " failed after ";

/// Returns the action name in a sentence of [`BootEvent::ActionEnded`]; `None` for other sentences.
pub(crate) fn ended_action(sentence: &str) -> Option<&str> {
    let rest = sentence.strip_prefix(ACTION)?;
    let at = rest.find(SUCCEEDED).or_else(|| rest.find(FAILED))?;
    Some(&rest[..at])
}

fn fetched(what: &str, via: Via, bytes: u64, millis: u64) -> String {
    format!("fetched {what} by {}, {} in {}", via.word(), stdx::bytes(bytes), stdx::seconds(millis))
}

#[cfg(test)]
mod tests;
