//! Kind TinkerbellMachine: Hardware that becomes a machine of a cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Initialization;
use crate::meta::{Condition, LabelSelector, Object};
use crate::tinkerbell::{BootMode, Custom};

/// Hardware that becomes a machine of a cluster.
pub type TinkerbellMachine = Object<TinkerbellMachineSpec, TinkerbellMachineStatus>;

/// Requirements on the Hardware, and the software to install.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TinkerbellMachineSpec {
    /// Go template for the reference of the operating system image; empty for the cluster's.
    pub image_lookup_format: String,
    /// Registry and folder of the images; empty for the cluster's.
    pub image_lookup_base_registry: String,
    /// Distribution of the images; empty for the cluster's.
    #[serde(rename = "imageLookupOSDistro")]
    pub image_lookup_os_distro: String,
    /// Version of the distribution; empty for the cluster's.
    #[serde(rename = "imageLookupOSVersion")]
    pub image_lookup_os_version: String,
    /// Text of the workflow template; replaces the default and the cluster's template.
    pub template_override: String,
    /// Label rules that require or prefer Hardware.
    pub hardware_affinity: Affinity,
    /// Ways to boot the machine into the agent OS.
    pub boot_options: MachineBootOptions,
    /// Name of the chosen Hardware, or of the Hardware that the owner requires.
    pub hardware_name: String,
    /// Provider ID of the node: `tinkerbell://NAMESPACE/NAME`. The machine of a preset provider ID
    /// is adopted and never installed again.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// Tinbox extension: maker, model and labels that the Hardware must have.
    pub hardware_selector: HardwareSelector,
    /// Tinbox extension: name of the operating system image; overrides the `image_lookup` fields.
    pub os_image: String,
    /// Tinbox extension: Secret with user data.
    pub user_data_secret: Option<UserDataSecret>,
    /// Tinbox extension: failure domain of the Hardware, unless the owning Machine has one.
    pub failure_domain: String,
    /// Tinbox extension: method of a [`WipeMethod`] that erases the disks before the release of the
    /// Hardware; empty or `None` to keep the data.
    pub wipe_on_release: String,
}

/// Label rules that require or prefer Hardware.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Affinity {
    /// Terms of which at least one must match; without terms, every Hardware matches.
    pub required: Vec<AffinityTerm>,
    /// Terms whose weights are added to the score of a Hardware that matches.
    pub preferred: Vec<WeightedTerm>,
}

/// Rule for the labels of a Hardware.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AffinityTerm {
    /// Selector for the labels of Hardware.
    pub label_selector: LabelSelector,
}

/// Preferred rule with its weight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightedTerm {
    /// Points for a Hardware that matches, from 1 to 100.
    pub weight: i32,
    /// Rule for the labels of a Hardware.
    pub hardware_affinity_term: AffinityTerm,
}

/// Boot settings that the Workflow of the machine gets.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineBootOptions {
    /// URL of the ISO for `isoboot`.
    #[serde(rename = "isoURL")]
    pub iso_url: String,
    /// Kind of the BMC jobs before and after the run.
    pub boot_mode: Option<BootMode>,
    /// Actions for the boot mode `customboot`.
    #[serde(rename = "custombootConfig")]
    pub custom: Custom,
}

/// Tinbox extension: maker, model and labels that the Hardware must have. Empty texts match every
/// Hardware.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareSelector {
    /// Manufacturer in any usual spelling, such as `Intel`.
    pub manufacturer: String,
    /// Plan, or start of the product name, such as `NUC`.
    pub plan: String,
    /// Labels that the Hardware must have with these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further labels that the Hardware must have: in v1alpha4, every other key is a label.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Method that erases a disk, as the action `disk-wipe` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WipeMethod {
    /// Strongest command that the disk has, else zeros.
    Auto,
    /// Zeros on the whole disk.
    Zero,
    /// The disk discards all blocks.
    Discard,
}

/// Error: `spec.wipeOnRelease` of a TinkerbellMachine has a value that this release does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spec.wipeOnRelease is {0:?}; expected None, Auto, Zero or Discard")]
pub struct UnknownWipeMethod(String);

impl WipeMethod {
    /// Parses `spec.wipeOnRelease`; `None` if the data stay.
    ///
    /// # Errors
    /// The text is none of the known values.
    pub fn parse(text: &str) -> Result<Option<Self>, UnknownWipeMethod> {
        match text {
            "" | "None" => Ok(None),
            "Auto" => Ok(Some(Self::Auto)),
            "Zero" => Ok(Some(Self::Zero)),
            "Discard" => Ok(Some(Self::Discard)),
            other => Err(UnknownWipeMethod(other.to_owned())),
        }
    }

    /// Returns the value of the setting `WIPE_METHOD` of the action `disk-wipe`.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Zero => "zero",
            Self::Discard => "discard",
        }
    }
}

/// Secret with user data, in the namespace of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserDataSecret {
    /// Name of the Secret; v1alpha4 does not require a name.
    pub name: String,
}

/// Status of a TinkerbellMachine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TinkerbellMachineStatus {
    /// True if the machine is provisioned (contract v1beta1).
    pub ready: bool,
    /// Progress for contract v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// Addresses and host names of the machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// Tinbox extension: failure domain of the Hardware.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure_domain: String,
    /// Conditions, such as `Ready` and `Paused`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Namespace of the Hardware, and of the Template and Workflow of the machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_namespace: String,
    /// Tinbox extension: progress of the installation for a column, such as `Running 2/5`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance_state: String,
    /// State of the instance as a number; CAPT never sets this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_status: Option<i64>,
    /// Other fields, which the box writes unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Address or host name of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineAddress {
    /// Type: `Hostname`, `InternalIP`, `ExternalIP`, `InternalDNS` or `ExternalDNS`.
    #[serde(rename = "type")]
    pub kind: String,
    /// IP address or name.
    pub address: String,
}

impl HardwareSelector {
    /// Returns the labels that the Hardware must have, with their values as text.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut labels: BTreeMap<String, String> =
            self.rest.iter().map(|(key, value)| (key.clone(), text(value))).collect();
        labels.extend(self.match_labels.clone());
        labels
    }
}

impl TinkerbellMachineStatus {
    /// Returns true if the status shows a provisioned machine in either contract.
    pub fn is_provisioned(&self) -> bool {
        self.ready || self.initialization.as_ref().is_some_and(|it| it.provisioned)
    }

    /// Records, for both contracts, that the machine is provisioned.
    pub fn set_provisioned(&mut self) {
        self.ready = true;
        self.initialization = Some(Initialization { provisioned: true });
    }
}
