//! Validation and defaults of roles and bindings (k8s.io/kubernetes, pkg/apis/rbac/validation and
//! v1/defaults).

use schema::FieldError;
use serde_json::{Value, json};

const GROUP: &str = rbac::RBAC_GROUP;

type Errors = Vec<FieldError>;

/// Checks the rules and the aggregation rule of a ClusterRole.
pub(super) fn cluster_role(object: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = rules(object, false);
    let Some(aggregation) = given(object, "aggregationRule") else { return errors };
    let selectors = aggregation["clusterRoleSelectors"].as_array();
    if selectors.is_none_or(Vec::is_empty) {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required("aggregationRule.clusterRoleSelectors", detail));
    }
    for (at, selector) in selectors.into_iter().flatten().enumerate() {
        check_selector(
            &format!("aggregationRule.clusterRoleSelectors[{at}]"),
            selector,
            &mut errors,
        );
    }
    errors
}

/// Checks the rules of a Role.
pub(super) fn role(object: &Value, _old: Option<&Value>) -> Errors {
    rules(object, true)
}

fn rules(object: &Value, namespaced: bool) -> Errors {
    let mut errors = Vec::new();
    let rules = object["rules"].as_array().into_iter().flatten().enumerate();
    for (at, rule) in rules {
        check_rule(&format!("rules[{at}]"), rule, namespaced, &mut errors);
    }
    errors
}

fn check_rule(at: &str, rule: &Value, namespaced: bool, errors: &mut Errors) {
    let empty = |field: &str| rule[field].as_array().is_none_or(Vec::is_empty);
    if empty("verbs") {
        let detail = "verbs must contain at least one value";
        errors.push(FieldError::required(format!("{at}.verbs"), detail));
    }
    if !empty("nonResourceURLs") {
        let field = format!("{at}.nonResourceURLs");
        let urls = &rule["nonResourceURLs"];
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(field.clone(), urls, detail));
        }
        if !(empty("apiGroups") && empty("resources") && empty("resourceNames")) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(field, urls, detail));
        }
        return;
    }
    if empty("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        errors.push(FieldError::required(format!("{at}.apiGroups"), detail));
    }
    if empty("resources") {
        let detail = "resource rules must supply at least one resource";
        errors.push(FieldError::required(format!("{at}.resources"), detail));
    }
}

fn check_selector(at: &str, selector: &Value, errors: &mut Errors) {
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    for (number, expression) in expressions.enumerate() {
        let at = format!("{at}.matchExpressions[{number}]");
        let none = expression["values"].as_array().is_none_or(Vec::is_empty);
        match expression["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if none => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{at}.values"), detail));
            }
            "Exists" | "DoesNotExist" if !none => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(format!("{at}.values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid(format!("{at}.operator"), &json!(other), detail));
            }
        }
    }
}

/// Checks the subjects and the role reference of a ClusterRoleBinding.
pub(super) fn cluster_role_binding(object: &Value, old: Option<&Value>) -> Errors {
    binding(object, old, false)
}

/// Checks the subjects and the role reference of a RoleBinding.
pub(super) fn role_binding(object: &Value, old: Option<&Value>) -> Errors {
    binding(object, old, true)
}

fn binding(object: &Value, old: Option<&Value>, namespaced: bool) -> Errors {
    let mut errors = Vec::new();
    let role = &object["roleRef"];
    if text(role, "apiGroup") != GROUP {
        let field = "roleRef.apiGroup";
        errors.push(FieldError::not_supported(field, &json!(text(role, "apiGroup")), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(role, "kind")) {
        let kind = json!(text(role, "kind"));
        errors.push(FieldError::not_supported("roleRef.kind", &kind, kinds));
    }
    match text(role, "name") {
        "" => errors.push(FieldError::required("roleRef.name", "")),
        name if [".", ".."].contains(&name) || name.contains(['/', '%']) => {
            let detail = "may not be '.' or '..', and may not contain '/' or '%'";
            errors.push(FieldError::invalid("roleRef.name", &json!(name), detail));
        }
        _ => {}
    }
    let subjects = object["subjects"].as_array().into_iter().flatten().enumerate();
    for (at, subject) in subjects {
        check_subject(&format!("subjects[{at}]"), subject, namespaced, &mut errors);
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        // Upstream shows the reference with its Go field names.
        let shown = json!({
            "APIGroup": role["apiGroup"],
            "Kind": role["kind"],
            "Name": role["name"],
        });
        errors.push(FieldError::invalid("roleRef", &shown, "cannot change roleRef"));
    }
    errors
}

fn check_subject(at: &str, subject: &Value, namespaced: bool, errors: &mut Errors) {
    if text(subject, "name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    }
    let group = text(subject, "apiGroup");
    let field = format!("{at}.apiGroup");
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !group.is_empty() {
                errors.push(FieldError::not_supported(field, &json!(group), &[""]));
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(format!("{at}.namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(FieldError::not_supported(field, &json!(group), &[GROUP]));
            }
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(format!("{at}.kind"), &json!(other), &kinds));
        }
    }
}

/// Removes null values, which Go clients write for a role without rules. Adds the API groups that
/// clients may omit in the subjects and the role reference of a binding.
pub(super) fn prepare(object: &mut Value) {
    stdx::json::drop_nulls(object);
    if object.get("roleRef").is_some_and(Value::is_object)
        && text(&object["roleRef"], "apiGroup").is_empty()
    {
        object["roleRef"]["apiGroup"] = json!(GROUP);
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        let named = ["User", "Group"].contains(&text(subject, "kind"));
        if named && text(subject, "apiGroup").is_empty() {
            subject["apiGroup"] = json!(GROUP);
        }
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

fn given<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get(field).filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{cluster_role, cluster_role_binding, prepare, role, role_binding};

    fn texts(errors: Vec<schema::FieldError>) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn roles() {
        let good = json!({ "rules": [
            { "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"] },
            { "verbs": ["get"], "nonResourceURLs": ["/x"] },
        ] });
        assert!(cluster_role(&good, None).is_empty());
        assert_eq!(texts(role(&good, None)).len(), 1);
        let bad = json!({
            "rules": [{}, { "verbs": ["get"], "resources": ["x"], "nonResourceURLs": ["/x"] }],
            "aggregationRule": { "clusterRoleSelectors": [{ "matchExpressions": [
                { "key": "a", "operator": "In" },
                { "key": "a", "operator": "Exists", "values": ["x"] },
                { "key": "a", "operator": "Like" },
            ] }] },
        });
        assert_eq!(texts(cluster_role(&bad, None)).len(), 7);
        assert_eq!(
            texts(cluster_role(&json!({ "aggregationRule": {} }), None)),
            ["aggregationRule.clusterRoleSelectors: Required value: at least one \
              clusterRoleSelector required if aggregationRule is non-nil"]
        );
    }

    #[test]
    fn a_role_without_rules_may_say_null() {
        let mut none = json!({ "metadata": { "name": "a" }, "rules": null });
        prepare(&mut none);
        assert_eq!(none, json!({ "metadata": { "name": "a" } }));
    }

    fn made(role_kind: &str, subject: Value) -> Value {
        let mut binding =
            json!({ "roleRef": { "kind": role_kind, "name": "x" }, "subjects": [subject] });
        prepare(&mut binding);
        binding
    }

    #[test]
    fn bindings() {
        let user = made("ClusterRole", json!({ "kind": "User", "name": "jane" }));
        assert_eq!(user["subjects"][0]["apiGroup"], rbac::RBAC_GROUP);
        assert!(cluster_role_binding(&user, None).is_empty());
        let account = made("Role", json!({ "kind": "ServiceAccount", "name": "robot" }));
        assert!(role_binding(&account, None).is_empty());
        assert_eq!(
            texts(cluster_role_binding(&account, None)),
            [
                "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
                "subjects[0].namespace: Required value",
            ]
        );
        let odd = made("Thing", json!({ "kind": "Machine", "apiGroup": "x" }));
        assert_eq!(texts(role_binding(&odd, None)).len(), 3);
        let other = made("ClusterRole", json!({ "kind": "Group", "name": "team" }));
        let changed = texts(role_binding(&account, Some(&other)));
        assert!(changed[0].ends_with("cannot change roleRef"), "{changed:?}");
    }
}
