//! The error type of the API, sent to clients as a `Status` object.
//!
//! Reasons, codes and messages are those of Kubernetes' `meta/v1 Status`, because clients branch on
//! the reason and users recognize the messages.

mod convert;

pub(crate) use self::convert::failed;
use rbac::{Action, Target, User};
use serde_json::{Map, Value, json};

use crate::definition::{GroupKind, ResourceDefinition};
use schema::FieldError;

/// Maximum bytes of an object's text in a message; the rest is cut off.
const MAX_SHOWN: usize = 64 * 1024;

/// Reason of a failure, on which clients branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request is invalid: bad JSON, bad selector, namespace mismatch.
    BadRequest,
    /// No valid credential was sent.
    Unauthorized,
    /// The box has no owner yet. This reason does not exist in Kubernetes.
    Unclaimed,
    /// The authenticated caller has no permission.
    Forbidden,
    /// The object or the kind does not exist.
    NotFound,
    /// An object with the name of a new object already exists.
    AlreadyExists,
    /// The resourceVersion is stale, or a precondition failed.
    Conflict,
    /// The requested revision is no longer stored.
    Expired,
    /// The object breaks a rule; the details name the fields.
    Invalid,
    /// The path does not support the HTTP method.
    MethodNotAllowed,
    /// No served representation matches the client's `Accept` header.
    NotAcceptable,
    /// The format of the body is not supported.
    UnsupportedMediaType,
    /// The body or object exceeds a size limit.
    RequestEntityTooLarge,
    /// Too many concurrent requests; the client should retry after one second.
    TooManyRequests,
    /// The request could not be finished in time.
    Timeout,
    /// The disk is nearly full: clients' writes that enlarge an object are refused.
    InsufficientStorage,
    /// Internal error of the box; the log has the cause.
    InternalError,
    /// Failure without a specific reason. Kubernetes uses this reason in the same cases.
    Unknown,
}

impl Reason {
    /// Returns the HTTP status code for the reason.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden | Self::Unclaimed => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::Unknown => 500,
            Self::Timeout => 504,
            Self::InsufficientStorage => 507,
        }
    }
}

/// Detailed cause of a [`StatusError`], an item of `details.causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable type of the cause, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// Message of the cause for users.
    pub message: String,
    /// Path of the field; empty if the cause is not about a field.
    pub field: String,
}

/// `details` of a `Status`: the object that the failure is about, and the detailed causes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Name of the object; empty if unknown.
    pub name: String,
    /// Group of the object's kind, empty for core.
    pub group: String,
    /// Plural of the object's kind (the kind itself for [`Reason::Invalid`], as in Kubernetes).
    pub kind: String,
    /// Uid of the object; empty if unknown.
    pub uid: String,
    /// Detailed causes, such as invalid fields.
    pub causes: Vec<Cause>,
    /// Seconds after which the client should retry; 0 if unset.
    pub retry_after_seconds: u32,
    /// Token to continue an expired paged list on the newest state; otherwise empty.
    pub continue_token: String,
}

/// A refused or failed request: reason, message, details.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StatusError {
    /// Reason of the failure, which determines the HTTP status code.
    pub reason: Reason,
    /// Failure message for users.
    pub message: String,
    /// Object and detailed causes.
    pub details: Box<Details>,
}

impl StatusError {
    /// Makes an error that is not about a specific object.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: Box::default() }
    }

    /// Returns 400 with the message `message`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// Returns 404 for a path or kind that is not served.
    pub fn no_such_resource() -> Self {
        Self::new(Reason::NotFound, "the server could not find the requested resource")
    }

    /// Returns 405 for a method that the path does not serve.
    pub fn method_not_allowed() -> Self {
        let why = "the server does not allow this method on the requested resource";
        Self::new(Reason::MethodNotAllowed, why)
    }

    /// Makes an error about the object `name` of the kind `definition`.
    pub fn about(
        reason: Reason,
        definition: &ResourceDefinition,
        name: &str,
        message: impl Into<String>,
    ) -> Self {
        let mut error = Self::new(reason, message);
        error.details.name = name.to_owned();
        error.details.group.clone_from(&definition.group);
        error.details.kind.clone_from(&definition.plural);
        error
    }

    /// Returns 404 for an object that does not exist.
    pub fn not_found(definition: &ResourceDefinition, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", definition.qualified());
        Self::about(Reason::NotFound, definition, name, message)
    }

    /// Returns 409 for a name that is taken.
    pub fn already_exists(definition: &ResourceDefinition, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", definition.qualified());
        Self::about(Reason::AlreadyExists, definition, name, message)
    }

    /// Returns 409 with upstream's message for a conflict, which ends with `why`.
    pub fn conflict(definition: &ResourceDefinition, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            definition.qualified()
        );
        Self::about(Reason::Conflict, definition, name, message)
    }

    /// Returns 409 for a write whose resourceVersion is outdated, with Kubernetes' message.
    pub fn modified(definition: &ResourceDefinition, name: &str) -> Self {
        Self::conflict(
            definition,
            name,
            "the object has been modified; please apply your changes to the latest version \
             and try again",
        )
    }

    /// Returns 403 for a write that a rule forbids; the message ends with `why`.
    pub fn forbidden(definition: &ResourceDefinition, name: &str, why: &str) -> Self {
        let message = format!("{}{} is forbidden: {why}", definition.qualified(), named(name));
        Self::about(Reason::Forbidden, definition, name, message)
    }

    /// Returns 403 because `user` has no permission for `action`; the message ends with `reason`.
    pub fn denied(user: &User, action: &Action, reason: &str) -> Self {
        let mut why = action.denial(user);
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        let Target::Resource { group, resource, name, .. } = &action.target else {
            return Self::new(Reason::Forbidden, format!("forbidden: {why}"));
        };
        let qualified = match group.as_str() {
            "" => resource.clone(),
            group => format!("{resource}.{group}"),
        };
        let message = format!("{qualified}{} is forbidden: {why}", named(name));
        let mut error = Self::new(Reason::Forbidden, message);
        error.details.name.clone_from(name);
        error.details.group.clone_from(group);
        error.details.kind.clone_from(resource);
        error
    }

    /// Returns 429: all request slots, or the caller's share, are in use.
    pub fn too_many_requests() -> Self {
        let mut error = Self::new(
            Reason::TooManyRequests,
            "the server has received too many requests and has asked us to try again later",
        );
        error.details.retry_after_seconds = 1;
        error
    }

    /// Returns 429: the kind's definition changed while the request was processed.
    pub fn redefined() -> Self {
        let why = "the definition of this kind has just changed, please try again";
        let mut error = Self::new(Reason::TooManyRequests, why);
        error.details.retry_after_seconds = 1;
        error
    }

    /// Returns 422 with the invalid fields.
    pub fn invalid(definition: &ResourceDefinition, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_kind(definition.group_kind(), name, errors)
    }

    /// Works as [`Self::invalid`], for a kind without a [`ResourceDefinition`].
    pub fn invalid_kind(kind: GroupKind<'_>, name: &str, errors: &[FieldError]) -> Self {
        let GroupKind { group, kind } = kind;
        let qualified = match group {
            "" => kind.to_owned(),
            group => format!("{kind}.{group}"),
        };
        let message = format!("{qualified} \"{name}\" is invalid: {}", listed(errors));
        let mut error = Self::new(Reason::Invalid, message);
        name.clone_into(&mut error.details.name);
        group.clone_into(&mut error.details.group);
        kind.clone_into(&mut error.details.kind);
        error.details.causes = errors.iter().map(Cause::of).collect();
        error
    }

    /// Returns 422 for a patch whose result `object` is not an object of the patched kind.
    pub fn unusable_patch(object: &str, why: &str) -> Self {
        let mut value = Value::from(object).to_string();
        value.truncate(value.floor_char_boundary(MAX_SHOWN));
        let message = format!("Invalid value: {value}: {why}");
        let mut error = Self::new(Reason::Invalid, format!(" \"\" is invalid: patch: {message}"));
        let field = "patch".to_owned();
        error.details.causes.push(Cause { reason: "FieldValueInvalid", message, field });
        error
    }

    /// Works as [`Self::invalid`], but the message names the resource instead of the kind.
    pub fn invalid_resource(
        definition: &ResourceDefinition,
        name: &str,
        error: &FieldError,
    ) -> Self {
        let message = format!("{} \"{name}\" is invalid: {error}", definition.qualified());
        let mut made = Self::about(Reason::Invalid, definition, name, message);
        made.details.causes.push(Cause::of(error));
        made
    }

    /// Returns 422 for invalid request options of a `meta.k8s.io` kind, such as `PatchOptions`.
    pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid_kind(GroupKind { group: "meta.k8s.io", kind }, "", errors)
    }

    /// Returns 410: the requested revision is older than the change log.
    pub fn expired(revision: u64) -> Self {
        Self::new(Reason::Expired, format!("too old resource version: {revision}"))
    }

    /// Returns 504: the requested revision has not been written yet.
    pub fn from_the_future(asked: u64, current: u64) -> Self {
        let mut error = Self::new(
            Reason::Timeout,
            format!("Timeout: Too large resource version: {asked}, current: {current}"),
        );
        error.details.retry_after_seconds = 1;
        error.details.causes.push(Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        error
    }

    /// Returns 500 and logs `cause`. The message to the client contains only `attempted`.
    pub fn internal(attempted: &str, cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(attempted, cause = stdx::chain(cause), "request failed inside");
        Self::new(Reason::InternalError, format!("Internal error occurred: {attempted}"))
    }

    /// Returns the `Status` object for the client.
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if !self.details.continue_token.is_empty() {
            metadata.insert("continue".to_owned(), json!(self.details.continue_token));
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": format!("{:?}", self.reason),
            "code": self.reason.code(),
        });
        if self.reason == Reason::Unknown
            && let Some(status) = status.as_object_mut()
        {
            status.remove("reason");
        }
        let details = self.details.to_value();
        if details.as_object().is_some_and(|map| !map.is_empty()) {
            status["details"] = details;
        }
        status
    }
}

/// Returns the quoted name after a space; an empty text for an empty name.
fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" {name:?}") }
}

/// Joins field errors into one text without duplicates.
fn listed(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        let texts = [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ];
        for (key, text) in texts {
            if !text.is_empty() {
                map.insert(key.to_owned(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes".to_owned(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".to_owned(), json!(self.retry_after_seconds));
        }
        Value::Object(map)
    }
}

impl Cause {
    /// Makes the cause for an invalid field.
    pub(crate) fn of(error: &FieldError) -> Self {
        Self { reason: error.reason(), message: error.body(), field: error.field.clone() }
    }

    fn to_value(&self) -> Value {
        let mut cause = json!({ "reason": self.reason, "message": self.message });
        if !self.field.is_empty() {
            cause["field"] = json!(self.field);
        }
        cause
    }
}
