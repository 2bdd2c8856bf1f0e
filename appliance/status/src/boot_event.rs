//! One boot of one machine as sentences.
//!
//! A boot service sees something and makes a [`Moment`] of it; it is kept as a core/v1 Event on the
//! machine's Hardware: [`Moment::reason`] is the Event's reason, [`Moment::sentence`] its message.
//! The subject of every sentence is the machine.

use std::net::IpAddr;

use stdx::MacAddr;

/// The longest text taken over from a machine into a sentence, in characters.
pub const TEXT_CHARS_MAX: usize = 200;

/// Which program on the machine asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The boot ROM of a BIOS machine.
    BiosFirmware,
    /// UEFI firmware that loads by TFTP.
    UefiFirmware,
    /// UEFI firmware that loads by HTTP.
    UefiHttpFirmware,
    /// iPXE.
    Ipxe,
    /// The agent's operating system.
    Agent,
    /// The installed system, or anything else that does not boot from the network.
    System,
}

/// The protocol that carried a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    /// TFTP.
    Tftp,
    /// HTTP.
    Http,
}

/// Something that happened to a machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Moment {
    /// Its BMC confirmed that it is on.
    PoweredOn,
    /// Its BMC confirmed that it is off.
    PoweredOff,
    /// Its BMC accepted that the next boot comes from the network.
    NetworkBootArmed,
    /// A DHCP discover (or an inform that asks for boot options).
    AskedForAddress {
        /// Who asked.
        stage: Stage,
    },
    /// A DHCP acknowledgement was sent.
    GotAddress {
        /// The address.
        ip: IpAddr,
        /// Who got it.
        stage: Stage,
    },
    /// A network boot loader was sent whole.
    FetchedLoader {
        /// File name.
        file: String,
        /// Protocol.
        via: Via,
        /// Size.
        bytes: u64,
        /// First packet to last.
        millis: u64,
    },
    /// The iPXE script that boots the agent was sent.
    FetchedScript,
    /// The iPXE script that boots the disk was sent.
    SentToDisk,
    /// The agent's kernel was sent whole.
    FetchedKernel {
        /// Size.
        bytes: u64,
        /// First byte to last.
        millis: u64,
    },
    /// The agent's initramfs was sent whole.
    FetchedInitrd {
        /// Size.
        bytes: u64,
        /// First byte to last.
        millis: u64,
    },
    /// Some other file was sent, or as much of it as was asked for.
    FetchedFile {
        /// File name.
        file: String,
        /// Protocol.
        via: Via,
        /// Bytes sent.
        bytes: u64,
        /// First byte to last.
        millis: u64,
    },
    /// A file was not sent, or not to its end.
    FetchFailed {
        /// What was asked for.
        file: String,
        /// Protocol.
        via: Via,
        /// Why, as a phrase: `no such file`.
        why: String,
    },
    /// The agent said hello.
    AgentHello {
        /// Its version.
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
        /// It ended well.
        ok: bool,
        /// What the agent says of it; may be empty.
        message: String,
        /// How long it took.
        millis: u64,
    },
    /// It read metadata; worth telling once a boot.
    AskedMetadata {
        /// Path of the request.
        path: String,
    },
    /// The installed system reported that it is up.
    PhonedHome {
        /// The name it gave itself.
        hostname: String,
    },
    /// Something asked that no Hardware describes.
    UnknownMachine {
        /// Its address.
        mac: MacAddr,
    },
    /// Something that no Hardware describes boots the agent, to become known.
    Enrolls {
        /// Its address.
        mac: MacAddr,
    },
    /// Another station has the address that it was to get.
    AddressInUse {
        /// The address.
        ip: IpAddr,
        /// Who answers for it.
        by: MacAddr,
    },
    /// The boot loader it was given did not start, so that it gets another.
    ChangedLoader {
        /// What it fetched.
        from: String,
        /// What it gets next.
        to: String,
    },
    /// A request of the machine was refused.
    Refused {
        /// What it asked for, as a noun: `work`, `user data`.
        what: String,
        /// Why, as a phrase: `its token is not of this boot`.
        why: String,
    },
}

/// The name under which the story of a machine is kept that no Hardware describes.
pub fn stranger(mac: MacAddr) -> String {
    format!("unknown-{}", mac.dashed())
}

impl Stage {
    /// As in a sentence.
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
    /// As in a sentence.
    pub fn word(self) -> &'static str {
        match self {
            Via::Tftp => "TFTP",
            Via::Http => "HTTP",
        }
    }
}

impl Moment {
    /// The stable word of this kind of moment, in upper camel case: an Event's `reason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Moment::PoweredOn => reason::POWERED_ON,
            Moment::PoweredOff => reason::POWERED_OFF,
            Moment::NetworkBootArmed => "NetworkBootArmed",
            Moment::AskedForAddress { .. } => reason::ASKED_FOR_ADDRESS,
            Moment::GotAddress { .. } => reason::GOT_ADDRESS,
            Moment::FetchedLoader { .. } => reason::FETCHED_LOADER,
            Moment::FetchedScript => reason::FETCHED_SCRIPT,
            Moment::SentToDisk => reason::SENT_TO_DISK,
            Moment::FetchedKernel { .. } => reason::FETCHED_KERNEL,
            Moment::FetchedInitrd { .. } => reason::FETCHED_INITRD,
            Moment::FetchedFile { .. } => "FetchedFile",
            Moment::FetchFailed { .. } => "FetchFailed",
            Moment::AgentHello { .. } => reason::AGENT_STARTED,
            Moment::ActionStarted { .. } => reason::ACTION_STARTED,
            Moment::ActionEnded { ok: true, .. } => reason::ACTION_SUCCEEDED,
            Moment::ActionEnded { ok: false, .. } => reason::ACTION_FAILED,
            Moment::AskedMetadata { .. } => reason::ASKED_METADATA,
            Moment::PhonedHome { .. } => reason::PHONED_HOME,
            Moment::UnknownMachine { .. } => "UnknownMachine",
            Moment::Enrolls { .. } => "Enrolls",
            Moment::AddressInUse { .. } => "AddressInUse",
            Moment::ChangedLoader { .. } => "ChangedLoader",
            Moment::Refused { .. } => "Refused",
        }
    }

    /// What happened, with the machine as the unsaid subject and without a full stop.
    pub fn sentence(&self) -> String {
        match self {
            Moment::PoweredOn => "is on, says its BMC".to_owned(),
            Moment::PoweredOff => "is off, says its BMC".to_owned(),
            Moment::NetworkBootArmed => "will boot from the network next".to_owned(),
            Moment::AskedForAddress { stage } => {
                format!("asked for an address ({})", stage.word())
            }
            Moment::GotAddress { ip, stage } => format!("got {ip} ({})", stage.word()),
            Moment::FetchedLoader { file, via, bytes, millis }
            | Moment::FetchedFile { file, via, bytes, millis } => {
                fetched(&plain(file), *via, *bytes, *millis)
            }
            Moment::FetchedScript => "fetched the script that boots the agent".to_owned(),
            Moment::SentToDisk => "was told to boot its disk".to_owned(),
            Moment::FetchedKernel { bytes, millis } => {
                fetched("the agent's kernel", Via::Http, *bytes, *millis)
            }
            Moment::FetchedInitrd { bytes, millis } => {
                fetched("the agent's initramfs", Via::Http, *bytes, *millis)
            }
            Moment::FetchFailed { file, via, why } => {
                format!("did not get {} by {}: {}", plain(file), via.word(), plain(why))
            }
            Moment::AgentHello { version } => format!("runs agent {}", plain(version)),
            Moment::ActionStarted { name } => format!("{ACTION}{} started", plain(name)),
            Moment::ActionEnded { name, ok, message, millis } => {
                let end = if *ok { SUCCEEDED } else { FAILED };
                let mut text = format!("{ACTION}{}{end}{}", plain(name), stdx::seconds(*millis));
                if !message.is_empty() {
                    text.push_str(": ");
                    text.push_str(&plain(message));
                }
                text
            }
            Moment::AskedMetadata { path } => format!("asked who it is ({})", plain(path)),
            Moment::PhonedHome { hostname } => {
                format!("phoned home as {}: the installed system is up", plain(hostname))
            }
            Moment::UnknownMachine { mac } => {
                format!("{mac} asked for an address, and no Hardware has that MAC")
            }
            Moment::Enrolls { mac } => {
                format!("{mac} is unknown and boots the agent, to say who it is")
            }
            Moment::AddressInUse { ip, by } => {
                format!("was to get {ip}, but {by} uses it")
            }
            Moment::ChangedLoader { from, to } => {
                format!("did not start {}: it gets {} from now on", plain(from), plain(to))
            }
            Moment::Refused { what, why } => {
                format!("was refused {}: {}", plain(what), plain(why))
            }
        }
    }

    /// Somebody should look at it.
    pub fn warning(&self) -> bool {
        matches!(
            self,
            Moment::ActionEnded { ok: false, .. }
                | Moment::FetchFailed { .. }
                | Moment::UnknownMachine { .. }
                | Moment::AddressInUse { .. }
                | Moment::ChangedLoader { .. }
                | Moment::Refused { .. }
        )
    }
}

/// Reasons that the timeline looks for.
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

/// The action a sentence of [`Moment::ActionEnded`] speaks of; `None` for other sentences.
pub(crate) fn ended_action(sentence: &str) -> Option<&str> {
    let rest = sentence.strip_prefix(ACTION)?;
    let at = rest.find(SUCCEEDED).or_else(|| rest.find(FAILED))?;
    Some(&rest[..at])
}

fn fetched(what: &str, via: Via, bytes: u64, millis: u64) -> String {
    format!("fetched {what} by {}, {} in {}", via.word(), stdx::bytes(bytes), stdx::seconds(millis))
}

/// `text` as it may stand in a log and on a terminal: control characters become spaces, and what is
/// over [`TEXT_CHARS_MAX`] is cut.
pub fn plain(text: &str) -> String {
    let mut chars = text.trim().chars();
    let safe = |char: char| if is_unsafe(char) { ' ' } else { char };
    let mut kept: String = chars.by_ref().take(TEXT_CHARS_MAX).map(safe).collect();
    if chars.next().is_some() {
        kept.push('…');
    }
    kept
}

/// Characters that move a cursor or turn the direction of text.
fn is_unsafe(char: char) -> bool {
    let turns = ['\u{200e}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    char.is_control() || turns.iter().any(|range| range.contains(&char))
}

#[cfg(test)]
mod tests;
