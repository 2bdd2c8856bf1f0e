//! Which known machine a stranger may be: a network card is replaced more often than a machine, so
//! more than the MAC is asked.
//!
//! Nothing here changes a record: the answer is for its owner.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::meta::ObjectKey;
use crate::tinkerbell::Hardware;

/// Points that make one machine of two.
const SAME: u32 = 60;
/// By how much the likeliest must lead.
const LEAD: u32 = 30;
/// What each thing that is the same is worth. A TPM's certificate is its board's alone, and no two
/// have one.
const ENDORSEMENT: u32 = 100;
const UUID: u32 = 60;
const PRODUCT_SERIAL: u32 = 50;
const BOARD_SERIAL: u32 = 50;
const CHASSIS_SERIAL: u32 = 30;
/// Of each disk; two of them are enough.
const DISK: u32 = 30;
/// Of each interface other than the one it came by.
const MAC: u32 = 60;
/// Shortest serial number that is believed.
const SERIAL_CHARS: usize = 4;
/// What manufacturers write where a serial number belongs, in lower case.
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

/// What a machine can be known by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traits {
    /// SHA-256 of the certificate of its TPM's endorsement key.
    pub endorsement: Option<String>,
    /// SMBIOS' UUID.
    pub uuid: Option<String>,
    /// Serial number of the product.
    pub product: Option<String>,
    /// Serial number of the board.
    pub board: Option<String>,
    /// Serial number of the chassis.
    pub chassis: Option<String>,
    /// Serial numbers of disks; a name where there is none.
    pub disks: BTreeSet<String>,
    /// MACs, lower case with colons.
    pub macs: BTreeSet<String>,
}

impl Traits {
    /// From what an agent says: Tinkerbell's attributes and our inventory, as they are stored.
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

    /// Of a known machine: what its agent said last, and its record.
    pub fn of_hardware(hardware: &Hardware, attributes: &str, inventory: &str) -> Self {
        let json = |key: &str| {
            let text = hardware.metadata.annotations.get(key);
            text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
        };
        let mut traits = Self::of(&json(attributes), &json(inventory));
        traits.macs.extend(hardware.spec.macs().map(|mac| mac.to_string()));
        traits
    }

    /// How much another is this one: points, and what is the same, as phrases.
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

/// A serial number that tells one thing from another, in lower case.
fn serial(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let differs =
        |first: char| text.chars().any(|char| char != first && !matches!(char, '-' | ':' | '.'));
    let is_one = text.chars().count() >= SERIAL_CHARS
        && !NO_SERIALS.contains(&text.as_str())
        && text.chars().next().is_some_and(differs);
    is_one.then_some(text)
}

/// A UUID that is one: neither all zeros nor all ones, nor the sample of a board's manufacturer.
fn uuid(text: &str) -> Option<String> {
    const SAMPLE: &str = "03000200-0400-0500-0006-000700080009";
    serial(text).filter(|text| text != SAMPLE)
}

/// Who a stranger is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody who is known.
    Nobody,
    /// This machine, by what is the same.
    One(ObjectKey, Vec<String>),
    /// One of these; it does not show which.
    Several(Vec<ObjectKey>),
}

/// Who a stranger is, of all that are known.
pub fn who<'a>(
    stranger: &Traits,
    known: impl IntoIterator<Item = (&'a ObjectKey, &'a Traits)>,
) -> Verdict {
    let mut likely = Vec::new();
    for (key, traits) in known {
        let (points, same) = traits.likeness(stranger);
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
