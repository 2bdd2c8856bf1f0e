//! UEFI HTTPS boot: parameters in AMT_BootSettingData, read apart from our client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Firmware;
use crate::HttpsBoot;

/// Source of the boot.
pub const HTTPS_SOURCE: &str = "Intel(r) AMT: Force OCR UEFI HTTPS Boot";
/// Types of parameters with the maximum bytes of their values, as in Intel's client.
const LIMITS: [(u16, usize); 16] = [
    (1, 300),
    (2, 300),
    (3, 2),
    (4, 32),
    (5, 48),
    (6, 64),
    (10, 50),
    (20, 1),
    (21, 256),
    (22, 2),
    (23, 32),
    (24, 48),
    (25, 64),
    (30, 2),
    (40, 16),
    (41, 16),
];

/// Return values of AMT for a value that is not a certificate, and for a duplicate.
const INVALID: u32 = 36;
const DUPLICATE: u32 = 2058;

impl Firmware {
    /// Stores a trusted root certificate.
    pub(super) fn add_root(&mut self, blob: String) -> u32 {
        if STANDARD.decode(&blob).is_ok_and(|bytes| bytes.first() == Some(&0x30)) {
            if self.roots.contains(&blob) {
                return DUPLICATE;
            }
            self.roots.push(blob);
            return 0;
        }
        INVALID
    }

    /// Fields of AMT_BootSettingData, with the switch of the firmware setup.
    pub fn boot_settings(&self) -> Vec<(String, String)> {
        let mut settings = self.boot_settings.clone();
        let is_enabled = self.behavior.https_boot == HttpsBoot::Enabled;
        for (name, value) in &mut settings {
            if name == "UEFIHTTPSBootEnabled" {
                *value = is_enabled.to_string();
            }
        }
        settings
    }

    /// Reads the URL in the fields of a Put; `None` without parameters. The engine accepts
    /// parameters over TLS only, and if the firmware setup permits the boot.
    pub(super) fn requested_url(&self, fields: &[(String, String)]) -> Result<Option<String>, ()> {
        let text = |name: &str| {
            fields.iter().find(|(field, _)| field == name).map_or("", |(_, text)| text.as_str())
        };
        let array = text("UefiBootParametersArray");
        let count: usize = match text("UefiBootNumberOfParams") {
            "" => 0,
            number => number.parse().map_err(|_| ())?,
        };
        if array.is_empty() {
            return if count == 0 { Ok(None) } else { Err(()) };
        }
        if !self.has_tls || self.behavior.https_boot != HttpsBoot::Enabled {
            return Err(());
        }
        let parameters = parameters(&STANDARD.decode(array).map_err(|_| ())?).ok_or(())?;
        let value = |kind| parameters.iter().find(|(it, _)| *it == kind).map(|(_, value)| value);
        let url = value(1).and_then(|url| String::from_utf8(url.clone()).ok()).ok_or(())?;
        let is_synchronized = value(20).is_none_or(|value| *value == [0] || *value == [1]);
        let is_valid = parameters.len() == count
            && is_synchronized
            && url.starts_with("https://")
            && (value(2).is_none() || value(3).is_some());
        if is_valid { Ok(Some(url)) } else { Err(()) }
    }
}

/// Reads records: vendor and type of 16 bits, length of 32 bits, all little-endian, and the value.
fn parameters(mut bytes: &[u8]) -> Option<Vec<(u16, Vec<u8>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(8)?;
        let (vendor, kind) = (&head[..2], u16::from_le_bytes([head[2], head[3]]));
        let length = u32::from_le_bytes(head[4..].try_into().ok()?) as usize;
        let (_, limit) = LIMITS.iter().find(|(known, _)| *known == kind)?;
        let (value, rest) = rest.split_at_checked(length)?;
        if vendor != 0x8086_u16.to_le_bytes() || length > *limit {
            return None;
        }
        found.push((kind, value.to_vec()));
        bytes = rest;
    }
    Some(found)
}
