//! Messages between a power hook and the box: forms with an HMAC-SHA-256 (RFC 2104).
//!
//! The HMAC covers the verb and all fields, separated by spaces. No field contains a space.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// Block size of SHA-256 in bytes, the length of a padded key.
const BLOCK: usize = 64;
/// Maximum length of a boot ID or of the ID of a request, in characters.
const ID_MAX: usize = 64;

/// Poll of a hook: the boot, the number of the message, and the state of Wake-on-LAN.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Poll {
    /// Boot ID of the system.
    pub boot: String,
    /// Number of the message, increasing within a boot.
    pub number: u64,
    /// `on`, `off` or `unknown`.
    pub wake: String,
    /// HMAC of the message in hexadecimal.
    mac: String,
}

/// Confirmation of a hook that it powers its machine off now.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Down {
    /// Boot ID of the system.
    pub boot: String,
    /// Number of the message, increasing within a boot.
    pub number: u64,
    /// ID of the request that the hook confirms.
    pub request: String,
    /// HMAC of the message in hexadecimal.
    mac: String,
}

impl Poll {
    /// Returns true if the message is from the machine with this key.
    pub fn is_of(&self, key: &HookKey) -> bool {
        let Self { boot, number, wake, mac } = self;
        is_id(boot) && is_id(wake) && key.verifies(&format!("poll {boot} {number} {wake}"), mac)
    }

    /// Returns true if the system reports a NIC that may wake the machine; `None` if unknown.
    pub fn is_armed(&self) -> Option<bool> {
        match self.wake.as_str() {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    }

    /// Returns the answer: one line that requests the machine to power off.
    pub fn off(&self, key: &HookKey, request: &str) -> String {
        let Self { boot, number, .. } = self;
        format!("off {request} {}\n", key.mac(&format!("off {boot} {number} {request}")))
    }
}

impl Down {
    /// Returns true if the message is from the machine with this key.
    pub fn is_of(&self, key: &HookKey) -> bool {
        let Self { boot, number, request, mac } = self;
        is_id(boot)
            && is_id(request)
            && key.verifies(&format!("down {boot} {number} {request}"), mac)
    }

    /// Returns the answer: one line that lets the machine power off.
    pub fn go(&self, key: &HookKey) -> String {
        let Self { boot, number, request, .. } = self;
        format!("go {}\n", key.mac(&format!("go {boot} {number} {request}")))
    }
}

fn is_id(text: &str) -> bool {
    (1..=ID_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Key of HMACs: of the box, or of one machine.
pub(crate) struct HookKey([u8; BLOCK]);

impl HookKey {
    /// Creates the key of the box from a secret of any length.
    pub fn new(secret: &[u8]) -> Self {
        Self::padded(&Sha256::digest(secret))
    }

    /// Derives the key of the machine whose Hardware has this UID.
    pub fn of_machine(&self, uid: &str) -> Self {
        Self::padded(&self.hmac(&format!("tinbox power hook\n{uid}")).finalize().into_bytes())
    }

    /// Returns a key of up to 64 bytes with zeros behind it (RFC 2104, section 2).
    fn padded(key: &[u8]) -> Self {
        let mut padded = [0; BLOCK];
        padded.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        Self(padded)
    }

    /// Returns the key with the inner and the outer pad (RFC 2104, section 2). A shell script
    /// calculates HMACs with these, and with a program for SHA-256.
    pub fn pads(&self) -> [[u8; BLOCK]; 2] {
        [0x36, 0x5c].map(|pad| self.0.map(|byte| byte ^ pad))
    }

    fn hmac(&self, text: &str) -> Hmac<Sha256> {
        let mut hmac = Hmac::<Sha256>::new(&self.0.into());
        hmac.update(text.as_bytes());
        hmac
    }

    /// Returns the HMAC of a text in hexadecimal.
    pub fn mac(&self, text: &str) -> String {
        stdx::hex(&self.hmac(text).finalize().into_bytes())
    }

    /// Compares in constant time.
    fn verifies(&self, text: &str, mac: &str) -> bool {
        let mac = stdx::unhex(mac).unwrap_or_default();
        self.hmac(text).verify_slice(&mac).is_ok()
    }
}
