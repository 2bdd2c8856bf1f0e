//! Reviews (own identity, permissions, user of a token) and `TokenRequest`, which are answered but
//! never stored (k8s.io/kubernetes, pkg/registry/authentication, pkg/registry/authorization,
//! pkg/registry/core/serviceaccount).

mod access;
mod token;

use axum::extract::Request;
use axum::response::Response;
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::filters::{AuthLayer, WrittenObject};
use crate::wire::path::ResourcePath;
use crate::wire::{body, response};
use rbac::User;
use resources::reviews::{Review, ReviewType};
use resources::{Reason, StatusError};

/// Handles a request for one of [`resources::reviews::REVIEWS`].
pub(crate) async fn respond(
    auth: &AuthLayer,
    review: &Review,
    path: &ResourcePath,
    request: Request,
) -> Result<Response, StatusError> {
    let version = review.versions.iter().find(|version| **version == path.version);
    let version = version.ok_or_else(StatusError::no_such_resource)?;
    let misplaced = review.namespaced != path.namespace.is_some();
    if misplaced || (path.name.is_some() && path.subresource.is_none()) {
        return Err(StatusError::no_such_resource());
    }
    if request.method() != Method::POST {
        return Err(StatusError::method_not_allowed());
    }
    let user = request.extensions().get::<User>().cloned();
    let user = user.ok_or_else(|| StatusError::new(Reason::Unauthorized, "Unauthorized"))?;
    let (parts, body) = request.into_parts();
    let mut object = body::object(&parts.headers, body, true, &mut Vec::new()).await?;
    stdx::json::drop_nulls(&mut object);
    let api_version = match review.api_version {
        Some(api_version) => api_version.to_owned(),
        None => format!("{}/{version}", review.group),
    };
    check_kind(&mut object, &api_version, review.kind)?;
    let call = Call { auth, review, path, user: &user };
    call.answer(&mut object).await?;
    let mut response = response::json(StatusCode::CREATED, &object);
    if !review.is_read_only() {
        // The path contains the account's name; the token itself has no uid.
        response.extensions_mut().insert(WrittenObject::of(&object));
    }
    Ok(response)
}

/// Request for a review: its kind, path and user.
struct Call<'a> {
    auth: &'a AuthLayer,
    review: &'a Review,
    path: &'a ResourcePath,
    user: &'a User,
}

impl Call<'_> {
    async fn answer(&self, object: &mut Value) -> Result<(), StatusError> {
        match self.review.review_type {
            ReviewType::SelfSubject => {
                let now = self.auth.engine.clock().now();
                object["metadata"]["creationTimestamp"] = json!(resources::object::time_text(now));
                object["status"] = json!({ "userInfo": user_info(self.user) });
                Ok(())
            }
            ReviewType::Token => token::review(self, object).await,
            ReviewType::TokenRequest => token::request(self, object).await,
            ReviewType::SelfSubjectAccess
            | ReviewType::SubjectAccess
            | ReviewType::LocalSubjectAccess => access::review(self, object).await,
            ReviewType::SelfSubjectRules => access::rules(self, object).await,
        }
    }

    /// Parses a part of the request's object as `T`; the default if the part is missing.
    fn read<T: DeserializeOwned + Default>(&self, part: &Value) -> Result<T, StatusError> {
        if part.is_null() {
            return Ok(T::default());
        }
        serde_json::from_value(part.clone()).map_err(|error| {
            let kind = self.review.kind;
            StatusError::bad_request(format!("{kind} in the body cannot be read: {error}"))
        })
    }
}

/// Returns a user as `authentication.k8s.io/v1 UserInfo`.
fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name });
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn check_kind(object: &mut Value, api_version: &str, kind: &str) -> Result<(), StatusError> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    if !object.is_object() || !(metadata.is_object() || metadata.is_null()) {
        return Err(StatusError::bad_request("the object and its metadata must be JSON objects"));
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if !(spec.is_object() || spec.is_null()) {
        return Err(StatusError::bad_request("the spec must be a JSON object"));
    }
    for (field, expected) in [("apiVersion", api_version), ("kind", kind)] {
        match object[field].as_str().unwrap_or_default() {
            "" => object[field] = json!(expected),
            given if given == expected => {}
            given => {
                return Err(StatusError::bad_request(format!(
                    "the {field} in the data ({given}) does not match the expected {field} \
                     ({expected})"
                )));
            }
        }
    }
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    Ok(())
}

/// Returns the document `/.well-known/openid-configuration`; 404 without ServiceAccount tokens.
pub(crate) fn issuer(auth: &AuthLayer) -> Result<Value, StatusError> {
    match auth.accounts() {
        Some(_) => Ok(rbac::jwt::configuration(auth.url())),
        None => Err(StatusError::no_such_resource()),
    }
}

/// Returns the document `/openid/v1/jwks`; 404 without ServiceAccount tokens.
pub(crate) fn keys(auth: &AuthLayer) -> Result<Value, StatusError> {
    let accounts = auth.accounts().ok_or_else(StatusError::no_such_resource)?;
    Ok(accounts.key_set())
}
