//! Differences of vendors from the standard, as data (`quirks.json`). What a service states about
//! itself, such as allowable values, is read from the service and is not in the table.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::{Document, Reason};

/// Table of vendors in the form of JSON.
const TABLE: &str = include_str!("quirks.json");
/// Message identifiers of any vendor after which the same request may succeed later.
const BUSY: [&str; 2] = ["ServiceTemporarilyUnavailable", "ServiceInUnknownState"];

static VENDORS: LazyLock<BTreeMap<String, Quirks>> =
    LazyLock::new(|| serde_json::from_str(TABLE).unwrap_or_default());

/// Fields of a request that inserts virtual media.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MediaForm {
    /// `Image`, `Inserted` and `WriteProtected`.
    #[default]
    Full,
    /// `Image` only: the service refuses other fields.
    ImageOnly,
    /// Also `TransferMethod` and `TransferProtocolType`, which the service requires.
    Transfer,
}

/// Differences of one vendor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Quirks {
    /// Beginnings of the vendor's name, of its keys of `Oem` and of its manufacturer.
    pub names: Vec<String>,
    /// Fields of a request that inserts virtual media.
    pub media: MediaForm,
    /// Beginnings of the identifiers of the slots that take a URL; empty for any slot.
    pub media_slots: Vec<String>,
    /// True if the LED is lit while it identifies nothing.
    pub steady_led: bool,
    /// True if the boot mode must be sent with each boot target.
    pub sends_mode: bool,
    /// True if the service requires target, enabled and mode in each change.
    pub whole_boot: bool,
    /// Names of the boot target for CD, best first; empty for the standard's.
    pub cd_targets: Vec<String>,
    /// Message identifiers after which the same request may succeed later.
    pub busy: Vec<String>,
}

impl Quirks {
    /// Returns the differences of the service's vendor, by the root resource and the system. A
    /// vendor that is not in the table has none.
    pub fn of(root: &Document, system: Option<&Document>) -> Self {
        Self::vendor(root, system).and_then(|name| VENDORS.get(name)).cloned().unwrap_or_default()
    }

    /// Returns the name of the vendor in the table: by `Vendor`, else by the keys of `Oem`, else by
    /// the manufacturer of the system.
    pub fn vendor(root: &Document, system: Option<&Document>) -> Option<&'static str> {
        let keys = root.json.pointer("/Oem").and_then(serde_json::Value::as_object);
        let keys = keys.map(|keys| keys.keys().map(String::as_str).collect::<Vec<_>>());
        let words = root
            .text("/Vendor")
            .into_iter()
            .chain(keys.unwrap_or_default())
            .chain(system.and_then(|system| system.text("/Manufacturer")));
        let mut found = words.filter_map(|word| {
            let is_vendor = |(_, quirks): &(&String, &Quirks)| {
                quirks.names.iter().any(|name| word.starts_with(name.as_str()))
            };
            VENDORS.iter().find(is_vendor).map(|(name, _)| name.as_str())
        });
        found.next()
    }

    /// Returns true if the reason says that the same request may succeed later.
    pub fn is_busy(&self, reason: &Reason) -> bool {
        let ids = BUSY.into_iter().chain(self.busy.iter().map(String::as_str));
        ids.into_iter().any(|id| reason.names(id))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MediaForm, Quirks, VENDORS};
    use crate::{Document, Reason};

    fn document(json: serde_json::Value) -> Document {
        Document { path: "/".into(), etag: None, json }
    }

    #[test]
    fn the_vendor_is_found_by_what_the_service_says() {
        assert_eq!(VENDORS.len(), 6, "the table is not valid");
        let system = document(json!({ "Manufacturer": "Supermicro" }));
        for (root, expected) in [
            (json!({ "Vendor": "HPE" }), Some("HPE")),
            (json!({ "Vendor": "", "Oem": { "Dell": {} } }), Some("Dell")),
            (json!({ "Vendor": "Contoso", "Oem": { "Ami": {} } }), Some("AMI")),
            (json!({}), Some("Supermicro")),
            (json!({ "Oem": [] }), Some("Supermicro")),
        ] {
            assert_eq!(Quirks::vendor(&document(root.clone()), Some(&system)), expected, "{root}");
        }
        assert_eq!(Quirks::of(&document(json!({})), None), Quirks::default());
        let supermicro = Quirks::of(&document(json!({})), Some(&system));
        assert_eq!((supermicro.media, supermicro.sends_mode), (MediaForm::ImageOnly, true));
    }

    #[test]
    fn a_busy_service_is_recognized_by_its_message() {
        let dell = Quirks::of(&document(json!({ "Vendor": "Dell Inc." })), None);
        let reason = |id: &str| {
            Reason::of(&json!({ "error": { "@Message.ExtendedInfo": [{ "MessageId": id }] } }))
        };
        assert!(dell.is_busy(&reason("IDRAC.2.8.SYS518")));
        assert!(!dell.is_busy(&reason("IDRAC.2.8.SYS428")));
        assert!(dell.is_busy(&reason("Base.1.8.ServiceTemporarilyUnavailable")));
    }
}
