//! Token reviews (user of a token), and requests for a new ServiceAccount token.

use rbac::jwt::{Bound, Claims, MAX_AUDIENCES, ObjectRef};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Call, user_info};
use crate::auth::{MAX_SECONDS, ServiceAccountTokens};
use resources::object::{meta, time_text};
use resources::{Reason, StatusError};
use schema::FieldError;

/// Minimum lifetime of a requested token, in seconds; [`MAX_SECONDS`] is the maximum.
const MIN_SECONDS: i64 = 10 * 60;
/// Default lifetime of a requested token, in seconds.
const DEFAULT_SECONDS: i64 = 60 * 60;

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewSpec {
    token: String,
    audiences: Vec<String>,
}

/// Answers a `TokenReview` with the token's user.
pub(super) async fn review(call: &Call<'_>, object: &mut Value) -> Result<(), StatusError> {
    let spec: ReviewSpec = call.read(&object["spec"])?;
    if spec.token.is_empty() {
        return Err(StatusError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences = match spec.audiences.as_slice() {
        [] => ServiceAccountTokens::audiences(),
        asked => asked.to_vec(),
    };
    object["status"] = match call.auth.bearer(&spec.token, &audiences).await {
        Ok((user, audiences)) => json!({
            "authenticated": true,
            "user": user_info(&user),
            "audiences": audiences,
        }),
        Err(why) => json!({ "user": {}, "error": why }),
    };
    Ok(())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestSpec {
    audiences: Vec<String>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<BoundRef>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BoundRef {
    kind: String,
    api_version: String,
    name: String,
    uid: String,
}

/// Answers a `TokenRequest` with a new token.
pub(super) async fn request(call: &Call<'_>, object: &mut Value) -> Result<(), StatusError> {
    let accounts = call.auth.accounts().ok_or_else(StatusError::no_such_resource)?;
    let engine = &call.auth.engine;
    let namespace = call.path.namespace.clone().unwrap_or_default();
    let name = call.path.name.clone().unwrap_or_default();
    check_names(call, object, &namespace, &name)?;
    let account = engine.get("/serviceaccounts", &namespace, &name).await?;
    let uid = meta(&account, "uid").to_owned();
    let given = meta(object, "uid");
    if !["", uid.as_str()].contains(&given) {
        let message = format!(
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io {name:?}: the \
             UID in the token request ({given}) does not match the UID of the service account \
             ({uid})"
        );
        return Err(StatusError::new(Reason::Conflict, message));
    }
    let mut spec: RequestSpec = call.read(&object["spec"])?;
    if spec.audiences.is_empty() {
        spec.audiences = ServiceAccountTokens::audiences();
    }
    let seconds = spec.expiration_seconds.unwrap_or(DEFAULT_SECONDS);
    check_spec(call, &spec, seconds)?;
    let secret = match &spec.bound_object_ref {
        Some(bound) => Some(bound_secret(call, &namespace, bound).await?),
        None => None,
    };
    let now = engine.clock().now();
    let serviceaccount = ObjectRef { name: name.clone(), uid: uid.clone() };
    let bound = Bound { namespace: namespace.clone(), secret, serviceaccount, ..Bound::default() };
    let id = Uuid::new_v4().to_string();
    let claims = Claims::new(bound, spec.audiences.clone(), id, now, seconds);
    let token = accounts.issue(&claims)?;
    let ends = jiff::Timestamp::from_second(claims.exp).unwrap_or(jiff::Timestamp::MAX);
    let metadata = &mut object["metadata"];
    metadata["name"] = json!(name);
    metadata["namespace"] = json!(namespace);
    metadata["uid"] = json!(uid);
    metadata["creationTimestamp"] = json!(time_text(now));
    object["spec"]["audiences"] = json!(spec.audiences);
    object["spec"]["expirationSeconds"] = json!(seconds);
    object["status"] = json!({ "token": token, "expirationTimestamp": time_text(ends) });
    Ok(())
}

fn check_names(
    call: &Call<'_>,
    object: &Value,
    namespace: &str,
    name: &str,
) -> Result<(), StatusError> {
    let rules = [
        ("name", name, "must match the service account name if specified"),
        ("namespace", namespace, "must match the service account namespace if specified"),
    ];
    for (field, expected, why) in rules {
        let given = meta(object, field);
        if !["", expected].contains(&given) {
            let error = FieldError::invalid(format!("metadata.{field}"), &json!(given), why);
            return Err(call.review.invalid(name, &[error]));
        }
    }
    Ok(())
}

fn check_spec(call: &Call<'_>, spec: &RequestSpec, seconds: i64) -> Result<(), StatusError> {
    let field = "spec.expirationSeconds";
    let mut errors = Vec::new();
    if seconds < MIN_SECONDS {
        let why = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(field, &json!(seconds), why));
    }
    if seconds > MAX_SECONDS {
        let why = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(field, &json!(seconds), why));
    }
    if spec.audiences.len() > MAX_AUDIENCES {
        let why = format!("may not have more than {MAX_AUDIENCES}");
        let count = json!(spec.audiences.len());
        errors.push(FieldError::invalid("spec.audiences", &count, why));
    }
    if errors.is_empty() { Ok(()) } else { Err(call.review.invalid("", &errors)) }
}

/// Returns the Secret to which a requested token is bound; its deletion makes the token invalid.
async fn bound_secret(
    call: &Call<'_>,
    namespace: &str,
    bound: &BoundRef,
) -> Result<ObjectRef, StatusError> {
    if bound.api_version != "v1" || bound.kind != "Secret" {
        return Err(StatusError::bad_request(format!(
            "cannot bind token to object of type {}, Kind={}",
            bound.api_version, bound.kind
        )));
    }
    let secret = call.auth.engine.get("/secrets", namespace, &bound.name).await?;
    let uid = meta(&secret, "uid").to_owned();
    if !["", uid.as_str()].contains(&bound.uid.as_str()) {
        let message = format!(
            "Operation cannot be fulfilled on Secret {:?}: the UID in the bound object reference \
             ({}) does not match the UID in record. The object might have been deleted and then \
             recreated",
            bound.name, bound.uid
        );
        return Err(StatusError::new(Reason::Conflict, message));
    }
    Ok(ObjectRef { name: bound.name.clone(), uid })
}
