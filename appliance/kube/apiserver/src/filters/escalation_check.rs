//! Check against privilege escalation: a user can grant only permissions that the user has. The
//! check runs in the transaction that writes a role, a binding, or a Secret that gets a token.

use rbac::{Action, MASTERS, RBAC_GROUP, Refusal, Target, User};
use serde_json::Value;

use super::AuthLayer;
use resources::StatusError;
use resources::builtin::typed_secret::{ACCOUNT_NAME, TOKEN_TYPE};
use resources::engine::Admission;

/// Returns the check for the write that `user` requests; `None` if no check is needed.
pub(super) async fn of(
    auth: &AuthLayer,
    user: &User,
    action: &Action,
) -> Result<Option<Admission>, StatusError> {
    let Target::Resource { group, resource, namespace, name, .. } = &action.target else {
        return Ok(None);
    };
    let writes = ["create", "update", "patch"].contains(&action.verb.as_str());
    if group.is_empty() && resource == "secrets" && writes && !user.is_in(MASTERS) {
        return token_secret(auth, user, namespace).await.map(Some);
    }
    if group != RBAC_GROUP || !writes || user.is_in(MASTERS) {
        return Ok(None);
    }
    // The present roles: the transaction cannot wait for newer ones.
    let roles = auth.roles.now().await?;
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

/// Returns the check for a Secret. Because the box writes a token into a Secret of the token type,
/// the Secret's writer needs permission to request a token of the same account.
async fn token_secret(
    auth: &AuthLayer,
    user: &User,
    namespace: &str,
) -> Result<Admission, StatusError> {
    let roles = auth.roles.now().await?;
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
