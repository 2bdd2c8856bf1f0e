//! Objects of an installation, as a function of the form and the machine.

use api::infrastructure::OWNER_NAME;
use api::meta::ObjectKey;
use api::tinkerbell::{AGENT_ATTRIBUTES, AUTO_DISCOVERED, HARDWARE, Hardware};
use objects::{ObjectError, read};
use serde_json::{Value, json};
use status::view::machine::model;
use stdx::MacAddr;

use super::fields::{Checked, Reservation};
use super::systems::System;
use super::{DiskChoice, InstallChoices, NAMESPACE, is_discovered};
use crate::error::ActionError;
use crate::lookup;
use crate::run;

/// Lease time of a reserved address in seconds: one day.
const LEASE_SECONDS: u32 = 86_400;
/// Maximum number of disks in a form.
const DISKS_MAX: usize = 32;

/// Machine of a form.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    /// Machine that has no Hardware yet, by its MAC address.
    New { mac: MacAddr },
    /// Hardware object of the machine.
    Known(Value),
}

impl Target {
    /// Returns the namespace of the machine's objects.
    pub fn namespace(&self) -> String {
        match self {
            Self::New { .. } => NAMESPACE.to_owned(),
            Self::Known(hardware) => lookup::key(hardware).namespace,
        }
    }

    /// Returns the name of the Hardware; `None` for a new machine.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::New { .. } => None,
            Self::Known(hardware) => hardware["metadata"]["name"].as_str(),
        }
    }

    /// Returns the name of the Hardware, if a person has chosen it already.
    pub fn fixed_name(&self) -> Option<&str> {
        match self {
            Self::Known(hardware) if !is_discovered(hardware) => self.name(),
            _ => None,
        }
    }

    /// Returns the machine of Cluster API that has the Hardware; `None` if it is free.
    pub fn owner(&self) -> Option<&str> {
        let Self::Known(hardware) = self else { return None };
        hardware["metadata"]["labels"][OWNER_NAME].as_str()
    }

    /// Returns the choices that follow from the machine itself.
    pub fn choices(&self) -> InstallChoices {
        let Self::Known(hardware) = self else {
            return InstallChoices { may_rename: true, ..InstallChoices::default() };
        };
        let attributes = serde_json::from_str(attributes_text(hardware)).unwrap_or_default();
        let instance = &hardware["spec"]["metadata"]["instance"];
        let keys = instance["ssh_keys"].as_array().into_iter().flatten();
        let keys: Vec<&str> = keys.filter_map(Value::as_str).collect();
        let fixed = self.fixed_name();
        InstallChoices {
            is_known: true,
            may_rename: fixed.is_none(),
            name: fixed.unwrap_or_default().to_owned(),
            model: model(Some(attributes_text(hardware))),
            disks: disks(hardware, &attributes),
            ssh_keys: keys.join("\n"),
            has_bmc: !hardware["spec"]["bmcRef"].is_null(),
            ..InstallChoices::default()
        }
    }
}

/// Objects to write, in this order: Template, Hardware, Workflow.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InstallPlan {
    /// Name of the Hardware.
    pub machine: String,
    pub workflow_name: String,
    /// Template to create; `None` if the box has it already.
    pub template: Option<Value>,
    pub hardware: Value,
    pub workflow: Value,
    /// Workflow as the agent gets it, as YAML.
    pub rendered: String,
}

impl InstallPlan {
    /// Makes the objects of an installation with the request id `id`.
    ///
    /// # Errors
    /// The template cannot be rendered for the machine.
    pub fn new(
        target: &Target,
        checked: &Checked,
        system: &System,
        id: &str,
    ) -> Result<Self, ActionError> {
        let mut hardware = match target {
            Target::New { mac } => new_hardware(*mac, checked),
            Target::Known(hardware) => known_hardware(hardware, checked)?,
        };
        if let Some(data) = system.user_data(checked) {
            hardware["spec"]["userData"] = data.into();
        }
        let unusable = |why: String| ActionError::Template { name: system.name.clone(), why };
        let typed: Hardware = read(hardware.clone())?;
        let agent = typed.spec.agent_id();
        let agent = agent.ok_or_else(|| unusable("the machine has no MAC address".to_owned()))?;
        let map = run::variables(agent);
        let data = api::document::data(&map, &hardware);
        let rendered =
            template::render(&system.data, &data).map_err(|error| unusable(error.to_string()))?;
        api::document::parse(&rendered).map_err(|error| unusable(error.to_string()))?;
        let ObjectKey { namespace, name: machine } = lookup::key(&hardware);
        let workflow_name = format!("{machine}-{id}");
        let workflow = run::workflow(&workflow_name, &system.name, &typed, &map);
        let template = system.template(&namespace);
        Ok(Self { machine, workflow_name, template, hardware, workflow, rendered })
    }
}

/// Returns the Hardware of a machine that the box knows only by its MAC address.
pub(super) fn new_hardware(mac: MacAddr, checked: &Checked) -> Value {
    let mac = mac.to_string();
    let mut dhcp = json!({ "mac": mac, "hostname": checked.name });
    if let Some(reservation) = &checked.reservation {
        reserve(&mut dhcp, reservation);
    }
    let mut hardware = json!({
        "apiVersion": HARDWARE.api_version(),
        "kind": HARDWARE.kind,
        "metadata": { "name": checked.name, "namespace": NAMESPACE },
        "spec": {
            "interfaces": [{ "dhcp": dhcp, "netboot": { "allowPXE": true } }],
            // Without an instance ID, cloud-init finds no metadata, and so no user data.
            "metadata": { "instance": { "id": mac } },
        },
    });
    describe(&mut hardware, checked, true);
    hardware
}

/// Writes a reservation into the DHCP settings of an interface.
fn reserve(dhcp: &mut Value, reservation: &Reservation) {
    let Reservation { address, netmask, gateway, name_servers } = reservation;
    dhcp["lease_time"] = LEASE_SECONDS.into();
    dhcp["ip"] = json!({ "address": address, "netmask": netmask });
    if let Some(gateway) = gateway {
        dhcp["ip"]["gateway"] = json!(gateway);
    }
    if !name_servers.is_empty() {
        dhcp["name_servers"] = json!(name_servers);
    }
}

/// Returns the Hardware of a known machine with the settings of the form.
fn known_hardware(old: &Value, checked: &Checked) -> Result<Value, ObjectError> {
    let typed: Hardware = read(old.clone())?;
    let mut hardware = old.clone();
    let is_renamed = typed.metadata.name != checked.name;
    if is_renamed {
        let metadata = &typed.metadata;
        hardware["metadata"] = json!({
            "name": checked.name,
            "namespace": metadata.namespace,
            "annotations": metadata.annotations,
            "labels": metadata.labels,
        });
    }
    // The person who installs the machine keeps it: it is no longer removed for a newer one.
    if let Some(labels) = hardware.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(AUTO_DISCOVERED);
    }
    if !typed.spec.may_netboot()
        && typed.spec.bmc_ref.is_none()
        && let Some(first) = hardware.pointer_mut("/spec/interfaces/0")
    {
        first["netboot"]["allowPXE"] = true.into();
    }
    describe(&mut hardware, checked, is_renamed);
    Ok(hardware)
}

/// Writes disk, host name and keys of the form into a Hardware.
fn describe(hardware: &mut Value, checked: &Checked, is_renamed: bool) {
    let id = hardware["metadata"]["name"].clone();
    let spec = &mut hardware["spec"];
    if !checked.disk.is_empty() {
        let chosen = json!({ "device": checked.disk });
        let others = spec["disks"].as_array().into_iter().flatten();
        let others = others.filter(|it| it["device"] != checked.disk).cloned();
        // Templates write the first disk.
        spec["disks"] = std::iter::once(chosen).chain(others).collect();
    }
    let instance = &mut spec["metadata"]["instance"];
    if instance["id"].as_str().is_none_or(str::is_empty) {
        instance["id"] = id;
    }
    // A host name that a person wrote stays.
    let is_named = instance["hostname"].as_str().is_some_and(|it| !it.is_empty());
    if !is_named || is_renamed {
        instance["hostname"] = checked.name.as_str().into();
    }
    instance["ssh_keys"] = json!(checked.ssh_keys);
}

/// Returns true if an interface of a Hardware has this MAC address.
pub(super) fn has_mac(hardware: &Value, mac: MacAddr) -> bool {
    let typed: Hardware = serde_json::from_value(hardware.clone()).unwrap_or_default();
    typed.spec.macs().any(|it| it == mac)
}

fn attributes_text(hardware: &Value) -> &str {
    hardware["metadata"]["annotations"][AGENT_ATTRIBUTES].as_str().unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the disks of a machine: those of its Hardware, then the others of its report.
fn disks(hardware: &Value, attributes: &Value) -> Vec<DiskChoice> {
    let reported: Vec<DiskChoice> = attributes["blockDevices"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|disk| !text(disk, "size").is_empty())
        .map(|disk| {
            let facts = ["vendor", "model", "size", "serialNumber"].map(|key| text(disk, key));
            let facts: Vec<&str> = facts.into_iter().filter(|it| !it.is_empty()).collect();
            let about = status::plain(&facts.join(" · "));
            DiskChoice { device: device(text(disk, "name")), about }
        })
        .collect();
    let listed = hardware["spec"]["disks"].as_array().into_iter().flatten();
    let mut all: Vec<DiskChoice> = listed
        .map(|disk| text(disk, "device").to_owned())
        .map(|device| {
            let same = reported.iter().find(|it| it.device == device);
            let about = same.map(|it| it.about.clone()).unwrap_or_default();
            DiskChoice { device, about }
        })
        .collect();
    all.extend(reported.iter().filter(|it| !all.contains(it)).cloned().collect::<Vec<_>>());
    all.truncate(DISKS_MAX);
    all
}

fn device(name: &str) -> String {
    if name.starts_with('/') { name.to_owned() } else { format!("/dev/{name}") }
}
