//! The roles and bindings that exist from the first start.
//!
//! Names that begin with `system:` and the three of `admin`, `edit` and `view` are Kubernetes' own
//! (k8s.io/kubernetes, plugin/pkg/auth/authorizer/rbac/bootstrappolicy), as far as they speak of
//! kinds the box has; those that begin with `tinbox:` are the box's.

use serde_json::{Value, json};

use crate::rbac::{PolicyRule, RBAC_GROUP, covers};
use crate::user::{AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED};

/// Marks the objects below.
const BOOTSTRAPPING: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");
/// Set to `false` by an owner who wants an object left as it is.
pub const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
/// Which of `admin`, `edit` and `view` a role is part of: `…/aggregate-to-view`.
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const ALL: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

const TINKERBELL: &str = "tinkerbell.org";
const BMC: &str = "bmc.tinkerbell.org";
/// Groups whose kinds describe machines and what happens to them.
const MACHINES: &[&str] = &[
    TINKERBELL,
    BMC,
    "infrastructure.cluster.x-k8s.io",
    "cluster.x-k8s.io",
    "bootstrap.cluster.x-k8s.io",
    "tinbox.dev",
];
/// The box's own system: its settings, its reset and its updates are the administrator's.
const BOX: &str = "box.tinbox.dev";
const HEALTH: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
const DISCOVERY: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
const ISSUER_PATHS: &[&str] = &[
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/",
    "/openid/v1/jwks",
    "/openid/v1/jwks/",
];

/// The ClusterRoles, in order of name.
pub fn cluster_roles() -> Vec<Value> {
    let mut roles = vec![
        aggregate("admin", Some("admin"), None),
        role("cluster-admin", &[on(&["*"], &["*"], &["*"]), paths(&["*"], &["*"])]),
        aggregate("edit", Some("edit"), Some("admin")),
        part("system:aggregate-to-admin", "admin", &access_rules()),
        part("system:aggregate-to-edit", "edit", &edit_rules()),
        part("system:aggregate-to-view", "view", &view_rules()),
        role("system:basic-user", &self_rules()),
        role("system:discovery", &[paths(&["get"], DISCOVERY)]),
        role("system:public-info-viewer", &[paths(&["get"], HEALTH)]),
        role("system:service-account-issuer-discovery", &[paths(&["get"], ISSUER_PATHS)]),
        aggregate("view", Some("view"), Some("edit")),
    ];
    roles.extend(box_roles());
    roles.sort_by_key(|role| role["metadata"]["name"].to_string());
    roles
}

/// The ClusterRoles of the box itself.
fn box_roles() -> Vec<Value> {
    let mut operator = viewer_rules();
    operator.extend(edit_rules().into_iter().filter(|rule| {
        // An operator must not become another account.
        !rule.resources.iter().any(|one| one.starts_with("serviceaccounts"))
    }));
    operator.push(on(WRITE, MACHINES, &["*"]));
    vec![
        part("tinbox:aggregate-to-edit", "edit", &[on(WRITE, MACHINES, &["*"])]),
        part("tinbox:aggregate-to-view", "view", &[on(READ, MACHINES, &["*"])]),
        role("tinbox:admin", &[on(&["*"], &["*"], &["*"]), paths(&["*"], &["*"])]),
        role("tinbox:operator", &operator),
        role("tinbox:viewer", &viewer_rules()),
        role("tinbox:capt", &capt_rules()),
    ]
}

/// The ClusterRoleBindings.
pub fn cluster_role_bindings() -> Vec<Value> {
    let all_accounts = [SERVICE_ACCOUNTS];
    vec![
        binding("cluster-admin", &[MASTERS]),
        binding("system:basic-user", &[AUTHENTICATED]),
        binding("system:discovery", &[AUTHENTICATED]),
        binding("system:public-info-viewer", &[AUTHENTICATED, UNAUTHENTICATED]),
        binding("system:service-account-issuer-discovery", &all_accounts),
    ]
}

/// What stock CAPT needs of the box it provisions with (its page on remote Tinkerbell),
/// and nothing else. Discovery is everybody's.
fn capt_rules() -> Vec<PolicyRule> {
    vec![
        on(&["get", "list", "patch"], &[TINKERBELL], &["hardware"]),
        on(&["get", "create", "delete"], &[TINKERBELL], &["templates"]),
        on(&["get", "list", "watch", "create", "delete"], &[TINKERBELL], &["workflows"]),
        on(&["get", "list", "watch", "create"], &[BMC], &["jobs"]),
    ]
}

/// Everything there is to see but Secrets and who may do what. Machines are seen whole, with the
/// user data that provisioners leave in them.
fn viewer_rules() -> Vec<PolicyRule> {
    let mut rules = view_rules();
    rules.push(on(READ, MACHINES, &["*"]));
    rules.push(on(READ, &["apiextensions.k8s.io"], &["customresourcedefinitions"]));
    rules.push(on(READ, &[BOX], &["update"]));
    rules
}

fn view_rules() -> Vec<PolicyRule> {
    let core =
        &["configmaps", "events", "namespaces", "namespaces/status", "serviceaccounts", "services"];
    vec![
        on(READ, &[""], core),
        on(READ, &["events.k8s.io"], &["events"]),
        on(READ, &["coordination.k8s.io"], &["leases"]),
    ]
}

fn edit_rules() -> Vec<PolicyRule> {
    vec![
        on(READ, &[""], &["secrets"]),
        on(WRITE, &[""], &["configmaps", "events", "secrets", "services"]),
        on(WRITE, &[""], &["serviceaccounts"]),
        on(&["impersonate"], &[""], &["serviceaccounts"]),
        on(&["create"], &[""], &["serviceaccounts/token"]),
        on(WRITE, &["coordination.k8s.io"], &["leases"]),
    ]
}

/// Managing access to a namespace.
fn access_rules() -> Vec<PolicyRule> {
    vec![
        on(&["create"], &["authorization.k8s.io"], &["localsubjectaccessreviews"]),
        on(ALL, &[RBAC_GROUP], &["rolebindings", "roles"]),
    ]
}

/// Asking about oneself.
fn self_rules() -> Vec<PolicyRule> {
    let create = &["create"];
    let about = &["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    vec![
        on(create, &["authorization.k8s.io"], about),
        on(create, &["authentication.k8s.io"], &["selfsubjectreviews"]),
    ]
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|one| (*one).to_owned()).collect()
}

fn on(verbs: &[&str], groups: &[&str], resources: &[&str]) -> PolicyRule {
    PolicyRule {
        verbs: texts(verbs),
        api_groups: texts(groups),
        resources: texts(resources),
        ..PolicyRule::default()
    }
}

fn paths(verbs: &[&str], urls: &[&str]) -> PolicyRule {
    PolicyRule { verbs: texts(verbs), non_resource_urls: texts(urls), ..PolicyRule::default() }
}

fn object(kind: &str, name: &str) -> Value {
    let (label, value) = BOOTSTRAPPING;
    json!({
        "apiVersion": format!("{RBAC_GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": { label: value },
            "annotations": { AUTOUPDATE: "true" },
        },
    })
}

fn role(name: &str, rules: &[PolicyRule]) -> Value {
    let mut role = object("ClusterRole", name);
    role["rules"] = json!(rules);
    role
}

/// A role whose rules are part of `of`.
fn part(name: &str, of: &str, rules: &[PolicyRule]) -> Value {
    let mut role = role(name, rules);
    role["metadata"]["labels"][format!("{AGGREGATE}{of}")] = json!("true");
    role
}

/// A role that gathers the parts labelled `of`, and is itself a part of `into`.
fn aggregate(name: &str, of: Option<&str>, into: Option<&str>) -> Value {
    let mut role = object("ClusterRole", name);
    let labels =
        of.into_iter().map(|of| json!({ "matchLabels": { format!("{AGGREGATE}{of}"): "true" } }));
    role["aggregationRule"] = json!({ "clusterRoleSelectors": labels.collect::<Vec<_>>() });
    role["rules"] = json!([]);
    if let Some(into) = into {
        role["metadata"]["labels"][format!("{AGGREGATE}{into}")] = json!("true");
    }
    role
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let mut binding = object("ClusterRoleBinding", role);
    binding["roleRef"] = json!({ "apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role });
    let subjects = groups
        .iter()
        .map(|group| json!({ "apiGroup": RBAC_GROUP, "kind": "Group", "name": group }));
    binding["subjects"] = json!(subjects.collect::<Vec<_>>());
    binding
}

/// What must be added to `stored` so that it holds what `wanted`, an object out of this module,
/// does: the changed object, or `None` when nothing is missing or the owner wants it left alone.
/// What somebody added stays.
pub fn reconciled(stored: &Value, wanted: &Value) -> Option<Value> {
    if stored["metadata"]["annotations"][AUTOUPDATE] != "true" {
        return None;
    }
    let mut object = stored.clone();
    let list = if wanted["kind"] == "ClusterRole" { "rules" } else { "subjects" };
    if wanted.get("aggregationRule").is_some() {
        return None;
    }
    let has = stored[list].as_array().cloned().unwrap_or_default();
    let missing = wanted[list].as_array().into_iter().flatten().filter(|one| match list {
        "rules" => {
            let read = |value: &Value| serde_json::from_value::<PolicyRule>(value.clone()).ok();
            let held: Vec<PolicyRule> = has.iter().filter_map(read).collect();
            read(one).is_some_and(|one| covers(&held, &[one]).is_err())
        }
        _ => !has.contains(one),
    });
    let missing: Vec<Value> = missing.cloned().collect();
    if missing.is_empty() {
        return None;
    }
    object[list] = has.into_iter().chain(missing).collect();
    Some(object)
}
