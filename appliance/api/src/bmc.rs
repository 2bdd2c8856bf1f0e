//! Group `bmc.tinkerbell.org/v1alpha1`: Machine, Job, Task (upstream: `api/v1alpha1/bmc`).

mod providers;

pub use providers::{HOME_ASSISTANT, PLUG, POE, Provider, REDFISH, RPC, WAKE_ON_LAN};

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{Object, Resource};

/// Resource of the kind Machine.
pub const MACHINE: Resource = Resource {
    group: "bmc.tinkerbell.org",
    version: "v1alpha1",
    kind: "Machine",
    plural: "machines",
};
/// Resource of the kind Job.
pub const JOB: Resource =
    Resource { group: "bmc.tinkerbell.org", version: "v1alpha1", kind: "Job", plural: "jobs" };
/// Resource of the kind Task.
pub const TASK: Resource =
    Resource { group: "bmc.tinkerbell.org", version: "v1alpha1", kind: "Task", plural: "tasks" };

/// Condition of a Job, Task or Workflow with the error of a BMC, while the request is repeated.
pub const BMC_ERROR: &str = "BmcError";

/// Management controller (BMC) of a machine.
pub type Machine = Object<MachineSpec, MachineStatus>;
/// Actions on one Machine, in order.
pub type Job = Object<JobSpec, RunStatus>;
/// Single action of a Job.
pub type Task = Object<TaskSpec, RunStatus>;

/// Connection settings of a management controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSpec {
    /// Address, credentials and options of the connection.
    pub connection: Connection,
}

/// Connection settings of a management controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Connection {
    /// IP address or host name.
    pub host: String,
    /// Port; 623 when unset or 0. Ports in the provider options take precedence.
    pub port: u16,
    /// Secret with the keys `username` and `password`.
    pub auth_secret_ref: SecretRef,
    /// True to skip the verification of the TLS certificate.
    #[serde(rename = "insecureTLS")]
    pub insecure_tls: bool,
    /// Options for each provider.
    pub provider_options: Option<ProviderOptions>,
}

/// Reference to a Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretRef {
    /// Name of the object.
    pub name: String,
    /// Namespace of the object.
    pub namespace: String,
}

/// Options for each provider (protocol of a BMC).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderOptions {
    /// Options of IPMI. Upstream names the field after the program `ipmitool`.
    pub ipmitool: Option<IpmiOptions>,
    /// Options of Intel AMT.
    #[serde(rename = "intelAMT", skip_serializing_if = "Option::is_none")]
    pub intel_amt: Option<IntelAmtOptions>,
    /// Options of other providers, stored unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Options of an IPMI connection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IpmiOptions {
    /// UDP port; 0 means 623.
    pub port: u16,
    /// Cipher suite: `3` or `17`. Empty means the best one that both sides support.
    pub cipher_suite: String,
}

/// Options of an Intel AMT connection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IntelAmtOptions {
    /// TCP port; 0 means 16993 with TLS and 16992 without.
    pub port: u16,
    /// `http` without TLS, or `https`. The CRD sets `http` when the field is absent, as upstream.
    pub host_scheme: String,
}

/// Last state of the machine as its BMC reported it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// Power state: `on`, `off` or `unknown`.
    pub power_state: Option<String>,
    /// Reason of the power state, for display.
    pub power_reason: String,
    /// Names of the power actions and boot devices that the box can request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Reasons of the capabilities that this machine lacks, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missing_capabilities: BTreeMap<String, String>,
    /// Conditions; the only type is `Contactable`.
    pub conditions: Vec<MachineCondition>,
}

/// Condition of a Machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineCondition {
    /// Type of the condition: `Contactable`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status of the condition: `True` or `False`.
    pub status: String,
    /// Time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// Reason of the status, for display.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Spec of a Job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// Machine whose BMC executes the actions.
    pub machine_ref: SecretRef,
    /// Actions, in the order of execution.
    pub tasks: Vec<Action>,
}

/// Spec of a Task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSpec {
    /// Action that the BMC executes.
    pub task: Action,
    /// Connection settings, copied from the Machine.
    pub connection: Connection,
}

/// Action of a BMC. Exactly one field is set (upstream's CRD: `maxProperties: 1`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Action {
    /// Changes or reads the power state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_action: Option<PowerAction>,
    /// Deprecated form of `bootDevice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_time_boot_device_action: Option<OneTimeBootDevice>,
    /// Sets the device of the next boot or of every boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_device: Option<BootDeviceConfig>,
    /// Inserts or ejects virtual media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_media_action: Option<Value>,
}

/// Power action of a BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerAction {
    /// Switches the power on.
    On,
    /// Switches the power off without a shutdown.
    Off,
    /// Requests a shutdown of the operating system.
    Soft,
    /// Reads the power state.
    Status,
    /// Switches the power off and on.
    Cycle,
    /// Resets the machine without a shutdown.
    Reset,
}

/// Boot device of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootDevice {
    /// Network boot by PXE.
    Pxe,
    /// Boot from a local disk.
    Disk,
    /// Setup program of the firmware.
    Bios,
    /// Optical or virtual media.
    Cdrom,
    /// Safe mode of the operating system.
    Safe,
}

/// Deprecated form of a boot device; only the first device is used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OneTimeBootDevice {
    /// Boot devices; only the first is used.
    pub device: Vec<BootDevice>,
    /// True to boot in UEFI mode, false (default) in legacy BIOS mode.
    pub efi_boot: bool,
}

/// Boot device of the next boot or of every boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootDeviceConfig {
    /// Boot device to set.
    pub device: BootDevice,
    /// True to use the device at every boot, false (default) only at the next boot.
    #[serde(default)]
    pub persistent: bool,
    /// True to boot in UEFI mode, false (default) in legacy BIOS mode.
    #[serde(default)]
    pub efi_boot: bool,
}

/// Status of a Job or a Task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunStatus {
    /// Conditions: `Running`, `BmcError`, `Completed`, `Failed`.
    pub conditions: Vec<RunCondition>,
    /// Time at which the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// Time at which the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
}

/// Condition of a Job or a Task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunCondition {
    /// Type of the condition: `Running`, `BmcError`, `Completed` or `Failed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status of the condition: `True` or `False`.
    pub status: String,
    /// Reason of the status, for display.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl RunStatus {
    /// Returns true if the condition of type `kind` exists with status `True`.
    pub fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|it| it.status == "True")
    }

    /// Returns the condition of type `kind`, whatever its status; `None` if absent.
    pub fn condition(&self, kind: &str) -> Option<&RunCondition> {
        self.conditions.iter().find(|it| it.kind == kind)
    }

    /// Returns the error of the BMC during the run, as a sentence; `None` without an error.
    pub fn bmc_error(&self) -> Option<&str> {
        self.condition(BMC_ERROR).map(|it| it.message.as_str())
    }

    /// Returns true after the run has completed or failed.
    pub fn ended(&self) -> bool {
        self.is("Completed") || self.is("Failed")
    }

    /// Sets the condition of type `kind` to `True`, and replaces an older condition of this type.
    pub fn set(&mut self, kind: &str, message: impl Into<String>) {
        self.conditions.retain(|it| it.kind != kind);
        let (kind, status, message) = (kind.to_owned(), "True".to_owned(), message.into());
        self.conditions.push(RunCondition { kind, status, message });
    }
}
