//! Checks of a definition, in upstream's order.
//!
//! Upstream checks its internal form, in which parts that all versions share are moved to the spec.
//! A mistake in a shared schema has the path `spec.validation`, not `spec.versions[0].schema`.

use serde_json::{Value, json};

use super::surface::{Shared, check_surface};
use super::{MAX_VERSIONS, column};
use crate::field_error::FieldError;
use crate::text::format::Format;
use crate::text::names::{label_mistakes, subdomain_mistakes};

/// Annotation that approves a definition in a group of the Kubernetes community (`x.k8s.io`).
const APPROVED: &str = "api-approved.kubernetes.io";

const APPROVED_FIELD: &str = "metadata.annotations[api-approved.kubernetes.io]";

/// Checks a new definition after [`default`](super::default), and returns the mistakes.
pub fn check(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(object, "/metadata/name");
    let wanted = format!("{}.{}", text(object, "/spec/names/plural"), text(object, "/spec/group"));
    let mut mistakes = subdomain_mistakes(name);
    if name != wanted {
        mistakes.push("must be spec.names.plural+\".\"+spec.group".to_owned());
    }
    for mistake in mistakes {
        errors.push(FieldError::invalid("metadata.name", &name.into(), mistake));
    }
    check_spec(object, &mut errors);
    check_stored_versions(object, &mut errors);
    check_approval(object, &mut errors);
    if object.pointer("/spec/preserveUnknownFields") == Some(&json!(true)) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &json!(true), detail));
    }
    errors
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn versions(object: &Value) -> &[Value] {
    object.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn join(mistakes: &[String]) -> String {
    mistakes.join(",")
}

pub(super) fn check_spec(object: &Value, errors: &mut Vec<FieldError>) {
    check_group(text(object, "/spec/group"), errors);
    let scope = text(object, "/spec/scope");
    let scopes = ["Cluster", "Namespaced"];
    match scope {
        "" => errors.push(FieldError::required("spec.scope", "")),
        scope if scopes.contains(&scope) => {}
        _ => errors.push(FieldError::not_supported("spec.scope", &scope.into(), &scopes)),
    }
    check_versions(object, errors);
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(object, &format!("/spec/names/{name}")).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{name}"), ""));
        }
    }
    check_names(object, errors);
    check_conversion(object, errors);
}

fn check_group(group: &str, errors: &mut Vec<FieldError>) {
    let mistakes = subdomain_mistakes(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !mistakes.is_empty() {
        errors.push(FieldError::invalid("spec.group", &group.into(), join(&mistakes)));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &group.into(), detail));
    }
}

fn check_versions(object: &Value, errors: &mut Vec<FieldError>) {
    let versions = versions(object);
    if versions.len() > MAX_VERSIONS {
        let limit = i64::try_from(MAX_VERSIONS).unwrap_or(i64::MAX);
        errors.push(FieldError::too_many("spec.versions", versions.len(), limit));
        return;
    }
    let shared = Shared::of(versions);
    let mut names = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        if shared.schema.is_none() && version.pointer("/schema/openAPIV3Schema").is_none() {
            let place = format!("{path}.schema.openAPIV3Schema");
            errors.push(FieldError::required(place, ""));
        }
        let name = text(version, "/name");
        let mistakes = label_mistakes(name);
        if !mistakes.is_empty() {
            let place = format!("{path}.name");
            errors.push(FieldError::invalid(place, &name.into(), join(&mistakes)));
        }
        check_deprecation(version, &path, errors);
        check_surface(version, &shared, &path, errors);
        names.push(name);
    }
    shared.check("spec", errors);
    names.sort_unstable();
    let unique = names.windows(2).all(|pair| pair[0] != pair[1]);
    let storage = versions.iter().filter(|version| version["storage"] == true).count();
    let shown: Vec<String> = versions.iter().map(internal_form).collect();
    let shown = format!("[{}]", shown.join(","));
    for (is_right, detail) in [
        (unique, "must contain unique version names"),
        (storage == 1, "must have exactly one version marked as storage version"),
    ] {
        if !is_right {
            errors.push(FieldError::invalid_shown("spec.versions", &shown, detail));
        }
    }
    // The internal form also has the first version's name outside of the versions.
    let first = versions.first().map_or("", |version| text(version, "/name"));
    let mistakes = label_mistakes(first);
    if !first.is_empty() && !mistakes.is_empty() {
        errors.push(FieldError::invalid("spec.version", &first.into(), join(&mistakes)));
    }
}

/// Formats a version as upstream, without schema, subresources, columns, selectable fields.
fn internal_form(version: &Value) -> String {
    let json = |name: &str| go_text::json(version.get(name).unwrap_or(&Value::Null));
    let flag = |name: &str| version[name] == true;
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\
         \"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
         \"SelectableFields\":null}}",
        json("name"),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        json("deprecationWarning"),
    )
}

fn check_deprecation(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    /// Maximum length of a deprecation warning, in bytes.
    const MAX_WARNING: usize = 256;
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut refuse = |detail: String| {
        let place = format!("{path}.deprecationWarning");
        errors.push(FieldError::invalid(place, &warning.into(), detail));
    };
    if version["deprecated"] != true {
        refuse("can only be set for deprecated versions".to_owned());
        return;
    }
    if warning.len() > MAX_WARNING {
        refuse(format!("must be <= {MAX_WARNING} characters long"));
    }
    if warning.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    if let Some(at) = warning.char_indices().find(|(_, c)| !go_text::is_printable(*c)) {
        refuse(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {}",
            at.0
        ));
    }
}

fn check_names(object: &Value, errors: &mut Vec<FieldError>) {
    let mixed = "may have mixed case, but should otherwise match: ";
    for (name, prefix) in [("plural", ""), ("singular", ""), ("kind", mixed), ("listKind", mixed)] {
        let word = text(object, &format!("/spec/names/{name}"));
        let checked = if prefix.is_empty() { word.to_owned() } else { word.to_lowercase() };
        let mistakes = label_mistakes(&checked);
        if !word.is_empty() && !mistakes.is_empty() {
            let detail = format!("{prefix}{}", join(&mistakes));
            errors.push(FieldError::invalid(format!("spec.names.{name}"), &word.into(), detail));
        }
    }
    let (kind, list_kind) =
        (text(object, "/spec/names/kind"), text(object, "/spec/names/listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &list_kind.into(), detail));
    }
    for list in ["shortNames", "categories"] {
        let words = object.pointer(&format!("/spec/names/{list}")).and_then(Value::as_array);
        for (index, word) in words.into_iter().flatten().enumerate() {
            let mistakes = label_mistakes(word.as_str().unwrap_or_default());
            if !mistakes.is_empty() {
                let place = format!("spec.names.{list}[{index}]");
                errors.push(FieldError::invalid(place, word, join(&mistakes)));
            }
        }
    }
}

fn check_conversion(object: &Value, errors: &mut Vec<FieldError>) {
    let Some(conversion) = object.pointer("/spec/conversion").filter(|value| !value.is_null())
    else {
        return;
    };
    let place = "spec.conversion.strategy";
    match text(conversion, "/strategy") {
        "" => errors.push(FieldError::required(place, "")),
        "None" => {
            let webhook = conversion.get("webhook").filter(|value| !value.is_null());
            let detail = "should not be set when strategy is not set to Webhook";
            for (field, name) in [
                ("clientConfig", "webhookClientConfig"),
                ("conversionReviewVersions", "conversionReviewVersions"),
            ] {
                let set = webhook.and_then(|webhook| webhook.get(field));
                if set.is_some_and(|value| !value.is_null() && *value != json!([])) {
                    let place = format!("spec.conversion.{name}");
                    errors.push(FieldError::forbidden(place, detail));
                }
            }
        }
        "Webhook" => {
            let detail = "conversion by webhook is not supported by this server: use None, with \
                          versions that differ in their schemas only";
            errors.push(FieldError::invalid(place, &"Webhook".into(), detail));
        }
        other => {
            errors.push(FieldError::not_supported(place, &other.into(), &["None", "Webhook"]));
        }
    }
}

pub(super) fn check_stored_versions(object: &Value, errors: &mut Vec<FieldError>) {
    let place = "status.storedVersions";
    let empty = json!([]);
    let stored = object.pointer("/status/storedVersions").unwrap_or(&empty);
    let Some(names) = stored.as_array().filter(|names| !names.is_empty()) else {
        // A list that was never created prints as null.
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(place, &Value::Null, detail));
        return;
    };
    let versions = versions(object);
    for version in versions.iter().filter(|version| version["storage"] == true) {
        if !names.contains(&version["name"]) {
            let detail = format!("must have the storage version {}", text(version, "/name"));
            errors.push(FieldError::invalid(place, stored, detail));
        }
    }
    for (index, name) in names.iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == *name) {
            let name_text = name.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {name_text} was previously a storage version, and \
                 must remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name_text} and removes {name_text} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{place}[{index}]"), name, detail));
        }
    }
}

/// State of the approval of a definition in a community group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approval {
    Unneeded,
    Missing,
    Invalid,
    Given,
    Bypassed,
}

pub(super) fn approval(object: &Value) -> Approval {
    let group = text(object, "/spec/group");
    let is_community = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if !is_community {
        return Approval::Unneeded;
    }
    let annotations = object.pointer("/metadata/annotations");
    let approved = annotations.and_then(|all| all.get(APPROVED)).and_then(Value::as_str);
    match approved.unwrap_or_default() {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text => {
            let host = text.split_once("://").map_or("", |(_, rest)| rest);
            let has_host = !host.is_empty() && !host.starts_with(['/', '?']);
            match has_host && Format::Uri.accepts(text) {
                true => Approval::Given,
                false => Approval::Invalid,
            }
        }
    }
}

pub(super) fn check_approval(object: &Value, errors: &mut Vec<FieldError>) {
    let (state, why) = (approval(object), approval_words(object));
    let value = &object["metadata"]["annotations"][APPROVED];
    match state {
        Approval::Missing => errors.push(FieldError::required(APPROVED_FIELD, why)),
        Approval::Invalid => errors.push(FieldError::invalid(APPROVED_FIELD, value, why)),
        Approval::Unneeded | Approval::Given | Approval::Bypassed => {}
    }
}

/// Returns the message of the approval condition (apiextensions `pkg/apihelpers/helpers.go`).
fn approval_words(object: &Value) -> String {
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let needed = format!("protected groups must have approval annotation \"{APPROVED}\"");
    let given = object["metadata"]["annotations"][APPROVED].as_str().unwrap_or_default();
    match approval(object) {
        Approval::Unneeded => String::new(),
        Approval::Missing => format!("{needed}, {see}"),
        Approval::Invalid => {
            format!("{needed} with either a URL or a reason starting with \"unapproved\", {see}")
        }
        Approval::Bypassed => format!("not approved: {}", go_text::quoted(given)),
        Approval::Given => format!("approved in {given}"),
    }
}

/// Condition `KubernetesAPIApprovalPolicyConformant` of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalCondition {
    /// True if the definition is approved.
    pub approved: bool,
    /// Reason as one word, for programs.
    pub reason: &'static str,
    /// Explanation of the reason for people.
    pub message: String,
}

/// Returns the approval condition; `None` if the definition's group needs no approval.
pub fn approval_condition(object: &Value) -> Option<ApprovalCondition> {
    let (approved, reason) = match approval(object) {
        Approval::Unneeded => return None,
        Approval::Missing => (false, "MissingAnnotation"),
        Approval::Invalid => (false, "InvalidAnnotation"),
        Approval::Bypassed => (false, "UnapprovedAnnotation"),
        Approval::Given => (true, "ApprovedAnnotation"),
    };
    Some(ApprovalCondition { approved, reason, message: approval_words(object) })
}

/// Checks the printer columns of the list at `path`.
pub(super) fn check_columns(columns: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, one) in columns.as_array().into_iter().flatten().enumerate() {
        column::check(one, &format!("{path}[{index}]"), errors);
    }
}
