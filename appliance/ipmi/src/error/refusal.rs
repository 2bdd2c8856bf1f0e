//! Refused commands: completion codes with their meanings (IPMI 2.0 table 5-2, and the table of
//! each command). A code from 80h to BEh has another meaning in each command.

use std::fmt;

/// Completion code of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletionCode(pub u8);

impl CompletionCode {
    /// The command completed normally.
    pub const OK: Self = Self(0x00);
    /// The reservation was canceled, or is not valid.
    pub const RESERVATION_CANCELED: Self = Self(0xC5);
    /// The requested sensor, data or record does not exist.
    pub const NOT_PRESENT: Self = Self(0xCB);
}

/// Command that a BMC refused, with the completion code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Network function code of the request.
    pub net_fn: u8,
    /// Command number in the network function.
    pub command: u8,
    /// Completion code, other than [`CompletionCode::OK`].
    pub code: CompletionCode,
}

/// Code of one command: network function, command, code.
type Key = (u8, u8, u8);

const ERASING: &str = "the event log is being erased";
const NO_PARAMETER: &str = "parameter not supported";
const PAYLOAD_DISABLED: &str = "payload type disabled";

/// Codes of the commands that the driver sends. Tables 22-21 to 22-25, 24-2, 24-3, 28-12, 28-13,
/// 31-2, 31-4 and 31-5 of IPMI 2.0; the other commands have codes of table 5-2 only.
pub(crate) const OF_COMMANDS: [(Key, &str); 27] = [
    ((0x00, 0x08, 0x80), NO_PARAMETER),
    ((0x00, 0x08, 0x81), "another client is changing the boot options"),
    ((0x00, 0x08, 0x82), "parameter is read-only"),
    ((0x00, 0x09, 0x80), NO_PARAMETER),
    ((0x06, 0x39, 0x81), "unknown user name"),
    ((0x06, 0x39, 0x82), "the user without a name is not enabled"),
    ((0x06, 0x3A, 0x81), "no session is free"),
    ((0x06, 0x3A, 0x82), "no session is free for this user"),
    ((0x06, 0x3A, 0x83), "no session is free at this privilege level"),
    ((0x06, 0x3A, 0x84), "session sequence number out of range"),
    ((0x06, 0x3A, 0x85), "invalid session ID"),
    ((0x06, 0x3A, 0x86), "requested level exceeds the privilege limit of the user or channel"),
    ((0x06, 0x3B, 0x80), "requested level not available for this user"),
    ((0x06, 0x3B, 0x81), "requested level exceeds the privilege limit of the user or channel"),
    ((0x06, 0x3B, 0x82), "cannot disable the authentication of user level"),
    ((0x06, 0x3C, 0x87), "invalid session ID"),
    ((0x06, 0x3C, 0x88), "invalid session handle"),
    ((0x06, 0x48, 0x80), "payload already active on another session"),
    ((0x06, 0x48, 0x81), PAYLOAD_DISABLED),
    ((0x06, 0x48, 0x82), "payload activation limit reached"),
    ((0x06, 0x48, 0x83), "cannot activate the payload with encryption"),
    ((0x06, 0x48, 0x84), "cannot activate the payload without encryption"),
    ((0x06, 0x49, 0x80), "payload already deactivated"),
    ((0x06, 0x49, 0x81), PAYLOAD_DISABLED),
    ((0x0A, 0x40, 0x81), ERASING),
    ((0x0A, 0x42, 0x81), ERASING),
    ((0x0A, 0x43, 0x81), ERASING),
];

/// Codes of [`OF_COMMANDS`] after which the BMC may accept the same command later.
const TRANSIENT: [Key; 7] = [
    (0x00, 0x08, 0x81),
    (0x06, 0x3A, 0x81),
    (0x06, 0x3A, 0x82),
    (0x06, 0x3A, 0x83),
    (0x0A, 0x40, 0x81),
    (0x0A, 0x42, 0x81),
    (0x0A, 0x43, 0x81),
];

impl Refusal {
    fn key(self) -> Key {
        (self.net_fn, self.command, self.code.0)
    }

    /// Returns true if the BMC is busy, starting or updating, and may accept the command later.
    pub fn is_transient(self) -> bool {
        matches!(self.code.0, 0xC0 | 0xC3 | 0xC4 | 0xCE | 0xD0 | 0xD1 | 0xD2 | 0xD3)
            || TRANSIENT.contains(&self.key())
    }

    /// Returns true if the BMC does not know the user of a session of IPMI 1.5.
    pub(crate) fn refuses_user(self) -> bool {
        matches!(self.key(), (0x06, 0x39, 0x81 | 0x82))
    }

    /// Returns true if the user of a session of IPMI 1.5 must not have the requested privilege.
    pub(crate) fn refuses_privilege(self) -> bool {
        self.key() == (0x06, 0x3A, 0x86)
    }

    /// Returns true if the BMC refused a session of IPMI 1.5 because all its sessions are in use.
    pub(crate) fn lacks_session(self) -> bool {
        matches!(self.key(), (0x06, 0x3A, 0x81..=0x83))
    }

    /// Returns a short description, from the words of the standard.
    fn text(self) -> &'static str {
        let own = OF_COMMANDS.iter().find(|(key, _)| *key == self.key());
        own.map_or_else(|| text(self.code), |(_, text)| text)
    }
}

/// Returns the meaning that a code has in every command (table 5-2).
fn text(code: CompletionCode) -> &'static str {
    match code.0 {
        0x00 => "done",
        0xC0 => "busy",
        0xC1 => "unknown command",
        0xC2 => "command not valid for this unit",
        0xC3 => "timed out inside the BMC",
        0xC4 => "out of space",
        0xC5 => "reservation canceled",
        0xC6 => "request data truncated",
        0xC7 => "request data of the wrong length",
        0xC8 => "request data too long",
        0xC9 => "parameter out of range",
        0xCA => "cannot return that many bytes",
        0xCB => "not present",
        0xCC => "invalid data field",
        0xCD => "command not valid for this sensor or record",
        0xCE => "response could not be provided",
        0xCF => "duplicated request",
        0xD0 => "sensor repository is being updated",
        0xD1 => "firmware is being updated",
        0xD2 => "BMC is starting",
        0xD3 => "destination unavailable",
        0xD4 => "not enough privilege",
        0xD5 => "not possible in the present state",
        0xD6 => "disabled",
        0xFF => "unspecified error",
        0x01..=0x7E => "manufacturer's code",
        0x80..=0xBE => "code of the command without a standard meaning",
        _ => "unknown reason",
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (0x{:02x})", self.text(), self.code.0)
    }
}
