//! Execution of the steps of a decision.

use api::bmc::JOB;
use api::infrastructure::{
    CLUSTER_UID, MANAGEMENT_CLUSTER_NAME, OWNER_NAME, OWNER_NAMESPACE, PROVISIONED, RELEASED_AT,
    TINKERBELL_MACHINE,
};
use api::meta::{Object, ObjectKey, ObjectMeta, Resource};
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, WORKFLOW};
use objects::{ObjectError, Objects, find, gone_is_fine, read, write_status};
use serde_json::{Map, Value, json};

use super::TinkerbellMachineReconciler;
use super::decide::{BOX, FINALIZER, OLD_FINALIZER, STARTED, Step};
use super::observe::Observed;
use super::release::job_name;
use super::wipe::{WIPE_WORKFLOW, WIPED};
use crate::management_view::ViewEvent;
use hardware_choice::{cluster_uid, owner};
use machine_install::workflow::{self, INSTALLATION_NAME};

impl TinkerbellMachineReconciler {
    /// Executes one step. `metadata` is that of the last read or write of the TinkerbellMachine.
    pub(super) async fn apply(
        &self,
        observed: &Observed,
        metadata: &mut ObjectMeta,
        step: Step,
    ) -> Result<(), ObjectError> {
        let objects = self.objects.as_ref();
        match step {
            Step::TakeOver(host) => take_over(objects, observed, &host).await,
            Step::Claim(host) => {
                edit(objects, HARDWARE, &host.metadata, |it| own(it, observed)).await.map(drop)
            }
            Step::NameInstallation(name) => {
                self.annotate_host(observed, INSTALLATION_NAME, &name).await
            }
            Step::UserData(text) => {
                let write = |host: &mut Value| host["spec"]["userData"] = Value::String(text);
                self.edit_host(observed, write).await
            }
            Step::MarkStarted => {
                self.annotate_host(observed, STARTED, &observed.machine.metadata.uid).await
            }
            Step::NameWipe(name) => self.annotate_host(observed, WIPE_WORKFLOW, &name).await,
            Step::ForgetWipe => self.edit_host(observed, forget_wipe).await,
            Step::MarkWiped => {
                self.annotate_host(observed, WIPED, &observed.machine.metadata.uid).await
            }
            Step::MarkProvisioned => self.annotate_host(observed, PROVISIONED, "true").await,
            Step::Release => {
                let at = self.clock.now();
                gone_is_fine(self.edit_host(observed, |host| free(host, at)).await)
            }
            Step::Register => {
                self.edit_machine(metadata, |machine| register(machine, observed)).await
            }
            Step::RemoveFinalizer => {
                let remove = |machine: &mut Value| remove_finalizer(machine);
                gone_is_fine(self.edit_machine(metadata, remove).await)
            }
            Step::SetSpec { hardware_name, provider_id } => {
                let set = |machine: &mut Value| {
                    for (field, value) in
                        [("hardwareName", hardware_name), ("providerID", provider_id)]
                    {
                        let is_unset = machine["spec"][field].as_str().is_none_or(str::is_empty);
                        if is_unset && !value.is_empty() {
                            machine["spec"][field] = Value::String(value);
                        }
                    }
                };
                self.edit_machine(metadata, set).await
            }
            Step::Create(resource, object) => match objects.create(resource, object).await {
                Ok(_) => Ok(()),
                // Another machine may have created it at the same time: the next decision reads it.
                Err(ObjectError::AlreadyExists(what)) => Err(ObjectError::Conflict(what)),
                Err(error) => Err(error),
            },
            Step::Delete(resource, key) => gone_is_fine(objects.delete(resource, &key).await),
            Step::Status(status) => {
                let objects = self.view.objects.as_ref();
                write_status(objects, TINKERBELL_MACHINE, metadata, status.as_ref()).await
            }
            Step::Record { reason, message, warning } => {
                let event = ViewEvent { reason, message, warning, at: self.clock.now() };
                self.view.record(TINKERBELL_MACHINE, metadata, event);
                Ok(())
            }
        }
    }

    /// Changes the Hardware of the machine, on condition that it was not changed since the read.
    async fn edit_host(
        &self,
        observed: &Observed,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), ObjectError> {
        let Some(host) = &observed.host else { return Ok(()) };
        edit(self.objects.as_ref(), HARDWARE, &host.metadata, change).await.map(drop)
    }

    async fn annotate_host(
        &self,
        observed: &Observed,
        key: &str,
        value: &str,
    ) -> Result<(), ObjectError> {
        let annotate = |host: &mut Value| host["metadata"]["annotations"][key] = json!(value);
        self.edit_host(observed, annotate).await
    }

    /// Changes the TinkerbellMachine, and updates `metadata`.
    async fn edit_machine(
        &self,
        metadata: &mut ObjectMeta,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), ObjectError> {
        // The write fails if the machine was changed since, so an old copy does no harm.
        let objects = self.view.watched.as_ref();
        let changed = edit(objects, TINKERBELL_MACHINE, metadata, change).await?;
        *metadata = read::<Object<Value, Value>>(changed)?.metadata;
        Ok(())
    }
}

/// Changes the stored JSON of the object that was read with `metadata`. Fields without a type are
/// kept.
pub(super) async fn edit(
    objects: &dyn Objects,
    resource: Resource,
    metadata: &ObjectMeta,
    change: impl FnOnce(&mut Value),
) -> Result<Value, ObjectError> {
    let key = ObjectKey::new(&metadata.namespace, &metadata.name);
    let mut object = objects.get(resource, &key).await?;
    if object["metadata"]["resourceVersion"] != *metadata.resource_version {
        return Err(ObjectError::Conflict(format!("{} {key}", resource.kind)));
    }
    for field in ["labels", "annotations"] {
        let map = &mut object["metadata"][field];
        if map.is_null() {
            *map = Value::Object(Map::new());
        }
    }
    let before = object.clone();
    change(&mut object);
    if object == before { Ok(before) } else { objects.update(resource, object).await }
}

fn register(machine: &mut Value, observed: &Observed) {
    add_finalizer(machine);
    if observed.management_cluster.is_some() {
        machine["metadata"]["annotations"][BOX] = json!(observed.box_id);
    }
}

/// Gives the machine the objects of the former owner of `host`. An object that was given before has
/// the labels of the machine already.
async fn take_over(
    objects: &dyn Objects,
    observed: &Observed,
    host: &Hardware,
) -> Result<(), ObjectError> {
    let Some(former) = owner(host) else { return Ok(()) };
    let former_uid = cluster_uid(host);
    let read_former = async |resource: Resource, key: &ObjectKey| {
        let object: Option<Object<Value, Value>> = find(objects, resource, key).await?;
        let metadata = object.map(|object| object.metadata);
        Ok::<_, ObjectError>(metadata.filter(|it| workflow::is_of(it, &former, former_uid)))
    };
    let key = workflow::key(&former, host);
    for resource in [WORKFLOW, TEMPLATE] {
        if let Some(metadata) = read_former(resource, &key).await? {
            let uid = observed.request.cluster_uid.as_ref();
            let change = |object: &mut Value| {
                set(&mut object["metadata"]["labels"], CLUSTER_UID, uid);
            };
            gone_is_fine(edit(objects, resource, &metadata, change).await.map(drop))?;
        }
    }
    for name in [key.name, workflow::second_name(&former, former_uid)] {
        let key = ObjectKey::new(&key.namespace, job_name(&name));
        if let Some(metadata) = read_former(JOB, &key).await? {
            gone_is_fine(objects.delete_uid(JOB, &key, &metadata.uid).await)?;
        }
    }
    Ok(())
}

fn own(host: &mut Value, observed: &Observed) {
    let machine = &observed.request.machine;
    let cluster = observed.management_cluster.as_ref();
    let labels = &mut host["metadata"]["labels"];
    labels[OWNER_NAME] = json!(machine.name);
    labels[OWNER_NAMESPACE] = json!(machine.namespace);
    set(labels, CLUSTER_UID, cluster.map(|it| &it.uid));
    set(&mut host["metadata"]["annotations"], MANAGEMENT_CLUSTER_NAME, cluster.map(|it| &it.name));
    add_finalizer(host);
}

/// Sets or removes a label or an annotation.
fn set(map: &mut Value, key: &str, value: Option<&String>) {
    match (value, map.as_object_mut()) {
        (Some(value), _) => map[key] = json!(value),
        (None, Some(map)) => drop(map.remove(key)),
        (None, None) => {}
    }
}

/// Removes everything that the machine wrote into its Hardware, and forbids network boot.
fn free(host: &mut Value, at: jiff::Timestamp) {
    if let Some(labels) = host["metadata"]["labels"].as_object_mut() {
        for label in [OWNER_NAME, OWNER_NAMESPACE, CLUSTER_UID] {
            labels.remove(label);
        }
    }
    if let Some(annotations) = host["metadata"]["annotations"].as_object_mut() {
        annotations.remove(PROVISIONED);
        annotations.remove(STARTED);
        annotations.remove(MANAGEMENT_CLUSTER_NAME);
        annotations.remove(INSTALLATION_NAME);
        annotations.remove(WIPED);
        annotations.remove(WIPE_WORKFLOW);
        annotations.insert(RELEASED_AT.to_owned(), json!(at));
    }
    if let Some(spec) = host["spec"].as_object_mut() {
        spec.remove("userData");
    }
    let interfaces = host.pointer_mut("/spec/interfaces").and_then(Value::as_array_mut);
    for interface in interfaces.into_iter().flatten() {
        if let Some(allow) = interface.pointer_mut("/netboot/allowPXE") {
            *allow = Value::Bool(false);
        }
    }
    remove_finalizer(host);
}

/// Removes the name of the Workflow that erases the disks.
pub(super) fn forget_wipe(host: &mut Value) {
    set(&mut host["metadata"]["annotations"], WIPE_WORKFLOW, None);
}

fn add_finalizer(object: &mut Value) {
    let all = &mut object["metadata"]["finalizers"];
    match all.as_array_mut() {
        Some(all) => {
            all.retain(|it| it != OLD_FINALIZER);
            if !all.iter().any(|it| it == FINALIZER) {
                all.push(json!(FINALIZER));
            }
        }
        None => *all = json!([FINALIZER]),
    }
}

fn remove_finalizer(object: &mut Value) {
    if let Some(all) = object["metadata"]["finalizers"].as_array_mut() {
        all.retain(|it| it != FINALIZER && it != OLD_FINALIZER);
    }
}
