//! Identity of a box in a management cluster: a ServiceAccount that may renew its own token, and
//! the binding of the provider's rights to exactly this account.

use api::core::{CLUSTER_ROLE_BINDING, NAMESPACE, SERVICE_ACCOUNT};
use api::meta::{ObjectKey, Resource};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::{ROLE, ROLE_BINDING};
use crate::components::{CLUSTER_ID_NAMESPACE, CONTROLLERS_ROLE, PAIRING_NAMESPACE};

/// Prefix of the names of accounts and of their roles.
const PREFIX: &str = "tinbox-";
/// Maximum length of the host in a name; a name has up to 253 characters.
const HOST_CHARS_MAX: usize = 63;

/// Identity of one pairing; each has its own, so that the end of one does not end another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name without its prefix: box and pairing.
    id: String,
    /// Only namespace in which the box gets rights; `None` for all.
    namespace: Option<String>,
}

/// Returns a name of a box: the host of its URL, and a part of the digest of its certificate
/// authority, because several boxes may have one host name in different networks.
pub fn box_name(url: &str, authority: &[u8]) -> String {
    let host = url.trim_start_matches("https://").split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).to_ascii_lowercase();
    let is_plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit();
    let words = host.split(|char| !is_plain(char)).filter(|word| !word.is_empty());
    let host: String = words.collect::<Vec<_>>().join("-").chars().take(HOST_CHARS_MAX).collect();
    // FNV-1a, 32 bits: a name, not a proof.
    let digest = authority.iter().fold(0x811c_9dc5_u32, |digest, byte| {
        (digest ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    format!("{host}-{digest:08x}").trim_start_matches('-').to_owned()
}

/// Returns the name of a box as [`box_name`], with the certificate of its authority as PEM.
pub fn box_name_by_pem(url: &str, authority: &str) -> String {
    let der = CertificateDer::from_pem_slice(authority.as_bytes());
    box_name(url, der.as_deref().unwrap_or_default())
}

/// Returns true if pairing created a RoleBinding and its Role: they let one account of the
/// namespace create tokens of itself, and nothing else.
pub fn is_own(binding: &Value, role: Option<&Value>) -> bool {
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    let account = ObjectKey::new(PAIRING_NAMESPACE, name);
    let Some(identity) = Identity::of_account(&account, None) else { return false };
    let [_, _, (_, own_role), (_, own_binding)] = identity.account_objects();
    binding["roleRef"] == own_binding["roleRef"]
        && binding["subjects"] == own_binding["subjects"]
        && role.is_none_or(|role| role["rules"] == own_role["rules"])
}

impl Identity {
    /// Creates the identity of a box for the pairing `name`.
    pub fn new(box_name: &str, name: &str, namespace: Option<&str>) -> Self {
        Self { id: format!("{box_name}-{name}"), namespace: namespace.map(str::to_owned) }
    }

    /// Returns the identity of a ServiceAccount; `None` if pairing did not create it.
    pub fn of_account(account: &ObjectKey, namespace: Option<&str>) -> Option<Self> {
        let id = account.name.strip_prefix(PREFIX)?;
        let identity = Self { id: id.to_owned(), namespace: namespace.map(str::to_owned) };
        (account.namespace == PAIRING_NAMESPACE).then_some(identity)
    }

    /// Returns namespace and name of the ServiceAccount.
    pub fn account(&self) -> ObjectKey {
        ObjectKey::new(PAIRING_NAMESPACE, format!("{PREFIX}{}", self.id))
    }

    /// Returns kind, namespace and name of the binding of the rights.
    fn rights(&self) -> (Resource, ObjectKey) {
        let name = format!("{PAIRING_NAMESPACE}-{}", self.id);
        match &self.namespace {
            Some(namespace) => (ROLE_BINDING, ObjectKey::new(namespace, name)),
            None => (CLUSTER_ROLE_BINDING, ObjectKey::new("", name)),
        }
    }

    /// Returns the ClusterRoleBinding of an earlier pairing without a namespace; `None` if this
    /// identity has one itself.
    pub fn wider(&self) -> Option<ObjectKey> {
        self.namespace.as_ref()?;
        Some(Self { namespace: None, ..self.clone() }.rights().1)
    }

    /// Returns namespace and name of the Role, and of its binding, for the UID of the management
    /// cluster; `None` if the rights of all namespaces include that of the UID.
    fn id_right(&self) -> Option<ObjectKey> {
        self.namespace.as_ref()?;
        Some(ObjectKey::new(CLUSTER_ID_NAMESPACE, self.rights().1.name))
    }

    /// Returns the objects to create, the namespace first. None has a label of clusterctl.
    pub fn objects(&self) -> Vec<(Resource, Value)> {
        let mut all = Vec::from(self.account_objects());
        if let Some(key) = self.id_right() {
            let mut role = object(ROLE, &key);
            // A Role permits the request for its own namespace.
            role["rules"] = json!([{
                "apiGroups": [""],
                "resources": ["namespaces"],
                "resourceNames": [CLUSTER_ID_NAMESPACE],
                "verbs": ["get"],
            }]);
            let mut binding = object(ROLE_BINDING, &key);
            binding["roleRef"] = reference(ROLE.kind, &key.name);
            binding["subjects"] = self.subjects();
            all.extend([(ROLE, role), (ROLE_BINDING, binding)]);
        }
        let (kind, key) = self.rights();
        let mut rights = object(kind, &key);
        rights["roleRef"] = reference("ClusterRole", CONTROLLERS_ROLE);
        rights["subjects"] = self.subjects();
        all.push((kind, rights));
        all
    }

    fn subjects(&self) -> Value {
        let account = self.account();
        json!([{
            "kind": SERVICE_ACCOUNT.kind,
            "name": account.name,
            "namespace": account.namespace,
        }])
    }

    /// Returns the namespace, the ServiceAccount, and the Role and binding for its own tokens.
    fn account_objects(&self) -> [(Resource, Value); 4] {
        let account = self.account();
        let own = |kind: Resource| object(kind, &account);
        let namespace = object(NAMESPACE, &ObjectKey::new("", PAIRING_NAMESPACE));
        let mut role = own(ROLE);
        role["rules"] = json!([{
            "apiGroups": [""],
            "resources": ["serviceaccounts/token"],
            "resourceNames": [account.name],
            "verbs": ["create"],
        }]);
        let mut renewal = own(ROLE_BINDING);
        renewal["roleRef"] = reference(ROLE.kind, &account.name);
        renewal["subjects"] = self.subjects();
        [
            (NAMESPACE, namespace),
            (SERVICE_ACCOUNT, own(SERVICE_ACCOUNT)),
            (ROLE, role),
            (ROLE_BINDING, renewal),
        ]
    }

    /// Returns the objects to delete, the binding of the rights first.
    pub fn removed(&self) -> Vec<(Resource, ObjectKey)> {
        let account = self.account();
        let mut all = vec![self.rights()];
        if let Some(key) = self.id_right() {
            all.extend([(ROLE_BINDING, key.clone()), (ROLE, key)]);
        }
        all.extend([
            (ROLE_BINDING, account.clone()),
            (ROLE, account.clone()),
            (SERVICE_ACCOUNT, account),
        ]);
        all
    }

    /// Returns the shell commands that delete these objects and the Lease of the box.
    pub fn removal_command(&self, lease: &ObjectKey) -> String {
        let (kind, rights) = self.rights();
        let own = self.account().name;
        let scope = match rights.namespace.as_str() {
            "" => String::new(),
            namespace => format!(" -n {namespace}"),
        };
        let id = self.id_right().map_or_else(String::new, |ObjectKey { namespace, name }| {
            format!(" && kubectl delete -n {namespace} rolebinding/{name} role/{name}")
        });
        format!(
            "kubectl delete {}/{}{scope}{id} && kubectl delete -n {PAIRING_NAMESPACE} \
             rolebinding/{own} role/{own} serviceaccount/{own} && kubectl delete \
             --ignore-not-found -n {} lease/{}",
            kind.kind.to_lowercase(),
            rights.name,
            lease.namespace,
            lease.name
        )
    }
}

fn object(kind: Resource, key: &ObjectKey) -> Value {
    let mut metadata = json!({ "name": key.name });
    if !key.namespace.is_empty() {
        metadata["namespace"] = key.namespace.as_str().into();
    }
    json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "apiGroup": CLUSTER_ROLE_BINDING.group, "kind": kind, "name": name })
}
