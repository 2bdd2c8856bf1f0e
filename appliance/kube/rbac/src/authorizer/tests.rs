//! Tests of roles, escalation, aggregation and the default roles.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::{Refusal, RoleRef, Roles, aggregated, escalation};
use crate::{AUTHENTICATED, Action, MASTERS, User, bootstrap};

fn on(verb: &str, resource: &str, name: &str) -> Action {
    Action::on(verb, "g", resource, "n", name)
}

fn bound(namespace: &str, role_kind: &str, role: &str, subject: Value) -> Value {
    json!({
        "metadata": { "namespace": namespace, "name": format!("to-{role}") },
        "roleRef": { "apiGroup": super::RBAC_GROUP, "kind": role_kind, "name": role },
        "subjects": [subject],
    })
}

fn index() -> Roles {
    let mut roles = Roles::default();
    let reads = |verbs: Value| json!([{ "verbs": verbs, "apiGroups": ["g"], "resources": ["a"] }]);
    let role = |namespace: &str, name: &str, rules: Value| {
        let metadata = json!({ "namespace": namespace, "name": name });
        json!({ "metadata": metadata, "rules": rules })
    };
    roles.put("clusterroles", &role("", "reader", reads(json!(["get"]))));
    roles.put("roles", &role("n", "writer", reads(json!(["create"]))));
    roles.put(
        "clusterrolebindings",
        &bound("", "ClusterRole", "reader", json!({ "kind": "User", "name": "jane" })),
    );
    roles.put(
        "rolebindings",
        &bound("n", "Role", "writer", json!({ "kind": "ServiceAccount", "name": "robot" })),
    );
    roles.put(
        "rolebindings",
        &bound("n", "Role", "gone", json!({ "kind": "Group", "name": "team" })),
    );
    roles
}

#[test]
fn decisions_and_their_reasons() {
    let roles = index();
    let ask = |user: &User, action: Action| {
        let decision = roles.authorize(user, &action);
        (decision.allowed, decision.reason)
    };
    let jane = User::known("jane", []);
    let robot = User::known("system:serviceaccount:n:robot", []);
    let team = User::known("x", ["team".to_owned()]);
    assert_eq!(
        ask(&jane, on("get", "a", "x")),
        (
            true,
            "RBAC: allowed by ClusterRoleBinding \"to-reader\" of ClusterRole \"reader\" to \
            User \"jane\""
                .to_owned()
        )
    );
    assert_eq!(ask(&jane, on("create", "a", "")), (false, String::new()));
    assert_eq!(
        ask(&robot, on("create", "a", "")),
        (
            true,
            "RBAC: allowed by RoleBinding \"to-writer/n\" of Role \"writer\" to \
            ServiceAccount \"robot/n\""
                .to_owned()
        )
    );
    assert!(!ask(&robot, Action::on("create", "g", "a", "other", "")).0);
    assert!(!ask(&robot, Action::on("create", "g", "a", "", "")).0);
    assert_eq!(
        ask(&team, on("get", "a", "x")),
        (false, "RBAC: role.rbac.authorization.k8s.io \"gone\" not found".to_owned())
    );
    let master = User::known("root", [MASTERS.to_owned()]);
    assert_eq!(ask(&master, Action::on("", "x", "y", "", "")), (true, String::new()));
}

#[test]
fn what_goes_is_forgotten() {
    let mut roles = index();
    let jane = User::known("jane", []);
    roles.remove("clusterroles", "", "reader");
    let decision = roles.authorize(&jane, &on("get", "a", "x"));
    assert_eq!(decision.reason, "RBAC: clusterrole.rbac.authorization.k8s.io \"reader\" not found");
    roles.remove("clusterrolebindings", "", "to-reader");
    assert_eq!(roles.authorize(&jane, &on("get", "a", "x")).reason, "");
    roles.remove("rolebindings", "n", "to-writer");
    roles.remove("rolebindings", "n", "to-gone");
    assert!(roles.bindings_are_empty());
    // An invalid object grants nothing and breaks nothing else.
    roles.put("clusterroles", &json!({ "metadata": { "name": "x" }, "rules": "y" }));
    roles.put("clusterrolebindings", &json!({ "subjects": 7 }));
}

#[test]
fn a_cluster_binding_reaches_no_role_of_a_namespace() {
    let mut roles = index();
    roles.put(
        "clusterrolebindings",
        &bound("", "Role", "reader", json!({ "kind": "User", "name": "mallory" })),
    );
    let mallory = User::known("mallory", []);
    assert!(!roles.authorize(&mallory, &on("get", "a", "x")).allowed);
    let role = RoleRef { kind: "Role".to_owned(), name: "reader".to_owned(), ..RoleRef::default() };
    assert!(roles.rules_of(&role, "").is_err());
}

#[test]
fn nobody_grants_what_they_do_not_hold() {
    let mut roles = index();
    let jane = User::known("jane", []);
    let role = |verb: &str| {
        json!({ "metadata": { "name": "new" },
            "rules": [{ "verbs": [verb], "apiGroups": ["g"], "resources": ["a"] }] })
    };
    let write = |roles: &Roles, plural: &str, new: &Value, old: Option<&Value>| {
        escalation(roles, &jane, plural, ("", "new"), new, old)
    };
    let why = |refused: Result<(), Refusal>| match refused.unwrap_err() {
        Refusal::Forbidden(why) => why,
        Refusal::NoSuchRole(name) => panic!("{name} is there"),
    };
    assert_eq!(write(&roles, "clusterroles", &role("get"), None), Ok(()));
    assert_eq!(
        why(write(&roles, "clusterroles", &role("create"), None)),
        "user \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC \
         permissions not currently held:\n{APIGroups:[\"g\"], Resources:[\"a\"], \
         Verbs:[\"create\"]}"
    );
    // Removing a finalizer grants no permission.
    let mut finalizing = role("create");
    finalizing["metadata"]["finalizers"] = json!(["x"]);
    assert_eq!(write(&roles, "clusterroles", &role("create"), Some(&finalizing)), Ok(()));
    let mut gathering = role("get");
    gathering["aggregationRule"] = json!({ "clusterRoleSelectors": [{}] });
    let refused = why(write(&roles, "clusterroles", &gathering, None));
    assert_eq!(refused, "must have cluster-admin privileges to use the aggregationRule");

    let to = |name: &str| bound("", "ClusterRole", name, json!({ "kind": "User", "name": "x" }));
    assert_eq!(write(&roles, "clusterrolebindings", &to("reader"), None), Ok(()));
    assert_eq!(
        write(&roles, "clusterrolebindings", &to("none"), None).unwrap_err(),
        Refusal::NoSuchRole("none".to_owned())
    );
    roles.put(
        "clusterroles",
        &json!({ "metadata": { "name": "more" },
        "rules": role("delete")["rules"] }),
    );
    assert!(write(&roles, "clusterrolebindings", &to("more"), None).is_err());
    // The verbs `bind` and `escalate` permit an escalation.
    for (verb, resource, name) in
        [("bind", "clusterroles", "more"), ("escalate", "clusterroles", "new")]
    {
        roles.put(
            "clusterroles",
            &json!({ "metadata": { "name": "reader" }, "rules": [{
            "verbs": [verb], "apiGroups": [super::RBAC_GROUP], "resources": [resource],
            "resourceNames": [name] }] }),
        );
        let (plural, object) = match verb {
            "bind" => ("clusterrolebindings", to("more")),
            _ => ("clusterroles", role("create")),
        };
        assert_eq!(write(&roles, plural, &object, None), Ok(()), "{verb}");
    }
    let unreadable = json!({ "metadata": { "name": "new" }, "rules": [{ "verbs": "get" }] });
    let why = why(write(&index(), "clusterroles", &unreadable, None));
    assert!(why.starts_with("its rules cannot be read: "), "{why}");
    let master = User::known("root", [MASTERS.to_owned()]);
    let anything = escalation(&roles, &master, "clusterrolebindings", ("", "x"), &to("none"), None);
    assert_eq!(anything, Ok(()));
}

#[test]
fn aggregation_gathers_by_labels() {
    let all = bootstrap::cluster_roles();
    let role = |name: &str| {
        all.iter().find(|role| role["metadata"]["name"] == name).unwrap_or_else(|| panic!("{name}"))
    };
    let view = aggregated(role("view"), &all).unwrap();
    assert!(view.as_array().is_some_and(|rules| rules.len() > 2), "{view}");
    assert_eq!(aggregated(role("cluster-admin"), &all), None);
    let mut done = role("view").clone();
    done["rules"] = view;
    assert_eq!(aggregated(&done, &all), None, "nothing is written twice");
    let odd = json!({ "metadata": { "name": "odd" }, "aggregationRule": {
        "clusterRoleSelectors": [{ "matchExpressions": [
            { "key": "kubernetes.io/bootstrapping", "operator": "Exists" },
            { "key": "x", "operator": "DoesNotExist" },
            { "key": "kubernetes.io/bootstrapping", "operator": "In", "values": ["rbac-defaults"] },
            { "key": "kubernetes.io/bootstrapping", "operator": "NotIn", "values": ["y"] },
        ] }] } });
    assert!(aggregated(&odd, &all).is_some());
    // A second selector for the same role is cheap: no rule is read again.
    let cost = |selectors: usize| {
        let rule = json!({ "clusterRoleSelectors": vec![json!({}); selectors] });
        let role = json!({ "aggregationRule": rule });
        let began = cpu_time();
        assert!(aggregated(&role, &all).is_some());
        cpu_time() - began
    };
    let one = (0..5).map(|_| cost(1)).min().unwrap();
    let many = cost(1000);
    assert!(many < one * 200, "one selector takes {one:?}, 1000 of them {many:?}");
}

/// CPU time of this thread; other threads do not add to it.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Returns the default roles with computed aggregated roles, as on a running box.
fn shipped() -> Roles {
    let mut all = bootstrap::cluster_roles();
    for _ in 0..3 {
        let before = all.clone();
        for role in &mut all {
            if let Some(rules) = aggregated(role, &before) {
                role["rules"] = rules;
            }
        }
    }
    let mut roles = Roles::default();
    for role in &all {
        roles.put("clusterroles", role);
    }
    for binding in bootstrap::cluster_role_bindings() {
        roles.put("clusterrolebindings", &binding);
    }
    roles
}

#[test]
fn the_shipped_roles() {
    let mut roles = shipped();
    for role in ["tinbox:admin", "tinbox:operator", "tinbox:viewer", "tinbox:capt", "edit"] {
        roles.put(
            "clusterrolebindings",
            &bound("", "ClusterRole", role, json!({ "kind": "User", "name": role })),
        );
    }
    let may = |user: &str, verb: &str, group: &str, resource: &str| {
        let user = User::known(user, []);
        roles.authorize(&user, &Action::on(verb, group, resource, "n", "x")).allowed
    };
    let (tinkerbell, bmc) = ("tinkerbell.org", "bmc.tinkerbell.org");
    for (user, verb, group, resource, expected) in [
        ("tinbox:admin", "escalate", super::RBAC_GROUP, "clusterroles", true),
        ("tinbox:operator", "create", tinkerbell, "workflows", true),
        ("tinbox:operator", "get", "tinbox.dev", "workflows/progress", true),
        ("tinbox:operator", "create", "", "secrets", true),
        ("tinbox:operator", "create", "", "serviceaccounts/token", false),
        ("tinbox:operator", "impersonate", "", "serviceaccounts", false),
        ("tinbox:operator", "create", super::RBAC_GROUP, "rolebindings", false),
        ("tinbox:viewer", "list", tinkerbell, "hardware", true),
        ("tinbox:viewer", "get", "tinbox.dev", "workflows/progress", true),
        ("tinbox:viewer", "get", "tinbox.dev", "hardware/console", true),
        ("tinbox:viewer", "create", "tinbox.dev", "hardware/console", false),
        ("tinbox:operator", "create", "tinbox.dev", "hardware/console", true),
        ("tinbox:viewer", "list", "box.tinbox.dev", "settings", false),
        ("tinbox:operator", "patch", "box.tinbox.dev", "settings", false),
        ("tinbox:viewer", "list", "box.tinbox.dev", "update", true),
        ("edit", "create", "box.tinbox.dev", "update", false),
        ("tinbox:admin", "patch", "box.tinbox.dev", "settings", true),
        ("tinbox:viewer", "patch", tinkerbell, "hardware", false),
        ("tinbox:viewer", "get", "", "secrets", false),
        ("tinbox:viewer", "get", super::RBAC_GROUP, "clusterroles", false),
        ("edit", "impersonate", "", "serviceaccounts", true),
        ("edit", "get", tinkerbell, "hardware", true),
        ("tinbox:capt", "list", tinkerbell, "hardware", true),
        ("tinbox:capt", "patch", tinkerbell, "hardware", true),
        ("tinbox:capt", "watch", tinkerbell, "hardware", false),
        ("tinbox:capt", "update", tinkerbell, "hardware", false),
        ("tinbox:capt", "get", tinkerbell, "templates", true),
        ("tinbox:capt", "list", tinkerbell, "templates", false),
        ("tinbox:capt", "watch", tinkerbell, "workflows", true),
        ("tinbox:capt", "patch", tinkerbell, "workflows", false),
        ("tinbox:capt", "create", bmc, "jobs", true),
        ("tinbox:capt", "delete", bmc, "jobs", false),
        ("tinbox:capt", "get", bmc, "machines", false),
        ("tinbox:capt", "get", "", "secrets", false),
        ("tinbox:capt", "create", "authorization.k8s.io", "selfsubjectaccessreviews", true),
        ("nobody", "get", tinkerbell, "hardware", false),
    ] {
        assert_eq!(may(user, verb, group, resource), expected, "{user} {verb} {resource}");
    }
    let path = |user: &User, path: &str| roles.authorize(user, &Action::on_path("get", path));
    assert!(path(&User::known("nobody", []), "/apis/tinkerbell.org").allowed);
    assert!(path(&User::anonymous(), "/healthz").allowed);
    assert!(!path(&User::anonymous(), "/apis").allowed);
}

#[test]
fn shipped_objects_grow_and_keep_what_was_added() {
    let wanted = &bootstrap::cluster_role_bindings()[1];
    assert_eq!(bootstrap::reconciled(wanted, wanted), None);
    let mut stored = wanted.clone();
    stored["subjects"] = json!([{ "kind": "User", "name": "mine" }]);
    let grown = bootstrap::reconciled(&stored, wanted).unwrap();
    assert_eq!(grown["subjects"].as_array().unwrap().len(), 2);
    assert_eq!(grown["subjects"][1]["name"], AUTHENTICATED);
    stored["metadata"]["annotations"][bootstrap::AUTOUPDATE] = json!("false");
    assert_eq!(bootstrap::reconciled(&stored, wanted), None);
    let roles = bootstrap::cluster_roles();
    let wanted = roles.iter().find(|role| role["metadata"]["name"] == "tinbox:capt").unwrap();
    let mut stored = wanted.clone();
    stored["rules"] = json!([{ "verbs": ["*"], "apiGroups": ["tinkerbell.org"],
        "resources": ["*"] }]);
    let grown = bootstrap::reconciled(&stored, wanted).unwrap();
    assert_eq!(grown["rules"].as_array().unwrap().len(), 2, "only the jobs were missing");
}
