//! Boot override (Redfish schema ComputerSystem, object `Boot`).

use serde_json::{Map, Value, json};

use crate::{Document, Error, Quirks, Reason};

const TARGET: &str = "BootSourceOverrideTarget";
const ENABLED: &str = "BootSourceOverrideEnabled";
const MODE: &str = "BootSourceOverrideMode";
const URL: &str = "HttpBootUri";

/// Device or URL to boot from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootTarget {
    /// Network boot by PXE (`Pxe`), in either mode.
    Pxe,
    /// Default disk of the machine, the target `Hdd`.
    Disk,
    /// Setup program of the firmware.
    Setup,
    /// CD or DVD, real or virtual.
    Cdrom,
    /// UEFI HTTP boot from this URL.
    Http(String),
}

impl BootTarget {
    fn of(name: &str, url: Option<&str>) -> Option<Self> {
        Some(match name {
            "Pxe" => Self::Pxe,
            "Hdd" => Self::Disk,
            "BiosSetup" => Self::Setup,
            "Cd" | "UsbCd" => Self::Cdrom,
            "UefiHttp" => Self::Http(url.unwrap_or_default().to_owned()),
            _ => return None,
        })
    }

    /// Returns the values of `BootSourceOverrideTarget` for the device, best first.
    fn names(&self, quirks: &Quirks) -> Vec<String> {
        let names: &[&str] = match self {
            Self::Pxe => &["Pxe"],
            Self::Disk => &["Hdd"],
            Self::Setup => &["BiosSetup"],
            Self::Cdrom if !quirks.cd_targets.is_empty() => return quirks.cd_targets.clone(),
            Self::Cdrom => &["Cd", "UsbCd"],
            Self::Http(_) => &["UefiHttp"],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// Boot override to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootRequest {
    /// Device to boot from.
    pub target: BootTarget,
    /// True for every later boot, false for the next boot only.
    pub persistent: bool,
    /// True to boot in UEFI mode, false in legacy BIOS mode.
    pub efi: bool,
}

/// Boot override that a service reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootReading {
    /// Device of the next boot.
    pub target: BootTarget,
    /// True for every later boot, false for the next boot only.
    pub persistent: bool,
    /// True unless the service reports legacy BIOS mode.
    pub efi: bool,
}

impl BootReading {
    /// Reads the override; `None` if the machine uses its own boot order, or a device that this
    /// driver does not set.
    pub fn of(system: &Document) -> Option<Self> {
        let persistent = match system.text(&at(ENABLED))? {
            "Once" => false,
            "Continuous" => true,
            _ => return None,
        };
        // The emulator of sushy-tools writes the word for an absent URL.
        let url = system.text(&at(URL)).filter(|url| *url != "None");
        let target = BootTarget::of(system.text(&at(TARGET))?, url)?;
        let efi = system.text(&at(MODE)) != Some("Legacy");
        Some(Self { target, persistent, efi })
    }
}

fn at(property: &str) -> String {
    format!("/Boot/{property}")
}

/// Returns true if the system may boot by UEFI HTTP from a URL. Services of several vendors list
/// the target without a property for the URL, which the firmware then takes from DHCP or its setup.
pub fn has_http(system: &Document, settings: Option<&Document>) -> bool {
    let targets = allowed(system, settings, TARGET);
    (targets.is_empty() || targets.contains(&"UefiHttp")) && has_url(system, settings)
}

fn has_url(system: &Document, settings: Option<&Document>) -> bool {
    let mut resources = [Some(system), settings].into_iter().flatten();
    resources.any(|resource| resource.json.pointer(&at(URL)).is_some())
}

/// Returns true if the system may keep an override for every boot.
pub fn has_continuous(system: &Document, settings: Option<&Document>) -> bool {
    let enabled = allowed(system, settings, ENABLED);
    enabled.is_empty() || enabled.contains(&"Continuous")
}

/// Returns the values that the service offers: some state them in the settings resource only.
fn allowed<'a>(
    system: &'a Document,
    settings: Option<&'a Document>,
    property: &str,
) -> Vec<&'a str> {
    let pointer = at(&format!("{property}@Redfish.AllowableValues"));
    let own = system.texts(&pointer);
    match settings {
        Some(settings) if own.is_empty() => settings.texts(&pointer),
        _ => own,
    }
}

/// Returns the properties of `Boot` to change. The mode is left out if the system has it already,
/// because some services refuse any change of the mode.
///
/// # Errors
/// The service does not offer the device, takes no URL, or offers no permanent override.
pub fn changes(
    system: &Document,
    settings: Option<&Document>,
    request: &BootRequest,
    quirks: &Quirks,
) -> Result<Map<String, Value>, Error> {
    let names = request.target.names(quirks);
    let targets = allowed(system, settings, TARGET);
    let mut offered =
        names.iter().find(|name| targets.is_empty() || targets.contains(&name.as_str()));
    let Some(target) = offered.take() else {
        return Err(Error::Unsupported {
            what: format!("boot from {}", names.join(" or ")),
            reason: format!("the BMC offers {}", targets.join(", ")),
        });
    };
    if request.persistent && !has_continuous(system, settings) {
        return Err(Error::Unsupported {
            what: "a boot device for every boot".to_owned(),
            reason: "the BMC offers it for the next boot only".to_owned(),
        });
    }
    let enabled = if request.persistent { "Continuous" } else { "Once" };
    let mode = if request.efi { "UEFI" } else { "Legacy" };
    let mut boot = Map::new();
    boot.insert(TARGET.to_owned(), json!(target));
    boot.insert(ENABLED.to_owned(), json!(enabled));
    let current = system.text(&at(MODE));
    let is_needed = current.is_some_and(|current| current != mode || quirks.sends_mode);
    if is_needed || quirks.whole_boot {
        boot.insert(MODE.to_owned(), json!(mode));
    }
    if let BootTarget::Http(url) = &request.target {
        if !has_url(system, settings) {
            return Err(Error::Unsupported {
                what: "HTTP boot from a URL".to_owned(),
                reason: "the BMC has no HttpBootUri".to_owned(),
            });
        }
        boot.insert(URL.to_owned(), json!(url));
    }
    Ok(boot)
}

/// Returns the changes without the property that the service refused: an unchanged `Enabled`, or
/// the mode. `None` if nothing can be left out.
pub fn without_refused(
    boot: &Map<String, Value>,
    system: &Document,
    reason: &Reason,
) -> Option<Map<String, Value>> {
    let enabled = boot.get(ENABLED).and_then(Value::as_str);
    let is_unchanged = enabled.is_some() && enabled == system.text(&at(ENABLED));
    let property = if reason.names(ENABLED) && is_unchanged {
        ENABLED
    } else if boot.contains_key(MODE) && !reason.names(TARGET) {
        MODE
    } else {
        return None;
    };
    let mut fewer = boot.clone();
    fewer.remove(property)?;
    Some(fewer)
}

/// Splits the changes into those of the settings resource (`@Redfish.Settings`), which has a
/// property of the same name, and those of the system itself.
pub fn split(
    boot: Map<String, Value>,
    settings: Option<&Document>,
) -> (Map<String, Value>, Map<String, Value>) {
    let has = |name: &str| settings.is_some_and(|it| it.json.pointer(&at(name)).is_some());
    boot.into_iter().partition(|(name, _)| has(name))
}

/// Returns the path of the resource that takes the settings of the next boot.
pub fn settings(system: &Document) -> Option<String> {
    system.link("/@Redfish.Settings/SettingsObject")
}

/// Returns the first difference between the changes and what a resource reports, as requested and
/// found setting; `None` if the resource has all changes. The duration of the override is not
/// compared: some services report `Continuous` for every override. A target that the resource does
/// not report at all is not compared either.
pub fn difference(boot: &Map<String, Value>, system: &Document) -> Option<(String, String)> {
    let mut pairs = boot.iter().filter(|(name, _)| [TARGET, URL].contains(&name.as_str()));
    let (name, value) = pairs.find(|(name, value)| {
        system.json.pointer(&at(name)).is_some_and(|found| found != *value)
    })?;
    let found = system.json.pointer(&at(name)).map(Value::to_string).unwrap_or_default();
    Some((format!("{name} {value}"), found))
}

#[cfg(test)]
mod tests;
