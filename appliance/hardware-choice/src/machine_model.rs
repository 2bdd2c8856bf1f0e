//! Manufacturer and plan of a machine: from the labels `manufacturer` and `plan` of its Hardware,
//! or else from the SMBIOS data in the last report of its agent.

use api::infrastructure::HardwareSelector;
use api::tinkerbell::{AGENT_ATTRIBUTES, Hardware};
use serde::Deserialize;

use super::Refusal;

/// Label of a Hardware with its manufacturer.
const MANUFACTURER: &str = "manufacturer";
/// Label of a Hardware with its plan.
const PLAN: &str = "plan";
/// Words at the end of a company name that do not belong to the usual short name.
const LEGAL_FORMS: [&str; 10] =
    ["ag", "co", "company", "corp", "corporation", "gmbh", "inc", "incorporated", "limited", "ltd"];
/// Short names of manufacturers, and the forms of their names in SMBIOS data: lower case, words
/// without punctuation, without legal forms at the end.
const ALIASES: [(&str, &[&str]); 14] = [
    ("asrock rack", &["asrockrack"]),
    ("asus", &["asustek", "asustek computer"]),
    ("beelink", &["azw"]),
    ("dell", &["dell computer", "dell emc"]),
    ("fujitsu", &["fujitsu siemens computers", "fujitsu client computing"]),
    ("gigabyte", &["gigabyte technology", "giga byte technology"]),
    ("hp", &["hewlett packard"]),
    ("hpe", &["hewlett packard enterprise"]),
    ("intel", &["intel client systems"]),
    ("lenovo", &["lnvo"]),
    ("minisforum", &["micro computer hk tech"]),
    ("msi", &["micro star", "micro star international"]),
    ("raspberry pi", &["raspberry pi foundation", "raspberry pi trading"]),
    ("supermicro", &["super micro", "super micro computer"]),
];
/// Values of boards whose maker did not set the field, in lower case.
const PLACEHOLDERS: [&str; 14] = [
    "base board manufacturer",
    "default string",
    "empty",
    "n/a",
    "none",
    "not applicable",
    "not specified",
    "o.e.m.",
    "oem",
    "product name",
    "system manufacturer",
    "system product name",
    "to be filled by o.e.m.",
    "unknown",
];

/// Part of an agent's attributes (Tinkerbell's schema). Other attributes are skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attributes {
    product: Part,
    baseboard: Part,
    chassis: Part,
}

/// Maker and name of one part of a machine: a product has a `name`, a board a `product`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    vendor: Option<String>,
    #[serde(alias = "product")]
    name: Option<String>,
}

/// Manufacturer and plan of a machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MachineModel {
    /// Manufacturer from the label, else from SMBIOS data.
    manufacturer: Option<String>,
    /// Plan from the label.
    plan: Option<String>,
    /// Plan slug of the Equinix schema.
    plan_slug: Option<String>,
    /// Product name from SMBIOS data.
    product: Option<String>,
}

impl MachineModel {
    /// Reads the model of a machine, as far as `selector` needs it. Skips the parsing of the
    /// report if labels are sufficient.
    pub fn of(host: &Hardware, selector: &HardwareSelector) -> Self {
        let label = |key| host.metadata.labels.get(key).filter(|it| !it.is_empty()).cloned();
        let (mut manufacturer, plan) = (label(MANUFACTURER), label(PLAN));
        let needs_manufacturer = !selector.manufacturer.is_empty() && manufacturer.is_none();
        let needs_product = !selector.plan.is_empty() && plan.is_none();
        if !needs_manufacturer && !needs_product {
            return Self { manufacturer, plan, ..Self::default() };
        }
        let report = host.metadata.annotations.get(AGENT_ATTRIBUTES);
        let read = |text: &String| serde_json::from_str(text).ok();
        let Attributes { product, baseboard, chassis } = report.and_then(read).unwrap_or_default();
        // The maker of a kit sets only the fields of the board.
        let vendors = [&product.vendor, &baseboard.vendor, &chassis.vendor];
        manufacturer = manufacturer.or_else(|| vendors.into_iter().find_map(known));
        let facility = host.spec.metadata.as_ref().map(|metadata| &metadata.facility);
        let plan_slug = facility.map(|it| it.plan_slug.clone()).filter(|it| !it.is_empty());
        let product = [&product.name, &baseboard.name].into_iter().find_map(known);
        Self { manufacturer, plan, plan_slug, product }
    }

    /// Checks the model against the selector.
    pub fn check(&self, selector: &HardwareSelector) -> Result<(), Refusal> {
        let manufacturer = self.manufacturer.as_deref().unwrap_or_default();
        let wanted = &selector.manufacturer;
        if !wanted.is_empty() && short_name(wanted) != short_name(manufacturer) {
            return Err(Refusal::Manufacturer(manufacturer.to_owned()));
        }
        if !selector.plan.is_empty() && !self.has_plan(&selector.plan) {
            let plan = [&self.plan, &self.product, &self.plan_slug].into_iter().flatten().next();
            return Err(Refusal::Plan(plan.cloned().unwrap_or_default()));
        }
        Ok(())
    }

    /// Returns true if the label equals `plan`. Without a label, the slug must equal `plan` or the
    /// product name must start with `plan`, ignoring case and the maker at the start of the name.
    fn has_plan(&self, plan: &str) -> bool {
        let plan = plan.trim().to_lowercase();
        if let Some(label) = &self.plan {
            return label.to_lowercase() == plan;
        }
        let is_slug = self.plan_slug.as_ref().is_some_and(|slug| slug.to_lowercase() == plan);
        let product = self.product.as_deref().unwrap_or_default().to_lowercase();
        let maker = self.manufacturer.as_deref().map(short_name).unwrap_or_default();
        // The product names of HP begin with the maker: HP EliteDesk 800 G4.
        let is_named = |(first, rest): (&str, &str)| {
            short_name(first) == maker && rest.trim_start().starts_with(&plan)
        };
        is_slug || product.starts_with(&plan) || product.split_once(' ').is_some_and(is_named)
    }
}

fn known(field: &Option<String>) -> Option<String> {
    let text = field.as_deref()?.trim();
    let is_known = !text.is_empty() && !PLACEHOLDERS.contains(&text.to_lowercase().as_str());
    is_known.then(|| text.to_owned())
}

/// Returns the short name of a manufacturer in lower case, for a comparison.
fn short_name(manufacturer: &str) -> String {
    let text = manufacturer.to_lowercase().replace("(r)", " ").replace("(tm)", " ");
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<&str> = words.collect();
    while words.len() > 1 && words.last().is_some_and(|word| LEGAL_FORMS.contains(word)) {
        words.pop();
    }
    let name = words.join(" ");
    let alias = ALIASES.iter().find(|(_, forms)| forms.contains(&name.as_str()));
    alias.map_or(name, |(short, _)| (*short).to_owned())
}

#[cfg(test)]
mod tests;
