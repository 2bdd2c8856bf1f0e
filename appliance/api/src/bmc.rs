//! Group `bmc.tinkerbell.org/v1alpha1`: Machine, Job, Task
//! (upstream tinkerbell/tinkerbell `api/v1alpha1/bmc`).

mod providers;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{Object, Resource};

/// Machines.
pub const MACHINE: Resource = Resource {
    group: "bmc.tinkerbell.org",
    version: "v1alpha1",
    kind: "Machine",
    plural: "machines",
};
/// Jobs.
pub const JOB: Resource =
    Resource { group: "bmc.tinkerbell.org", version: "v1alpha1", kind: "Job", plural: "jobs" };
/// Tasks.
pub const TASK: Resource =
    Resource { group: "bmc.tinkerbell.org", version: "v1alpha1", kind: "Task", plural: "tasks" };

/// A management controller.
pub type Machine = Object<MachineSpec, MachineStatus>;
/// Actions on one Machine, in order.
pub type Job = Object<JobSpec, RunStatus>;
/// One action of a Job.
pub type Task = Object<TaskSpec, RunStatus>;

/// How the controller is reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSpec {
    /// Connection.
    pub connection: Connection,
}

/// How a controller is reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Connection {
    /// Address or name.
    pub host: String,
    /// Port; 623 when unset or 0. Provider options come first.
    pub port: u16,
    /// Secret with keys `username` and `password`.
    pub auth_secret_ref: SecretRef,
    /// Do not verify TLS.
    #[serde(rename = "insecureTLS")]
    pub insecure_tls: bool,
    /// Options by provider.
    pub provider_options: Option<ProviderOptions>,
}

/// Names a Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretRef {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// Options by provider; only what has a driver is typed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderOptions {
    /// IPMI, under upstream's name.
    pub ipmitool: Option<IpmiOptions>,
    /// Others, passed on untouched.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Options of IPMI.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IpmiOptions {
    /// UDP port; 0 means 623.
    pub port: u16,
    /// `3` or `17`; empty means the best both sides know.
    pub cipher_suite: String,
}

/// What the controller last said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// `on`, `off` or `unknown`.
    pub power_state: Option<String>,
    /// `Contactable`.
    pub conditions: Vec<MachineCondition>,
}

/// Condition of a Machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineCondition {
    /// `Contactable`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// When it last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Spec of a Job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// The Machine.
    pub machine_ref: SecretRef,
    /// Actions, in order.
    pub tasks: Vec<Action>,
}

/// Spec of a Task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSpec {
    /// The action.
    pub task: Action,
    /// Connection, copied from the Machine.
    pub connection: Connection,
}

/// Exactly one of its fields is set (upstream: `maxProperties: 1`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Action {
    /// Change or read power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_action: Option<PowerAction>,
    /// Deprecated form of `bootDevice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_time_boot_device_action: Option<OneTimeBootDevice>,
    /// Where the next boot, or every boot, comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_device: Option<BootDeviceConfig>,
    /// Insert or eject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_media_action: Option<Value>,
}

/// A power action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerAction {
    /// Power on.
    On,
    /// Power off, hard.
    Off,
    /// Ask the operating system to shut down.
    Soft,
    /// Read the power state.
    Status,
    /// Off and on.
    Cycle,
    /// Hard reset.
    Reset,
}

/// Where a boot comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootDevice {
    /// Network.
    Pxe,
    /// Disk.
    Disk,
    /// Firmware set-up.
    Bios,
    /// Optical or virtual media.
    Cdrom,
    /// Safe mode.
    Safe,
}

/// Deprecated form: the first device counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OneTimeBootDevice {
    /// Devices.
    pub device: Vec<BootDevice>,
    /// Boot by UEFI.
    pub efi_boot: bool,
}

/// Where the next boot, or every boot, comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootDeviceConfig {
    /// Device.
    pub device: BootDevice,
    /// Every boot.
    #[serde(default)]
    pub persistent: bool,
    /// Boot by UEFI.
    #[serde(default)]
    pub efi_boot: bool,
}

/// Status of a Job or a Task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunStatus {
    /// `Running`, `Completed`, `Failed`.
    pub conditions: Vec<RunCondition>,
    /// Start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// End.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
}

/// Condition of a Job or a Task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunCondition {
    /// `Running`, `Completed`, `Failed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl RunStatus {
    /// The condition `kind` is `True`.
    pub fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|it| it.status == "True")
    }

    /// The condition `kind`, whatever its status.
    pub fn condition(&self, kind: &str) -> Option<&RunCondition> {
        self.conditions.iter().find(|it| it.kind == kind)
    }

    /// It ended, well or not.
    pub fn ended(&self) -> bool {
        self.is("Completed") || self.is("Failed")
    }

    /// Set the condition `kind` to `True`.
    pub fn set(&mut self, kind: &str, message: impl Into<String>) {
        self.conditions.retain(|it| it.kind != kind);
        self.conditions.push(RunCondition {
            kind: kind.to_owned(),
            status: "True".to_owned(),
            message: message.into(),
        });
    }
}
