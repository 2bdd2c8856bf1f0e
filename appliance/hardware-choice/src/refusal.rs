//! Reasons why a Hardware cannot be used for a machine.

use std::fmt;

use api::infrastructure::{OWNER_NAME, OWNER_NAMESPACE};
use api::meta::ObjectKey;

/// Reason why a Hardware cannot be used. The text continues a sentence that begins with the name of
/// the Hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The Hardware is being deleted.
    Deleted,
    /// Another machine owns the Hardware.
    InUse {
        /// TinkerbellMachine that owns the Hardware.
        machine: ObjectKey,
        /// Name of its management cluster; `None` for the box.
        cluster: Option<String>,
    },
    /// The Hardware lacks the labels with which CAPT marks the Hardware of a machine.
    Unlabeled,
    /// The Hardware was provisioned and has no owner.
    Provisioned,
    /// The Hardware has no network interface.
    NoInterface,
    /// The first interface has no MAC address.
    NoMac,
    /// The Hardware has no disk to install on: neither a path nor a hint.
    NoDisk,
    /// The manufacturer differs from the request; empty if unknown.
    Manufacturer(String),
    /// The plan or product name differs from the request; empty if unknown.
    Plan(String),
    /// A label of the hardware selector is missing or has another value.
    Label(String),
    /// No required term of the hardware affinity matches.
    Affinity,
    /// The failure domain differs from the request.
    FailureDomain(String),
}

impl Refusal {
    /// Returns the machine-readable reason in upper camel case. The reason is not one of an Event.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Deleted => "Deleted",
            Self::InUse { .. } => "InUse",
            Self::Unlabeled => "Unlabeled",
            Self::Provisioned => "Provisioned",
            Self::NoInterface => "NoInterface",
            Self::NoMac => "NoMAC",
            Self::NoDisk => "NoDisk",
            Self::Manufacturer(_) => "OtherManufacturer",
            Self::Plan(_) => "OtherPlan",
            Self::Label(_) => "OtherLabels",
            Self::Affinity => "OtherAffinity",
            Self::FailureDomain(_) => "OtherFailureDomain",
        }
    }

    /// Returns the predicate for `count` Hardware with this reason, and the value in which one
    /// Hardware differs from another with this reason. An empty value means none.
    pub(super) fn group(&self, count: usize) -> (&'static str, &str) {
        let number = |one, many| if count == 1 { one } else { many };
        match self {
            Self::Deleted => (number("is being deleted", "are being deleted"), ""),
            Self::InUse { .. } => (number("is in use", "are in use"), ""),
            Self::Unlabeled => {
                (number("lacks the labels of its machine", "lack the labels of their machine"), "")
            }
            Self::Provisioned => {
                (number("is provisioned without an owner", "are provisioned without an owner"), "")
            }
            Self::NoInterface => (number("has no interface", "have no interface"), ""),
            Self::NoMac => (number("has no MAC address", "have no MAC address"), ""),
            Self::NoDisk => (number("has no disk", "have no disk"), ""),
            Self::Manufacturer(value) => {
                (number("has another manufacturer", "have another manufacturer"), or_unknown(value))
            }
            Self::Plan(value) => {
                (number("has another plan", "have another plan"), or_unknown(value))
            }
            Self::Label(key) => (number("lacks a label", "lack a label"), key),
            Self::Affinity => {
                (number("does not match hardwareAffinity", "do not match hardwareAffinity"), "")
            }
            Self::FailureDomain(value) => {
                (number("is in another failure domain", "are in another failure domain"), value)
            }
        }
    }
}

fn or_unknown(value: &str) -> &str {
    if value.is_empty() { "unknown" } else { value }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (predicate, value) = self.group(1);
        match self {
            Self::InUse { machine, cluster } => {
                write!(f, "{predicate} by the machine {}", status::plain(&machine.to_string()))?;
                let cluster = cluster.as_deref().map(status::plain);
                cluster.map_or(Ok(()), |it| write!(f, " of the management cluster {it}"))
            }
            Self::Unlabeled => write!(
                f,
                "{predicate}: if CAPT installed the machine there, set the labels {OWNER_NAME} and \
                 {OWNER_NAMESPACE}"
            ),
            Self::Provisioned => {
                write!(f, "{predicate}: remove the annotation {}", api::infrastructure::PROVISIONED)
            }
            Self::NoMac => write!(f, "{predicate}: set spec.interfaces[0].dhcp.mac"),
            Self::NoDisk => write!(f, "{predicate}: set spec.disks[0].device"),
            _ if value.is_empty() => f.write_str(predicate),
            _ => write!(f, "{predicate} ({})", status::plain(value)),
        }
    }
}
