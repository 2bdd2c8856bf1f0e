//! Pairing of a box with a management cluster: the box's identity there, and the objects that the
//! box reads. A command line on a workstation uses it, with the rights of an administrator.
//!
//! The identity is a ServiceAccount outside the provider's components, because `clusterctl upgrade
//! apply` deletes the components with all tokens of their accounts.

mod error;
mod identity;

use std::time::Duration;

use api::core::{CLUSTER_ROLE_BINDING, NAMESPACE, SECRET, SERVICE_ACCOUNT};
use api::management_cluster::{KUBECONFIG_KEY, MANAGEMENT_CLUSTER, ManagementCluster};
use api::meta::{ObjectKey, Resource};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use objects::{ObjectError, Objects, gone_is_fine};
use serde_json::{Value, json};
use stdx::Secret;

use crate::management::{LEASE, TokenClaims};
use crate::remote::{Kubeconfig, RemoteObjects};

pub use self::error::PairingError;
pub use self::identity::{Identity, box_name, box_name_by_pem};
pub use crate::components::PAIRING_NAMESPACE;

/// Lifetime of a token. A box that is off for longer than a half must be paired again; an API
/// server may issue shorter tokens.
pub const TOKEN_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// Kind Role, in the version of ClusterRoleBindings.
const ROLE: Resource = Resource { kind: "Role", plural: "roles", ..CLUSTER_ROLE_BINDING };
/// Kind RoleBinding, in the version of ClusterRoleBindings.
const ROLE_BINDING: Resource =
    Resource { kind: "RoleBinding", plural: "rolebindings", ..CLUSTER_ROLE_BINDING };

/// Creates or updates the identity in the management cluster of `admin`, and returns a kubeconfig
/// of the box. `server` is the URL by which the box reaches the API server, if it is another one
/// than that of the administrator.
///
/// # Errors
/// The management cluster refuses an object, or another user has rights in the namespace of the
/// identity.
pub async fn create_identity(
    admin: &Kubeconfig,
    identity: &Identity,
    server: Option<&str>,
    lifetime: Duration,
) -> Result<Secret, PairingError> {
    let (remote, _events) = RemoteObjects::new(admin)?;
    for (kind, object) in identity.objects() {
        let is_new = ensure(&remote, kind, object).await?;
        // Rights of others in the namespace are rights to the box's identity.
        if kind == NAMESPACE && !is_new {
            check_rights(&remote).await?;
        }
    }
    if let Some(wider) = identity.wider() {
        let deleted = gone_is_fine(remote.delete(CLUSTER_ROLE_BINDING, &wider).await);
        deleted.map_err(|source| failed(format!("delete {}", wider.name), source))?;
    }
    let token = remote.request_token(&identity.account(), lifetime).await;
    let token = token.map_err(|source| failed("request a token", source))?;
    Ok(admin.of_token(server, &token))
}

/// Removes the identity from the management cluster of `admin`, as far as it exists. The namespace
/// stays, because other boxes use it.
///
/// # Errors
/// The management cluster does not delete an object.
pub async fn remove_identity(admin: &Kubeconfig, identity: &Identity) -> Result<(), PairingError> {
    let (remote, _events) = RemoteObjects::new(admin)?;
    // The binding of the rights goes first.
    for (kind, key) in identity.removed() {
        let deleted = gone_is_fine(remote.delete(kind, &key).await);
        deleted.map_err(|source| failed(format!("delete {} {}", kind.kind, key.name), source))?;
    }
    Ok(())
}

/// Deletes the Lease of the box from the management cluster of `admin`, if it exists.
///
/// # Errors
/// The management cluster does not delete the Lease.
pub async fn remove_lease(admin: &Kubeconfig, lease: &ObjectKey) -> Result<(), PairingError> {
    let (remote, _events) = RemoteObjects::new(admin)?;
    let deleted = gone_is_fine(remote.delete(LEASE, lease).await);
    deleted.map_err(|source| failed(format!("delete Lease {lease}"), source))
}

/// Returns the Secret and the ManagementCluster that pair the box, in the order of their creation.
pub fn box_objects(
    key: &ObjectKey,
    kubeconfig: &Secret,
    namespace: Option<&str>,
    watch_filter: Option<&str>,
) -> [(Resource, Value); 2] {
    let secret = secret_name(&key.name);
    let mut spec = json!({ "kubeconfigSecretRef": { "name": secret } });
    if let Some(namespace) = namespace {
        spec["namespace"] = namespace.into();
    }
    if let Some(filter) = watch_filter {
        spec["watchFilter"] = filter.into();
    }
    [
        (
            SECRET,
            json!({
                "apiVersion": SECRET.api_version(),
                "kind": SECRET.kind,
                "metadata": { "name": secret, "namespace": key.namespace },
                "type": "Opaque",
                "data": { KUBECONFIG_KEY: STANDARD.encode(kubeconfig.expose()) },
            }),
        ),
        (
            MANAGEMENT_CLUSTER,
            json!({
                "apiVersion": MANAGEMENT_CLUSTER.api_version(),
                "kind": MANAGEMENT_CLUSTER.kind,
                "metadata": { "name": key.name, "namespace": key.namespace },
                "spec": spec,
            }),
        ),
    ]
}

/// Returns a stored object with the content of a new one. Labels, annotations, and the fields of
/// `spec` that pairing never sets, such as `suspend`, stay.
pub fn changed(mut stored: Value, new: &Value) -> Value {
    if let Some(data) = new.get("data") {
        stored["data"] = data.clone();
    }
    let (Some(stored_spec), Some(new_spec)) = (stored["spec"].as_object_mut(), new.get("spec"))
    else {
        return stored;
    };
    for field in ["kubeconfigSecretRef", "namespace", "watchFilter"] {
        match new_spec.get(field) {
            Some(content) => stored_spec.insert(field.to_owned(), content.clone()),
            None => stored_spec.remove(field),
        };
    }
    stored
}

/// Stores the objects of [`box_objects`], or changes those of an earlier pairing.
///
/// # Errors
/// The box rejects an object, such as one with an invalid name.
pub async fn store(
    objects: &dyn Objects,
    key: &ObjectKey,
    kubeconfig: &Secret,
    namespace: Option<&str>,
    watch_filter: Option<&str>,
) -> Result<(), ObjectError> {
    for (kind, object) in box_objects(key, kubeconfig, namespace, watch_filter) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let key = ObjectKey::new(&key.namespace, name);
        match objects.create(kind, object.clone()).await {
            Err(ObjectError::AlreadyExists(_)) => {
                let stored = objects.get(kind, &key).await?;
                objects.update(kind, changed(stored, &object)).await?;
            }
            created => {
                created?;
            }
        }
    }
    Ok(())
}

/// Returns the name of the Secret of a ManagementCluster. Cluster API writes the kubeconfig of a
/// cluster that it manages into `NAME-kubeconfig`, which is another Secret.
pub fn secret_name(cluster: &str) -> String {
    format!("{cluster}-management-kubeconfig")
}

/// Returns the state of a stored ManagementCluster: true if the box is connected, and a sentence.
pub fn state(object: &Value) -> (bool, String) {
    let cluster: ManagementCluster = serde_json::from_value(object.clone()).unwrap_or_default();
    let generation = cluster.metadata.generation;
    match cluster.status.connected().filter(|it| it.observed_generation == generation) {
        Some(condition) if condition.status == "True" => {
            (true, "the box is connected to the management cluster".to_owned())
        }
        Some(condition) => (false, format!("the box is not connected yet: {}", condition.message)),
        None => (false, "the box has not reported the state of the connection yet".to_owned()),
    }
}

/// Returns the identity in a stored Secret: the ServiceAccount of its token. `None` for a
/// credential that [`create_identity`] did not create.
pub fn identity_of(secret: &Value, namespace: Option<&str>) -> Option<Identity> {
    let secret: api::core::Secret = serde_json::from_value(secret.clone()).ok()?;
    let kubeconfig = Kubeconfig::parse(secret.text(KUBECONFIG_KEY)?.expose()).ok()?;
    let account = TokenClaims::read(kubeconfig.token()?)?.account;
    Identity::of_account(&account, namespace)
}

fn failed(what: impl Into<String>, source: ObjectError) -> PairingError {
    PairingError::Api { what: what.into(), source }
}

/// Creates an object, or replaces its rules, role and subjects. Returns true if it was created.
async fn ensure(
    remote: &RemoteObjects,
    kind: Resource,
    object: Value,
) -> Result<bool, PairingError> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let key = ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"));
    let what = |verb: &str| format!("{verb} {} {}", kind.kind, key.name);
    match remote.create(kind, object.clone()).await {
        Err(ObjectError::AlreadyExists(_)) => {}
        Ok(_) => return Ok(true),
        Err(source) => return Err(failed(what("create"), source)),
    }
    if [NAMESPACE, SERVICE_ACCOUNT].contains(&kind) {
        return Ok(false);
    }
    let stored = remote.get(kind, &key).await;
    let mut stored = stored.map_err(|source| failed(what("read"), source))?;
    let mut is_changed = false;
    for field in ["rules", "roleRef", "subjects"] {
        if stored[field] != object[field] {
            stored[field] = object[field].clone();
            is_changed = true;
        }
    }
    if is_changed {
        let updated = remote.update(kind, stored).await;
        updated.map_err(|source| failed(what("update"), source))?;
    }
    Ok(false)
}

/// Refuses a namespace in which another user has rights: who may create Pods or tokens in it could
/// act as the box, and read the Secrets that the box may read.
async fn check_rights(remote: &RemoteObjects) -> Result<(), PairingError> {
    let list = |kind: Resource| async move {
        let listed = remote.list(kind, Some(PAIRING_NAMESPACE)).await;
        listed.map_err(|source| failed(format!("list {} objects", kind.kind), source))
    };
    let (bindings, roles) = (list(ROLE_BINDING).await?, list(ROLE).await?);
    for binding in bindings {
        let name = &binding["roleRef"]["name"];
        let role = roles.iter().find(|role| role["metadata"]["name"] == *name);
        if !identity::is_own(&binding, role) {
            let name = binding["metadata"]["name"].as_str().unwrap_or_default();
            return Err(PairingError::ForeignRights { binding: name.to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
