//! Prevention of privilege escalation: a user may grant only permissions that this user has
//! (k8s.io/kubernetes, pkg/registry/rbac).

use serde_json::{Map, Value};

use super::rule::{PolicyRule, covers, full_authority, quoted};
use super::{RBAC_GROUP, RoleRef, Roles};
use crate::{Action, MASTERS, User};
use serde::Deserialize as _;

/// Reason why a user may not write a role or binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The role of a binding does not exist; contains the role's name.
    NoSuchRole(String),
    /// The user lacks permissions; contains the message after `clusterroles… "x" is forbidden: `.
    Forbidden(String),
}

/// Checks a write of `new` (over `old`, on an update), an object of the RBAC kind `plural`. The
/// user must have all permissions that `new` grants, or the verb `escalate` (role) or `bind`
/// (binding). `name` is the name in the path, empty for a create.
///
/// # Errors
/// Returns a [`Refusal`] with the reason.
pub fn escalation(
    roles: &Roles,
    user: &User,
    plural: &str,
    (namespace, name): (&str, &str),
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Refusal> {
    if user.is_in(MASTERS) || old.is_some_and(|old| only_bookkeeping(old, new)) {
        return Ok(());
    }
    let may = |verb: &str, resource: &str, name: &str| {
        roles.authorize(user, &Action::on(verb, RBAC_GROUP, resource, namespace, name)).allowed
    };
    match plural {
        "roles" | "clusterroles" => {
            if may("escalate", plural, name) {
                return Ok(());
            }
            let wanted = rules(new).map_err(Refusal::Forbidden)?;
            confirm(roles, user, namespace, &wanted)?;
            let gathers = aggregates(new) || old.is_some_and(aggregates);
            if gathers && confirm(roles, user, namespace, &full_authority()).is_err() {
                let why = "must have cluster-admin privileges to use the aggregationRule";
                return Err(Refusal::Forbidden(why.to_owned()));
            }
            Ok(())
        }
        "rolebindings" | "clusterrolebindings" => {
            let role = RoleRef::deserialize(&new["roleRef"]).unwrap_or_default();
            let kind = if role.kind == "Role" { "roles" } else { "clusterroles" };
            if may("bind", kind, &role.name) {
                return Ok(());
            }
            let wanted = roles.rules_of(&role, namespace);
            confirm(roles, user, namespace, &wanted.map_err(|_| Refusal::NoSuchRole(role.name))?)
        }
        _ => Ok(()),
    }
}

fn confirm(
    roles: &Roles,
    user: &User,
    namespace: &str,
    wanted: &[PolicyRule],
) -> Result<(), Refusal> {
    let (held, unresolved) = roles.rules_for(user, namespace);
    covers(&held, wanted).map_err(|missing| {
        let unresolved =
            unresolved.map(|why| format!("; resolution errors: {why}")).unwrap_or_default();
        Refusal::Forbidden(format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently \
             held:\n{missing}{unresolved}",
            user.name,
            quoted(&user.groups)
        ))
    })
}

fn rules(role: &Value) -> Result<Vec<PolicyRule>, String> {
    let rules: Option<Vec<PolicyRule>> = Option::deserialize(&role["rules"])
        .map_err(|error| format!("its rules cannot be read: {error}"))?;
    Ok(rules.unwrap_or_default())
}

fn aggregates(role: &Value) -> bool {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

/// Returns true if two states of an object differ only in finalizers, owners, managedFields and
/// resourceVersion.
pub fn only_bookkeeping(old: &Value, new: &Value) -> bool {
    let strip = |object: &Value| {
        let mut object = object.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            for field in ["finalizers", "ownerReferences", "managedFields", "resourceVersion"] {
                Map::remove(metadata, field);
            }
        }
        object
    };
    strip(old) == strip(new)
}
