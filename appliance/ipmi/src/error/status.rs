//! Status of the session setup, and reasons why a datagram is dropped.

use std::fmt;

/// Status of a step of the session setup (IPMI 2.0 table 13-15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionStatus(pub u8);

impl SessionStatus {
    /// The step completed without errors.
    pub const OK: Self = Self(0x00);
    /// The integrity check of the other side's key exchange code failed.
    pub const INVALID_INTEGRITY_CHECK_VALUE: Self = Self(0x0F);

    /// Returns true if the BMC has no free session, or has dropped the session of the setup.
    pub fn is_transient(self) -> bool {
        matches!(self.0, 0x01 | 0x02 | 0x08 | 0x0B)
    }

    /// Returns true if the BMC does not support the proposed algorithms.
    pub fn refuses_suite(self) -> bool {
        matches!(self.0, 0x04..=0x07 | 0x10 | 0x11)
    }

    /// Returns true if the user is unknown or the password is wrong.
    pub fn refuses_user(self) -> bool {
        matches!(self.0, 0x0C | 0x0D | 0x0F)
    }

    /// Returns true if the user must not have the requested privilege.
    pub fn refuses_privilege(self) -> bool {
        matches!(self.0, 0x09 | 0x0A)
    }

    /// Returns a short description, from the words of the standard.
    fn text(self) -> &'static str {
        match self.0 {
            0x00 => "no errors",
            0x01 => "no session is free",
            0x02 => "invalid session ID",
            0x03 => "invalid payload type",
            0x04 => "invalid authentication algorithm",
            0x05 => "invalid integrity algorithm",
            0x06 => "no matching authentication payload",
            0x07 => "no matching integrity payload",
            0x08 => "inactive session ID",
            0x09 => "invalid role",
            0x0A => "unauthorized role or privilege level",
            0x0B => "no session is free at that role",
            0x0C => "invalid name length",
            0x0D => "unauthorized name",
            0x0E => "unauthorized GUID",
            0x0F => "invalid integrity check value",
            0x10 => "invalid confidentiality algorithm",
            0x11 => "no cipher suite matches the algorithms proposed",
            0x12 => "illegal or unrecognized parameter",
            _ => "unknown reason",
        }
    }
}

impl fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (0x{:02x})", self.text(), self.0)
    }
}

/// Reason why a datagram is not the awaited response. The wait continues, because the datagram may
/// be a late duplicate or a forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The datagram ends inside a field.
    #[error("datagram ends inside {0}")]
    Short(&'static str),
    /// A field has an invalid value.
    #[error("unexpected value in {0}")]
    Field(&'static str),
    /// The datagram belongs to another session, request or step.
    #[error("response to another request: {0} does not match")]
    Stray(&'static str),
    /// A checksum or an authentication code is wrong.
    #[error("{0}: invalid checksum or authentication code")]
    Unverified(&'static str),
    /// The session sequence number was received before, or is too old to check.
    #[error("session sequence number was already used")]
    Replayed,
}
