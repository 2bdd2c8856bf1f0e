//! Every role and binding there is, and what follows from them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::RBAC_GROUP;
use super::rule::PolicyRule;
use crate::{Action, MASTERS, User, service_account_parts};

/// Whom a binding means.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The ServiceAccount's namespace; empty is the binding's.
    pub namespace: String,
}

/// Which role a binding grants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleRef {
    /// The group of the role's kind.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
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

/// Whether something is allowed, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is.
    pub allowed: bool,
    /// Which binding allows it, or what could not be resolved; may be empty.
    pub reason: String,
}

/// An index of the four RBAC kinds, kept in step by [`Roles::put`] and [`Roles::remove`].
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// By namespace (empty for ClusterRoles) and name.
    roles: HashMap<(String, String), Arc<[PolicyRule]>>,
    /// By namespace (empty for ClusterRoleBindings), then name.
    bindings: HashMap<String, BTreeMap<String, Binding>>,
}

/// A rule that holds for a user, and the binding it comes from.
struct Held<'a> {
    rules: Result<Arc<[PolicyRule]>, String>,
    binding: &'a Binding,
    subject: &'a Subject,
    /// The binding's namespace, empty for a ClusterRoleBinding.
    place: &'a str,
    name: &'a str,
}

impl Roles {
    /// Takes in an object of one of the four kinds (`plural` says which), new or changed. What it
    /// cannot read grants nothing.
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

    /// Forgets an object of one of the four kinds.
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

    /// Whether `user` may do `action`. Members of [`MASTERS`] may do everything.
    pub fn authorize(&self, user: &User, action: &Action) -> Decision {
        if user.is_in(MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        let namespace = action.namespace();
        let mut unresolved = Vec::new();
        for held in self.held(user, namespace) {
            match &held.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(action)) => {
                    let reason = format!("RBAC: allowed by {}", held.describe());
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

    /// Every rule that holds for `user` in `namespace` (empty: in all), and what could not be
    /// resolved. A member of [`MASTERS`] holds what the bindings give them, as in Kubernetes.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Option<String>) {
        let (mut rules, mut unresolved) = (Vec::new(), Vec::new());
        for held in self.held(user, namespace) {
            match held.rules {
                Ok(more) => rules.extend(more.iter().cloned()),
                Err(why) if unresolved.contains(&why) => {}
                Err(why) => unresolved.push(why),
            }
        }
        (rules, aggregate(&unresolved))
    }

    /// The rules of the role that a binding in `namespace` (empty: a ClusterRoleBinding) names.
    ///
    /// # Errors
    /// The sentence saying that there is no such role.
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<Arc<[PolicyRule]>, String> {
        let (namespace, word) = match role.kind.as_str() {
            // Without a namespace there are no Roles; the key would be that of a ClusterRole.
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

    fn held<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = Held<'a>> {
        let places = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        places.into_iter().flat_map(move |place| {
            let bindings = self.bindings.get(place).into_iter().flatten();
            bindings.filter_map(move |(name, binding)| {
                let subjects = binding.subjects.as_deref().unwrap_or_default();
                let subject = subjects.iter().find(|subject| subject.is(user, place))?;
                let rules = self.rules_of(&binding.role_ref, place);
                Some(Held { rules, binding, subject, place, name })
            })
        })
    }
}

impl Subject {
    /// Whether a binding in `place` (empty: everywhere) means `user` by this subject.
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

impl Held<'_> {
    /// The binding in words.
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

/// `a`, `[a, b]`, nothing.
fn aggregate(errors: &[String]) -> Option<String> {
    match errors {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
