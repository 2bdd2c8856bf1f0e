//! Status of a CustomResourceDefinition: accepted names and conditions (apiextensions-apiserver
//! `pkg/controller/status/naming_controller.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::builtin;
use crate::object::time_text;
use crate::reviews::REVIEWS;

/// Names in one API group that other kinds have: resource names, kinds and list kinds.
#[derive(Debug, Clone, Default)]
pub struct ReservedNames {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl ReservedNames {
    /// Returns the names of Kubernetes' own kinds in `group`, which custom kinds cannot have.
    pub fn natively(group: &str) -> Self {
        static NATIVE: OnceLock<BTreeMap<String, ReservedNames>> = OnceLock::new();
        let native = NATIVE.get_or_init(|| {
            let mut groups = BTreeMap::<String, Self>::new();
            for one in builtin::natives() {
                let taken = groups.entry(one.group).or_default();
                taken.resources.extend([one.plural, one.singular]);
                taken.resources.extend(one.short_names);
                taken.kinds.extend([one.kind, one.list_kind]);
            }
            for one in &REVIEWS {
                let taken = groups.entry(one.group.to_owned()).or_default();
                taken.resources.extend([one.resource.to_owned(), one.kind.to_lowercase()]);
                taken.kinds.insert(one.kind.to_owned());
            }
            groups
        });
        native.get(group).cloned().unwrap_or_default()
    }

    /// Adds the accepted names of other CustomResourceDefinitions.
    #[must_use]
    pub fn and<'a>(mut self, others: impl Iterator<Item = &'a Value>) -> Self {
        for other in others {
            let names = &other["status"]["acceptedNames"];
            for field in ["plural", "singular"] {
                self.resources.extend(names[field].as_str().map(str::to_owned));
            }
            self.resources.extend(texts(&names["shortNames"]).map(str::to_owned));
            for field in ["kind", "listKind"] {
                self.kinds.extend(names[field].as_str().map(str::to_owned));
            }
        }
        self
    }
}

/// Updates the status of `crd`: stored versions, accepted names and conditions.
pub fn settle(crd: &mut Value, taken: &ReservedNames, now: Timestamp) {
    if !crd["status"].is_object() {
        crd["status"] = json!({ "conditions": [], "acceptedNames": { "plural": "", "kind": "" } });
    }
    schema::crd::remember_storage_version(crd);
    let conflict = accept_names(crd, taken);
    let accepted = conflict.is_none();
    let (reason, message) =
        conflict.unwrap_or_else(|| ("NoConflicts", "no conflicts found".to_owned()));
    set_condition(crd, "NamesAccepted", accepted, reason, &message, now);
    // An established kind stays established, even if it later requests names that are taken.
    if accepted {
        let message = "the initial names have been accepted";
        set_condition(crd, "Established", true, "InitialNamesAccepted", message, now);
    } else if !is(crd, "Established") {
        let message = "not all names are accepted";
        set_condition(crd, "Established", false, "NotAccepted", message, now);
    }
    if let Some(condition) = schema::crd::approval_condition(crd) {
        let schema::crd::ApprovalCondition { approved, reason, message } = condition;
        let kind = "KubernetesAPIApprovalPolicyConformant";
        set_condition(crd, kind, approved, reason, &message, now);
    }
}

/// Returns true if the condition `kind` of a definition is `True`.
pub fn is(crd: &Value, kind: &str) -> bool {
    let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == kind && one["status"] == "True")
}

/// Sets a condition; `lastTransitionTime` changes only if the status changes.
pub fn set_condition(
    crd: &mut Value,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let conditions = &mut crd["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let status = if holds { "True" } else { "False" };
    let known = conditions.iter().position(|one| one["type"] == kind);
    let since = known.map(|at| &conditions[at]).filter(|one| one["status"] == status);
    let since =
        since.map_or_else(|| json!(time_text(now)), |one| one["lastTransitionTime"].clone());
    let condition = json!({
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    });
    match known {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

/// Accepts the requested names that are not taken. Returns reason and message of the last conflict;
/// `None` if all names are accepted.
fn accept_names(crd: &mut Value, taken: &ReservedNames) -> Option<(&'static str, String)> {
    let asked = crd["spec"]["names"].clone();
    let mut accepted = crd["status"]["acceptedNames"].clone();
    if !accepted.is_object() {
        accepted = json!({ "plural": "", "kind": "" });
    }
    let mut conflict = None;
    let in_use = |name: &str| format!("{name:?} is already in use");
    for (field, reason, used) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let had: Vec<&str> = words(&accepted[field]).collect();
        let clashes =
            words(&asked[field]).filter(|name| !had.contains(name) && used.contains(*name));
        let clashes: Vec<String> = clashes.map(in_use).collect();
        match clashes.as_slice() {
            [] => copy(&asked, &mut accepted, field),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    copy(&asked, &mut accepted, "categories");
    crd["status"]["acceptedNames"] = accepted;
    conflict
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    let Some(map) = to.as_object_mut() else { return };
    match from.get(field).filter(|value| !value.is_null()) {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

/// Returns the text itself, or the texts of a list.
fn words(value: &Value) -> impl Iterator<Item = &str> {
    value.as_str().into_iter().chain(texts(value))
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::{ReservedNames, is, settle};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn crd(plural: &str, kind: &str, short: &str) -> Value {
        json!({ "spec": {
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                "listKind": format!("{kind}List"), "shortNames": [short] },
            "versions": [{ "name": "v1", "storage": true }],
        } })
    }

    fn settled(mut crd: Value, others: &[&Value]) -> Value {
        settle(
            &mut crd,
            &ReservedNames::default().and(others.iter().copied()),
            Timestamp::UNIX_EPOCH,
        );
        crd
    }

    /// Expected values were recorded from kube-apiserver 1.35.
    #[test]
    fn names_belong_to_the_first() {
        let foos = settled(crd("foos", "Foo", "f"), &[]);
        assert!(is(&foos, "NamesAccepted") && is(&foos, "Established"));
        assert_eq!(foos["status"]["storedVersions"], json!(["v1"]));
        let bars = settled(crd("bars", "Foo", "f"), &[&foos]);
        let condition = &bars["status"]["conditions"][0];
        assert_eq!(condition["reason"], "ListKindConflict");
        assert_eq!(condition["message"], "\"FooList\" is already in use");
        assert_eq!(bars["status"]["acceptedNames"], json!({ "plural": "bars", "kind": "" }));
        assert_eq!(bars["status"]["conditions"][1]["reason"], "NotAccepted");
        let bazs = settled(crd("bazs", "Baz", "f"), &[&foos, &bars]);
        assert_eq!(bazs["status"]["conditions"][0]["reason"], "ShortNamesConflict");
        assert_eq!(bazs["status"]["acceptedNames"]["kind"], "Baz");
        // After the first definition is removed, its names are free.
        let bars = settled(bars, &[&bazs]);
        assert!(is(&bars, "NamesAccepted") && is(&bars, "Established"));
        assert_eq!(bars["status"]["acceptedNames"]["shortNames"], json!(["f"]));
    }

    #[test]
    fn what_was_served_stays_served() {
        let foos = settled(crd("foos", "Foo", "f"), &[]);
        let mut bars = settled(crd("bars", "Bar", "b"), &[&foos]);
        bars["spec"]["names"]["shortNames"] = json!(["f", "b"]);
        bars["spec"]["versions"] = json!([{ "name": "v2", "storage": true }]);
        let bars = settled(bars, &[&foos]);
        assert!(!is(&bars, "NamesAccepted") && is(&bars, "Established"));
        assert_eq!(bars["status"]["acceptedNames"]["shortNames"], json!(["b"]));
        assert_eq!(bars["status"]["storedVersions"], json!(["v1", "v2"]));
    }
}
