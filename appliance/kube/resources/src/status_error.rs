//! The one error of the API: what becomes a `Status` object on the wire.
//!
//! Reasons, codes and sentences are those of Kubernetes' `meta/v1 Status`, because clients branch
//! on the reason and people recognise the sentences.

use rbac::{Action, Target, User};
use serde_json::{Map, Value, json};

use crate::definition::ResourceDefinition;
use schema::FieldError;

/// Bytes of an object that a message shows; of a longer one only the beginning.
const MAX_SHOWN: usize = 64 * 1024;

/// Why a request failed; clients branch on this word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request itself makes no sense: bad JSON, bad selector, namespace mismatch.
    BadRequest,
    /// No token, or one that is not known.
    Unauthorized,
    /// Nobody owns the box yet: a word of our own.
    Unclaimed,
    /// Known caller, refused all the same.
    Forbidden,
    /// No such object, or no such kind.
    NotFound,
    /// Create of a name that is taken.
    AlreadyExists,
    /// A stale resourceVersion or an unmet precondition.
    Conflict,
    /// The revision asked for is no longer kept.
    Expired,
    /// The object breaks a rule; the details name the fields.
    Invalid,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// No representation the client would take.
    NotAcceptable,
    /// A body in a format that is not served.
    UnsupportedMediaType,
    /// A body or object over the limit.
    RequestEntityTooLarge,
    /// Too many requests in flight; try again in a second.
    TooManyRequests,
    /// The request could not be finished in time.
    Timeout,
    /// The disk has no room for more; what makes none larger is still taken.
    InsufficientStorage,
    /// Our fault; the log has the rest.
    InternalError,
    /// Ours too, without a word of its own: what Kubernetes answers where it has none.
    Unknown,
}

impl Reason {
    /// The HTTP status code that goes with the reason.
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

/// One finer cause inside [`StatusError`]; its `reason` is the JSON key of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// A stable word such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The path of the field, empty when there is none.
    pub field: String,
}

/// Which object a failure is about, and its causes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The group of its kind, empty for core.
    pub group: String,
    /// The plural of its kind (the kind itself for [`Reason::Invalid`], as Kubernetes does).
    pub kind: String,
    /// The object's uid, where it is known.
    pub uid: String,
    /// The finer causes.
    pub causes: Vec<Cause>,
    /// Seconds after which a retry makes sense; 0 says nothing.
    pub retry_after_seconds: u32,
    /// A token that continues an expired paged list from where it was, on newer data.
    pub continue_token: String,
}

/// A refused or failed request: reason, sentence, details.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StatusError {
    /// What kind of failure.
    pub reason: Reason,
    /// The sentence for people.
    pub message: String,
    /// Which object and why exactly.
    pub details: Box<Details>,
}

impl StatusError {
    /// A failure that is not about one object.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: Box::default() }
    }

    /// 400 with a sentence.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// 404 for a path or kind that is not served.
    pub fn no_such_resource() -> Self {
        Self::new(Reason::NotFound, "the server could not find the requested resource")
    }

    /// A failure about the object `name` of `definition`.
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

    /// 404 for an object.
    pub fn not_found(definition: &ResourceDefinition, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", definition.qualified());
        Self::about(Reason::NotFound, definition, name, message)
    }

    /// 409 for a name that is taken.
    pub fn already_exists(definition: &ResourceDefinition, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", definition.qualified());
        Self::about(Reason::AlreadyExists, definition, name, message)
    }

    /// 409: `why` finishes the sentence.
    pub fn conflict(definition: &ResourceDefinition, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            definition.qualified()
        );
        Self::about(Reason::Conflict, definition, name, message)
    }

    /// 409 for a write from an outdated copy; the text is the one clients know.
    pub fn modified(definition: &ResourceDefinition, name: &str) -> Self {
        Self::conflict(
            definition,
            name,
            "the object has been modified; please apply your changes to the latest version \
             and try again",
        )
    }

    /// 403: `why` finishes the sentence.
    pub fn forbidden(definition: &ResourceDefinition, name: &str, why: &str) -> Self {
        let message = format!("{}{} is forbidden: {why}", definition.qualified(), named(name));
        Self::about(Reason::Forbidden, definition, name, message)
    }

    /// 403: `user` may not do `action`; `reason` is what else there is to say.
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

    /// 429: all places are taken, or the caller's share of them.
    pub fn too_many_requests() -> Self {
        let mut error = Self::new(
            Reason::TooManyRequests,
            "the server has received too many requests and has asked us to try again later",
        );
        error.details.retry_after_seconds = 1;
        error
    }

    /// 429: the kind was defined anew while the request was looked at.
    pub fn redefined() -> Self {
        let why = "the definition of this kind has just changed, please try again";
        let mut error = Self::new(Reason::TooManyRequests, why);
        error.details.retry_after_seconds = 1;
        error
    }

    /// 422 with the fields that are wrong.
    pub fn invalid(definition: &ResourceDefinition, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_kind((&definition.group, &definition.kind), name, errors)
    }

    /// As [`Self::invalid`], of the kind `kind` of `group`.
    pub fn invalid_kind((group, kind): (&str, &str), name: &str, errors: &[FieldError]) -> Self {
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

    /// 422 for a patch that made no object of its kind; `object` is what it made.
    pub fn unusable_patch(object: &str, why: &str) -> Self {
        let mut value = Value::from(object).to_string();
        value.truncate(value.floor_char_boundary(MAX_SHOWN));
        let message = format!("Invalid value: {value}: {why}");
        let mut error = Self::new(Reason::Invalid, format!(" \"\" is invalid: patch: {message}"));
        let field = "patch".to_owned();
        error.details.causes.push(Cause { reason: "FieldValueInvalid", message, field });
        error
    }

    /// As [`Self::invalid`], where upstream names the resource and not the kind.
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

    /// 422 for the options of a request, which are of the kind `kind` of `meta.k8s.io`.
    pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid_kind(("meta.k8s.io", kind), "", errors)
    }

    /// 410: the revision asked for lies before what the change log still holds.
    pub fn expired(revision: u64) -> Self {
        Self::new(Reason::Expired, format!("too old resource version: {revision}"))
    }

    /// 504: the revision asked for has not been written yet.
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

    /// 500. The cause goes to the log; the caller reads only what was attempted.
    pub fn internal(attempted: &str, cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(attempted, cause = stdx::chain(cause), "request failed inside");
        Self::new(Reason::InternalError, format!("Internal error occurred: {attempted}"))
    }

    /// The `Status` object of the wire.
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

/// ` "NAME"`, or nothing where there is none.
fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" {name:?}") }
}

/// Field errors as one text; the same one twice is said once.
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
    /// The cause that a wrong field is.
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
