//! Access reviews: check of a user's permission, and list of the caller's permissions.

use std::collections::BTreeMap;

use rbac::{Action, Target, User};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use resources::reviews::ReviewType;
use resources::{FieldSelector, LabelSelector, StatusError};
use schema::FieldError;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    user: String,
    groups: Vec<String>,
    uid: String,
    extra: BTreeMap<String, Vec<String>>,
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<PathAttributes>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    name: String,
    field_selector: Option<SelectorAttributes>,
    label_selector: Option<SelectorAttributes>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PathAttributes {
    path: String,
    verb: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SelectorAttributes {
    raw_selector: String,
    requirements: Vec<Value>,
}

/// Answers `SelfSubjectAccessReview`, `SubjectAccessReview` and `LocalSubjectAccessReview`.
pub(super) async fn review(call: &Call<'_>, object: &mut Value) -> Result<(), StatusError> {
    let spec: Spec = call.read(&object["spec"])?;
    let review_type = call.review.review_type;
    let mut errors = check_spec(&spec, review_type);
    errors.extend(check_metadata(&object["metadata"], review_type));
    if review_type == ReviewType::LocalSubjectAccess {
        errors.extend(check_place(call, &spec, object));
    }
    if !errors.is_empty() {
        return Err(call.review.invalid("", &errors));
    }
    let unparsed = unparsed_selectors(&spec);
    let user = match review_type {
        ReviewType::SelfSubjectAccess => call.user.clone(),
        _ => User { name: spec.user, uid: spec.uid, groups: spec.groups, extra: spec.extra },
    };
    let action = match (spec.resource_attributes, spec.non_resource_attributes) {
        (Some(of), _) => Action {
            verb: of.verb,
            target: Target::Resource {
                group: of.group,
                resource: of.resource,
                subresource: of.subresource,
                namespace: of.namespace,
                name: of.name,
            },
        },
        (None, of) => {
            let of = of.unwrap_or_default();
            Action::on_path(of.verb, of.path)
        }
    };
    let decision = call.auth.roles.authorize(&user, &action).await?;
    let mut status = json!({ "allowed": decision.allowed });
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    if !unparsed.is_empty() {
        status["evaluationError"] = json!(unparsed.join("; "));
    }
    object["status"] = status;
    Ok(())
}

fn check_spec(spec: &Spec, review_type: ReviewType) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let invalid = |field: &str, value: Value, why: &str| FieldError::invalid(field, &value, why);
    match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(_), Some(of)) => errors.push(invalid(
            "spec.nonResourceAttributes",
            json!({ "path": of.path, "verb": of.verb }),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    if review_type != ReviewType::SelfSubjectAccess
        && spec.user.is_empty()
        && spec.groups.is_empty()
    {
        let why = "at least one of user or group must be specified";
        errors.push(invalid("spec.user", json!(""), why));
    }
    let of = spec.resource_attributes.as_ref();
    let selectors = [
        ("fieldSelector", of.and_then(|of| of.field_selector.as_ref())),
        ("labelSelector", of.and_then(|of| of.label_selector.as_ref())),
    ];
    for (name, selector) in selectors {
        let Some(selector) = selector else { continue };
        let at = format!("spec.resourceAttributes.{name}");
        match (selector.raw_selector.is_empty(), selector.requirements.is_empty()) {
            (false, false) => errors.push(invalid(
                &format!("{at}.rawSelector"),
                json!(selector.raw_selector),
                "may not specified at the same time as requirements",
            )),
            (true, true) => errors.push(FieldError::required(
                format!("{at}.requirements"),
                format!("when {at} is specified, requirements or rawSelector is required"),
            )),
            _ => {}
        }
    }
    errors
}

fn check_metadata(metadata: &Value, review_type: ReviewType) -> Option<FieldError> {
    let local = review_type == ReviewType::LocalSubjectAccess;
    let ours = |key: &str| key == "managedFields" || (local && key == "namespace");
    let mut keys = metadata.as_object().into_iter().flatten().map(|(key, _)| key);
    let why = if local { "must be empty except for namespace" } else { "must be empty" };
    keys.any(|key| !ours(key)).then(|| FieldError::invalid("metadata", metadata, why))
}

fn check_place(call: &Call<'_>, spec: &Spec, object: &mut Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let here = call.path.namespace.clone().unwrap_or_default();
    let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let field = "metadata.namespace";
    if !["", here.as_str()].contains(&given) {
        let why = "must match the namespace of the request";
        errors.push(FieldError::invalid(field, &json!(given), why));
    }
    object["metadata"]["namespace"] = json!(here);
    if let Some(of) = spec.resource_attributes.as_ref().filter(|of| of.namespace != here) {
        let field = "spec.resourceAttributes.namespace";
        let why = "must match metadata.namespace";
        errors.push(FieldError::invalid(field, &json!(of.namespace), why));
    }
    if let Some(of) = &spec.non_resource_attributes {
        let value = json!({ "path": of.path, "verb": of.verb });
        let why = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", &value, why));
    }
    errors
}

/// Returns messages about invalid selectors, which are ignored. Roles ignore all selectors, so a
/// decision never depends on a selector.
fn unparsed_selectors(spec: &Spec) -> Vec<String> {
    let Some(of) = &spec.resource_attributes else { return Vec::new() };
    let raw = |selector: &Option<SelectorAttributes>| {
        selector.as_ref().map(|selector| selector.raw_selector.clone()).unwrap_or_default()
    };
    let mut unparsed = Vec::new();
    if FieldSelector::parse(&raw(&of.field_selector)).is_err() {
        unparsed.push("spec.resourceAttributes.fieldSelector ignored due to parse error");
    }
    if LabelSelector::parse(&raw(&of.label_selector)).is_err() {
        unparsed.push("spec.resourceAttributes.labelSelector ignored due to parse error");
    }
    unparsed.into_iter().map(str::to_owned).collect()
}

/// Answers a `SelfSubjectRulesReview` for one namespace.
pub(super) async fn rules(call: &Call<'_>, object: &mut Value) -> Result<(), StatusError> {
    let namespace = object["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(StatusError::bad_request("no namespace on request"));
    }
    let roles = call.auth.roles.now().await?;
    let (rules, unresolved) = roles.rules_for(call.user, namespace);
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in rules {
        if !rule.resources.is_empty() {
            let mut entry = json!({
                "verbs": rule.verbs,
                "apiGroups": rule.api_groups,
                "resources": rule.resources,
            });
            if !rule.resource_names.is_empty() {
                entry["resourceNames"] = json!(rule.resource_names);
            }
            resources.push(entry);
        }
        if !rule.non_resource_urls.is_empty() {
            let urls = &rule.non_resource_urls;
            paths.push(json!({ "verbs": rule.verbs, "nonResourceURLs": urls }));
        }
    }
    let mut status = json!({
        "resourceRules": resources,
        "nonResourceRules": paths,
        "incomplete": false,
    });
    if let Some(why) = unresolved {
        status["evaluationError"] = json!(why);
    }
    object["metadata"] = json!({});
    object["spec"] = json!({});
    object["status"] = status;
    Ok(())
}
