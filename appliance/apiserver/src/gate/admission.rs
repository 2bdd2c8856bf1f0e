//! Nobody grants what they do not hold: the check that goes with a write of roles and bindings into
//! its transaction.

use access::{Action, MASTERS, RBAC_GROUP, Refusal, Target, User};

use super::Door;
use crate::engine::Admission;
use crate::status_error::StatusError;

/// The check for what `user` is about to write; `None` where none is needed.
pub(super) async fn of(
    door: &Door,
    user: &User,
    action: &Action,
) -> Result<Option<Admission>, StatusError> {
    let Target::Resource { group, resource, namespace, name, .. } = &action.target else {
        return Ok(None);
    };
    let writes = ["create", "update", "patch"].contains(&action.verb.as_str());
    if group != RBAC_GROUP || !writes || user.is_in(MASTERS) {
        return Ok(None);
    }
    // As of now; the transaction cannot wait for newer ones.
    let roles = door.roles.now().await?;
    let (user, resource) = (user.clone(), resource.clone());
    let (namespace, name) = (namespace.clone(), name.clone());
    Ok(Some(Admission::new(move |definition, new, old| {
        let place = (namespace.as_str(), name.as_str());
        let checked = access::escalation(&roles, &user, &resource, place, new, old);
        checked.map_err(|refusal| match refusal {
            // Upstream names the binding's kind here.
            Refusal::NoSuchRole(role) => StatusError::not_found(definition, &role),
            Refusal::Forbidden(why) => {
                let written = new["metadata"]["name"].as_str().unwrap_or_default();
                StatusError::forbidden(definition, written, &why)
            }
        })
    })))
}
