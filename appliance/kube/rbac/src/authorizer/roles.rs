//! Index of all roles and bindings, which makes authorization decisions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::RBAC_GROUP;
use super::rule::PolicyRule;
use crate::{Action, MASTERS, User, service_account_parts};

/// Subject of a binding: a user, a group or a ServiceAccount.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// Kind of the subject: `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// Name of the subject.
    pub name: String,
    /// Namespace of the ServiceAccount; empty means the namespace of the binding.
    pub namespace: String,
}

/// Reference to the role that a binding grants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleRef {
    /// API group of the role's kind.
    pub api_group: String,
    /// Kind of the role: `Role` or `ClusterRole`.
    pub kind: String,
    /// Name of the role.
    pub name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Binding {
    subjects: Option<Vec<Subject>>,
    role_ref: RoleRef,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Role {
    rules: Option<Vec<PolicyRule>>,
}

/// Decision about an action, with its reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// True if the action is allowed.
    pub allowed: bool,
    /// Binding that allows the action, or errors about missing roles; may be empty.
    pub reason: String,
}

/// Index of the four RBAC kinds, updated by [`Roles::put`] and [`Roles::remove`].
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// Rules by namespace (empty for ClusterRoles) and name.
    roles: HashMap<(String, String), Arc<[PolicyRule]>>,
    /// Bindings by namespace (empty for ClusterRoleBindings), then by name.
    bindings: HashMap<String, BTreeMap<String, Binding>>,
}

/// Rules that a binding grants to a user, with the binding.
struct AppliedRule<'a> {
    rules: Result<Arc<[PolicyRule]>, String>,
    binding: &'a Binding,
    subject: &'a Subject,
    /// Namespace of the binding; empty for a ClusterRoleBinding.
    place: &'a str,
    name: &'a str,
}

impl Roles {
    /// Adds or replaces an object of the RBAC kind `plural`. An invalid object has no rules.
    pub fn put(&mut self, plural: &str, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        match plural {
            "clusterroles" | "roles" => {
                let role = Role::deserialize(object).unwrap_or_default();
                let rules = role.rules.unwrap_or_default();
                self.roles.insert((namespace, name), rules.into());
            }
            "clusterrolebindings" | "rolebindings" => {
                let binding = Binding::deserialize(object).unwrap_or_default();
                self.bindings.entry(namespace).or_default().insert(name, binding);
            }
            _ => {}
        }
    }

    /// Removes an object of the RBAC kind `plural`.
    pub fn remove(&mut self, plural: &str, namespace: &str, name: &str) {
        match plural {
            "clusterroles" | "roles" => {
                self.roles.remove(&(namespace.to_owned(), name.to_owned()));
            }
            "clusterrolebindings" | "rolebindings" => {
                if let Some(bindings) = self.bindings.get_mut(namespace) {
                    bindings.remove(name);
                    if bindings.is_empty() {
                        self.bindings.remove(namespace);
                    }
                }
            }
            _ => {}
        }
    }

    /// Decides if `user` may do `action`. Members of [`MASTERS`] may do every action.
    pub fn authorize(&self, user: &User, action: &Action) -> Decision {
        if user.is_in(MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        let namespace = action.namespace();
        let mut unresolved = Vec::new();
        for applied in self.applied(user, namespace) {
            match &applied.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(action)) => {
                    let reason = format!("RBAC: allowed by {}", applied.describe());
                    return Decision { allowed: true, reason };
                }
                Ok(_) => {}
                Err(why) if unresolved.contains(why) => {}
                Err(why) => unresolved.push(why.clone()),
            }
        }
        let reason = aggregate(&unresolved).map(|why| format!("RBAC: {why}")).unwrap_or_default();
        Decision { allowed: false, reason }
    }

    /// Returns all rules that apply to `user` in `namespace` (empty: cluster-wide), and errors
    /// about missing roles. For [`MASTERS`], only rules of bindings, as in Kubernetes.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Option<String>) {
        let (mut rules, mut unresolved) = (Vec::new(), Vec::new());
        for applied in self.applied(user, namespace) {
            match applied.rules {
                Ok(more) => rules.extend(more.iter().cloned()),
                Err(why) if unresolved.contains(&why) => {}
                Err(why) => unresolved.push(why),
            }
        }
        (rules, aggregate(&unresolved))
    }

    /// Returns the rules of `role`, for a binding in `namespace` (empty for a ClusterRoleBinding).
    ///
    /// # Errors
    /// Returns a message if the role does not exist or its kind is not supported.
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<Arc<[PolicyRule]>, String> {
        let (namespace, word) = match role.kind.as_str() {
            // A Role without a namespace does not exist; an empty namespace is the key of a
            // ClusterRole.
            "Role" if namespace.is_empty() => {
                return Err("must provide namespace when getting role".to_owned());
            }
            "Role" => (namespace, "role"),
            "ClusterRole" => ("", "clusterrole"),
            other => return Err(format!("unsupported role reference kind: {other:?}")),
        };
        let found = self.roles.get(&(namespace.to_owned(), role.name.clone()));
        found.cloned().ok_or_else(|| format!("{word}.{RBAC_GROUP} {:?} not found", role.name))
    }

    #[cfg(test)]
    pub(super) fn bindings_are_empty(&self) -> bool {
        self.bindings.keys().all(String::is_empty)
    }

    fn applied<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = AppliedRule<'a>> {
        let places = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        places.into_iter().flat_map(move |place| {
            let bindings = self.bindings.get(place).into_iter().flatten();
            bindings.filter_map(move |(name, binding)| {
                let subjects = binding.subjects.as_deref().unwrap_or_default();
                let subject = subjects.iter().find(|subject| subject.is(user, place))?;
                let rules = self.rules_of(&binding.role_ref, place);
                Some(AppliedRule { rules, binding, subject, place, name })
            })
        })
    }
}

impl Subject {
    /// Returns true if the subject of a binding in the namespace `place` matches `user`.
    fn is(&self, user: &User, place: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let place = if self.namespace.is_empty() { place } else { &self.namespace };
                service_account_parts(&user.name) == Some((place, self.name.as_str()))
            }
            _ => false,
        }
    }
}

impl AppliedRule<'_> {
    /// Returns the description of the binding for [`Decision::reason`].
    fn describe(&self) -> String {
        let title = match self.place {
            "" => format!("ClusterRoleBinding {:?}", self.name),
            place => format!("RoleBinding {:?}", format!("{}/{place}", self.name)),
        };
        let subject = match (self.subject.kind.as_str(), self.subject.namespace.as_str()) {
            ("ServiceAccount", "") => format!("{}/{}", self.subject.name, self.place),
            ("ServiceAccount", of) => format!("{}/{of}", self.subject.name),
            _ => self.subject.name.clone(),
        };
        let role = &self.binding.role_ref;
        format!("{title} of {} {:?} to {} {subject:?}", role.kind, role.name, self.subject.kind)
    }
}

/// Joins errors as Go does: `a` or `[a, b]`; `None` without errors.
fn aggregate(errors: &[String]) -> Option<String> {
    match errors {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
