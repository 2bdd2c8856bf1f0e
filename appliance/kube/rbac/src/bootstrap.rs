//! Default roles and bindings, which the box creates at its first start.
//!
//! Roles whose names begin with `system:`, and `admin`, `edit` and `view`, come from Kubernetes,
//! with rules for the kinds of the box (k8s.io/kubernetes,
//! plugin/pkg/auth/authorizer/rbac/bootstrappolicy). Roles `tinbox:…` are defined by the box.

use serde_json::{Value, json};

use crate::authorizer::{PolicyRule, RBAC_GROUP, covers};
use crate::user::{AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED};

/// Label of all default roles and bindings.
const BOOTSTRAPPING: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");
/// Annotation that an administrator sets to `false` to keep an object unchanged.
pub const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
/// Prefix of the label that adds a role's rules to `admin`, `edit` or `view`: `…aggregate-to-view`.
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const ALL: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

const TINKERBELL: &str = "tinkerbell.org";
const BMC: &str = "bmc.tinkerbell.org";
/// API groups whose kinds describe machines and their workflows.
const MACHINES: &[&str] = &[
    TINKERBELL,
    BMC,
    "infrastructure.cluster.x-k8s.io",
    "cluster.x-k8s.io",
    "bootstrap.cluster.x-k8s.io",
    "tinbox.dev",
];
/// ClusterRoles of users. Each is bound to the group of its name.
pub const USER_ROLES: [&str; 3] = ["tinbox:admin", "tinbox:operator", "tinbox:viewer"];
/// API group of the box's own system: settings, reset and update, which only administrators may
/// write.
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

/// Returns the default ClusterRoles, sorted by name.
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

/// Returns the ClusterRoles `tinbox:…` for users of the box.
fn box_roles() -> Vec<Value> {
    let mut operator = viewer_rules();
    operator.extend(edit_rules().into_iter().filter(|rule| {
        // An operator must not be able to act as another account. A Secret with the token of an
        // account is readable all the same; the page on users and roles warns of it.
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

/// Returns the default ClusterRoleBindings.
pub fn cluster_role_bindings() -> Vec<Value> {
    let all_accounts = [SERVICE_ACCOUNTS];
    let mut bindings = vec![
        binding("cluster-admin", &[MASTERS]),
        binding("system:basic-user", &[AUTHENTICATED]),
        binding("system:discovery", &[AUTHENTICATED]),
        binding("system:public-info-viewer", &[AUTHENTICATED, UNAUTHENTICATED]),
        binding("system:service-account-issuer-discovery", &all_accounts),
    ];
    // The users of a role of the pages are the group of this name.
    bindings.extend(USER_ROLES.map(|role| binding(role, &[role])));
    bindings
}

/// Returns exactly the permissions that unmodified CAPT needs on the box (CAPT's page on remote
/// Tinkerbell). API discovery is not listed, because every user may use it.
fn capt_rules() -> Vec<PolicyRule> {
    vec![
        on(&["get", "list", "patch"], &[TINKERBELL], &["hardware"]),
        on(&["get", "create", "delete"], &[TINKERBELL], &["templates"]),
        on(&["get", "list", "watch", "create", "delete"], &[TINKERBELL], &["workflows"]),
        on(&["get", "list", "watch", "create"], &[BMC], &["jobs"]),
    ]
}

/// Returns permissions to read everything except Secrets and access rules. Machine objects are
/// fully readable, including user data, which may contain secrets.
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

/// Returns permissions to manage access in a namespace: roles, role bindings, access reviews.
fn access_rules() -> Vec<PolicyRule> {
    vec![
        on(&["create"], &["authorization.k8s.io"], &["localsubjectaccessreviews"]),
        on(ALL, &[RBAC_GROUP], &["rolebindings", "roles"]),
    ]
}

/// Returns the permissions of every user to query the user's own identity and permissions.
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

/// Makes a ClusterRole whose rules are added to the aggregated role `of`.
fn part(name: &str, of: &str, rules: &[PolicyRule]) -> Value {
    let mut role = role(name, rules);
    role["metadata"]["labels"][format!("{AGGREGATE}{of}")] = json!("true");
    role
}

/// Makes a ClusterRole with the rules of the roles labeled `of`; the role is part of `into`.
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

/// Returns the default object `stored` with the missing rules or subjects of `wanted` added; other
/// content stays. `None` if nothing is missing, or if [`AUTOUPDATE`] is not `true`.
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
