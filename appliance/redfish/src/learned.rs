//! Functions of a service, as the last contact has shown.

/// Functions that a service offers for a machine, by the last contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// Values of `ResetType`; empty if the service does not state them.
    pub reset_types: Vec<String>,
    /// True if the boot device can be set for every boot.
    pub boot_always: bool,
    /// True if the machine can boot by UEFI HTTP from a URL.
    pub http_boot: bool,
    /// True if there is virtual media.
    pub media: bool,
    /// True if there is an identification LED.
    pub identify: bool,
    /// True if there are sensors.
    pub sensors: bool,
    /// True if there is an event log.
    pub events: bool,
}
