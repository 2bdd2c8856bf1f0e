//! Nobody grants what they do not hold: the check that goes with a write of roles and bindings, or
//! of a Secret that is filled with a token, into its transaction.

use rbac::{Action, MASTERS, RBAC_GROUP, Refusal, Target, User};
use serde_json::Value;

use super::Door;
use resources::StatusError;
use resources::builtin::typed_secret::{ACCOUNT_NAME, TOKEN_TYPE};
use resources::engine::Admission;

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
    if group.is_empty() && resource == "secrets" && writes && !user.is_in(MASTERS) {
        return token_secret(door, user, namespace).await.map(Some);
    }
    if group != RBAC_GROUP || !writes || user.is_in(MASTERS) {
        return Ok(None);
    }
    // As of now; the transaction cannot wait for newer ones.
    let roles = door.roles.now().await?;
    let (user, resource) = (user.clone(), resource.clone());
    let (namespace, name) = (namespace.clone(), name.clone());
    Ok(Some(Admission::new(move |definition, new, old| {
        let place = (namespace.as_str(), name.as_str());
        let checked = rbac::escalation(&roles, &user, &resource, place, new, old);
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

/// The check for a Secret: the box fills one of the token type, so that its writer must be one who
/// may ask for a token of that account.
async fn token_secret(door: &Door, user: &User, namespace: &str) -> Result<Admission, StatusError> {
    let roles = door.roles.now().await?;
    let (user, namespace) = (user.clone(), namespace.to_owned());
    Ok(Admission::new(move |definition, new, old| {
        let account = |secret: &Value| {
            let is_token = secret["type"] == TOKEN_TYPE;
            let named = secret["metadata"]["annotations"][ACCOUNT_NAME].as_str();
            named.filter(|_| is_token).map(str::to_owned)
        };
        let Some(account_name) = account(new) else { return Ok(()) };
        if old.and_then(account).as_ref() == Some(&account_name) {
            return Ok(());
        }
        let target = Target::Resource {
            group: String::new(),
            namespace: namespace.clone(),
            resource: "serviceaccounts".to_owned(),
            subresource: "token".to_owned(),
            name: account_name.clone(),
        };
        let action = Action { verb: "create".to_owned(), target };
        if roles.authorize(&user, &action).allowed {
            return Ok(());
        }
        let name = new["metadata"]["name"].as_str().unwrap_or_default();
        let why = format!(
            "user {:?} may not create tokens of the ServiceAccount {account_name:?}, which a \
             Secret of this type is filled with",
            user.name
        );
        Err(StatusError::forbidden(definition, name, &why))
    }))
}
