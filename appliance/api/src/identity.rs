//! Matching of an unknown machine to known machines. Owners replace NICs more often than machines,
//! so the comparison uses more identifiers than the MAC.
//!
//! This module changes no record: the result is a hint for the machine's owner.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::meta::ObjectKey;
use crate::tinkerbell::Hardware;

/// Minimum score to treat two records as the same machine.
const SAME: u32 = 60;
/// Minimum lead of the best match over the second, in points.
const LEAD: u32 = 30;
/// Points for an equal identifier. The endorsement certificate of a TPM is unique to its board.
const ENDORSEMENT: u32 = 100;
const UUID: u32 = 60;
const PRODUCT_SERIAL: u32 = 50;
const BOARD_SERIAL: u32 = 50;
const CHASSIS_SERIAL: u32 = 30;
/// Points for each equal disk; two equal disks are sufficient.
const DISK: u32 = 30;
/// Points for each equal MAC address.
const MAC: u32 = 60;
/// Minimum length in characters of a serial number that is used for matching.
const SERIAL_CHARS: usize = 4;
/// Placeholders of manufacturers for a missing serial number, in lower case.
const NO_SERIALS: [&str; 14] = [
    "to be filled by o.e.m.",
    "default string",
    "not specified",
    "not applicable",
    "not available",
    "system serial number",
    "base board serial number",
    "chassis serial number",
    "serial number",
    "123456789",
    "0123456789",
    "unknown",
    "invalid",
    "none",
];

/// Identifiers of a machine for the comparison with other machines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traits {
    /// SHA-256 of the certificate of the TPM's endorsement key.
    pub endorsement: Option<String>,
    /// System UUID from SMBIOS.
    pub uuid: Option<String>,
    /// Serial number of the product (SMBIOS).
    pub product: Option<String>,
    /// Serial number of the board (SMBIOS).
    pub board: Option<String>,
    /// Serial number of the chassis (SMBIOS).
    pub chassis: Option<String>,
    /// Serial numbers of disks.
    pub disks: BTreeSet<String>,
    /// MAC addresses, lower case with colons.
    pub macs: BTreeSet<String>,
}

impl Traits {
    /// Reads the identifiers from an agent's stored report: attributes in Tinkerbell's schema, and
    /// the inventory of Tinbox.
    pub fn of(attributes: &Value, inventory: &Value) -> Self {
        let text = |path: &str| attributes.pointer(path).and_then(Value::as_str).and_then(serial);
        let all = |list: &Value, field: &str| -> Vec<String> {
            let items = list.as_array().into_iter().flatten();
            items.filter_map(|item| serial(item[field].as_str()?)).collect()
        };
        let mut disks = all(&attributes["blockDevices"], "serialNumber");
        disks.extend(all(&inventory["disks"], "serial"));
        Self {
            endorsement: inventory["tpm"]["endorsement"].as_str().and_then(serial),
            uuid: inventory["uuid"].as_str().and_then(uuid),
            product: text("/product/serialNumber"),
            board: text("/baseboard/serialNumber"),
            chassis: text("/chassis/serial"),
            disks: disks.into_iter().collect(),
            macs: all(&attributes["networkInterfaces"], "mac").into_iter().collect(),
        }
    }

    /// Reads the identifiers of a known machine from its Hardware and its last report. `attributes`
    /// and `inventory` are the keys of the annotations with the report.
    pub fn of_hardware(hardware: &Hardware, attributes: &str, inventory: &str) -> Self {
        let json = |key: &str| {
            let text = hardware.metadata.annotations.get(key);
            text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
        };
        let mut traits = Self::of(&json(attributes), &json(inventory));
        traits.macs.extend(hardware.spec.macs().map(|mac| mac.to_string()));
        traits
    }

    /// Returns the score of the match with another machine, and a phrase for each equal identifier.
    fn likeness(&self, other: &Self) -> (u32, Vec<String>) {
        let (mut points, mut same) = (0, Vec::new());
        let mut one = |worth: u32, what: &str, a: &Option<String>, b: &Option<String>| {
            if let (Some(a), Some(b)) = (a, b)
                && a == b
            {
                points += worth;
                same.push(format!("{what} {a}"));
            }
        };
        one(ENDORSEMENT, "TPM", &self.endorsement, &other.endorsement);
        one(UUID, "UUID", &self.uuid, &other.uuid);
        one(PRODUCT_SERIAL, "serial number", &self.product, &other.product);
        one(BOARD_SERIAL, "board", &self.board, &other.board);
        one(CHASSIS_SERIAL, "chassis", &self.chassis, &other.chassis);
        for disk in self.disks.intersection(&other.disks) {
            points += DISK;
            same.push(format!("disk {disk}"));
        }
        for mac in self.macs.intersection(&other.macs) {
            points += MAC;
            same.push(format!("MAC {mac}"));
        }
        (points, same)
    }
}

/// Returns the serial number in lower case; `None` for a placeholder, for fewer than
/// [`SERIAL_CHARS`] characters, or for one repeated character.
fn serial(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let differs =
        |first: char| text.chars().any(|char| char != first && !matches!(char, '-' | ':' | '.'));
    let is_one = text.chars().count() >= SERIAL_CHARS
        && !NO_SERIALS.contains(&text.as_str())
        && text.chars().next().is_some_and(differs);
    is_one.then_some(text)
}

/// Returns the UUID in lower case; `None` for all zeros, all ones, or a known sample value.
fn uuid(text: &str) -> Option<String> {
    const SAMPLE: &str = "03000200-0400-0500-0006-000700080009";
    serial(text).filter(|text| text != SAMPLE)
}

/// Result of the comparison in [`who`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No known machine matches.
    Nobody,
    /// Exactly one machine matches; the phrases name the equal identifiers, such as `UUID …`.
    One(ObjectKey, Vec<String>),
    /// Several machines match, and the best has no lead of 30 points over the second.
    Several(Vec<ObjectKey>),
}

/// Compares an unknown machine with all known machines.
pub fn who<'a>(
    unknown: &Traits,
    known: impl IntoIterator<Item = (&'a ObjectKey, &'a Traits)>,
) -> Verdict {
    let mut likely = Vec::new();
    for (key, traits) in known {
        let (points, same) = traits.likeness(unknown);
        if points >= LEAD {
            likely.push((points, key, same));
        }
    }
    likely.sort_by(|(a, first, _), (b, second, _)| b.cmp(a).then_with(|| first.cmp(second)));
    let Some((best, _, _)) = likely.first() else { return Verdict::Nobody };
    let best = *best;
    if best < SAME {
        return Verdict::Nobody;
    }
    likely.retain(|(points, _, _)| points + LEAD > best);
    let mut likely = likely.into_iter().map(|(_, key, same)| (key.clone(), same));
    match (likely.next(), likely.len()) {
        (Some((key, same)), 0) => Verdict::One(key, same),
        (first, _) => Verdict::Several(first.into_iter().chain(likely).map(|it| it.0).collect()),
    }
}

#[cfg(test)]
mod tests;
