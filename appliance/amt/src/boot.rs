//! Boot device of the next boot: names, capabilities, and the instance of AMT_BootSettingData to
//! write. AMT has no permanent boot device.

pub mod https;

use crate::Error;
use crate::message::{Element, Malformed};

use https::HttpsUrl;

/// Boot device of the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootTarget {
    /// Network boot by PXE.
    Pxe,
    /// First disk of the machine.
    Disk,
    /// First disk, with the operating system in safe mode.
    SafeMode,
    /// First drive for CD or DVD.
    Cdrom,
    /// Setup program of the firmware.
    Setup,
    /// Program from a URL by UEFI HTTPS boot.
    Https,
}

impl BootTarget {
    /// Returns the key of the CIM_BootSourceSetting; `None` if the boot has no source.
    pub fn source(self) -> Option<&'static str> {
        match self {
            Self::Pxe => Some("Intel(r) AMT: Force PXE Boot"),
            Self::Disk | Self::SafeMode => Some("Intel(r) AMT: Force Hard-drive Boot"),
            Self::Cdrom => Some("Intel(r) AMT: Force CD/DVD Boot"),
            Self::Https => Some("Intel(r) AMT: Force OCR UEFI HTTPS Boot"),
            Self::Setup => None,
        }
    }

    /// Returns the flag of AMT_BootCapabilities, and the function in words.
    fn capability(self) -> (&'static str, &'static str) {
        match self {
            Self::Pxe => ("ForcePXEBoot", "boot from the network"),
            Self::Disk => ("ForceHardDriveBoot", "boot from the disk"),
            Self::SafeMode => ("ForceHardDriveSafeModeBoot", "boot in safe mode"),
            Self::Cdrom => ("ForceCDorDVDBoot", "boot from CD or DVD"),
            Self::Setup => ("BIOSSetup", "boot to the firmware setup"),
            Self::Https => ("ForceUEFIHTTPSBoot", "UEFI HTTPS boot"),
        }
    }

    /// Checks that the firmware can boot from the device. A missing flag means false.
    ///
    /// # Errors
    /// The firmware cannot boot from the device, or the flag is not valid.
    pub fn check(self, capabilities: &Element) -> Result<Result<(), Error>, Malformed> {
        let (_, what) = self.capability();
        Ok(self.offer(capabilities)?.map_err(|reason| Error::Unsupported { what, reason }))
    }

    /// Returns the reason, as a clause, if the firmware cannot boot from the device.
    fn offer(self, capabilities: &Element) -> Result<Result<(), &'static str>, Malformed> {
        let (flag, _) = self.capability();
        let is_offered = capabilities.flag(flag)?.unwrap_or(false);
        let reason = "the firmware of this machine does not offer it (AMT_BootCapabilities)";
        Ok(if is_offered { Ok(()) } else { Err(reason) })
    }
}

/// Value of a field of AMT_BootSettingData in a Put.
enum Field {
    /// Same value as read.
    Same,
    /// Value that switches the option off.
    Reset(&'static str),
    /// Truth value that depends on the boot device.
    When(BootTarget),
    /// True if the firmware must show its own screen on the serial console.
    Console,
    /// Parameters of UEFI HTTPS boot. The firmware does not report this field.
    Parameters,
    /// Number of the parameters of UEFI HTTPS boot.
    ParameterCount,
}

/// Fields of a Put, in the order that the firmware accepts. Other fields, such as
/// `BIOSLastStatus` and `UEFIHTTPSBootEnabled`, are read-only, and newer firmware refuses them.
/// A field that the firmware did not report is left out, except the parameters of a boot by HTTPS.
const FIELDS: [(&str, Field); 25] = [
    ("BIOSPause", Field::Reset("false")),
    ("BIOSSetup", Field::When(BootTarget::Setup)),
    ("BootMediaIndex", Field::Reset("0")),
    ("ConfigurationDataReset", Field::Reset("false")),
    ("ElementName", Field::Same),
    ("EnforceSecureBoot", Field::Same),
    ("FirmwareVerbosity", Field::Reset("0")),
    ("ForcedProgressEvents", Field::When(BootTarget::Https)),
    ("IDERBootDevice", Field::Reset("0")),
    ("InstanceID", Field::Same),
    ("LockKeyboard", Field::Reset("false")),
    ("LockPowerButton", Field::Reset("false")),
    ("LockResetButton", Field::Reset("false")),
    ("LockSleepButton", Field::Reset("false")),
    ("OwningEntity", Field::Same),
    ("PlatformErase", Field::Reset("false")),
    ("RSEPassword", Field::Reset("")),
    ("ReflashBIOS", Field::Reset("false")),
    ("SecureErase", Field::Reset("false")),
    // The order of Intel's client.
    ("UefiBootParametersArray", Field::Parameters),
    ("UefiBootNumberOfParams", Field::ParameterCount),
    ("UseIDER", Field::Reset("false")),
    ("UseSOL", Field::Console),
    ("UseSafeMode", Field::When(BootTarget::SafeMode)),
    ("UserPasswordBypass", Field::Reset("false")),
];

/// Returns the fields of AMT_BootSettingData for one boot from `target`, with all options of
/// earlier boots switched off. With `console`, the firmware shows its screen by serial-over-LAN.
pub fn settings(target: BootTarget, read: &Element, console: bool) -> Vec<(String, String)> {
    fields(target, None, read, console)
}

/// Returns the fields of AMT_BootSettingData for one boot from `url`. The screen is not shown on
/// the serial console, because AMT does not combine both.
pub fn https_settings(url: &HttpsUrl, read: &Element) -> Vec<(String, String)> {
    fields(BootTarget::Https, Some(url), read, false)
}

fn fields(
    target: BootTarget,
    url: Option<&HttpsUrl>,
    read: &Element,
    console: bool,
) -> Vec<(String, String)> {
    let (parameters, count) = url.map(HttpsUrl::parameters).unzip();
    let value = |name: &str, field: &Field| {
        let reported = read.child(name);
        match field {
            Field::Parameters => parameters.clone(),
            Field::ParameterCount if count.is_none() && reported.is_none() => None,
            Field::ParameterCount => Some(count.unwrap_or(0).to_string()),
            Field::Same => reported.map(|child| child.text.clone()),
            Field::Reset(value) => reported.map(|_| (*value).to_owned()),
            Field::When(wanted) => reported.map(|_| (*wanted == target).to_string()),
            Field::Console => reported.map(|_| console.to_string()),
        }
    };
    let written = FIELDS.iter().filter_map(|(name, field)| Some((*name, value(name, field)?)));
    written.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the boot device of the next boot. AMT reports only the firmware setup; `requested` is
/// the device that the driver has set. `OptionsCleared` shows that a boot has used the options up.
///
/// # Errors
/// A flag is not a truth value.
pub fn next(
    requested: Option<BootTarget>,
    read: &Element,
) -> Result<Option<BootTarget>, Malformed> {
    if read.flag("OptionsCleared")?.unwrap_or(false) {
        return Ok(None);
    }
    if read.flag("BIOSSetup")?.unwrap_or(false) {
        return Ok(Some(BootTarget::Setup));
    }
    Ok(requested.filter(|target| *target != BootTarget::Setup))
}

#[cfg(test)]
mod tests;
