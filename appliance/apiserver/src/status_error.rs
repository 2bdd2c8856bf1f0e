//! The one error of the API: what becomes a `Status` object on the wire.
//!
//! Reasons, codes and sentences are those of Kubernetes' `meta/v1 Status`, because clients branch
//! on the reason and people recognise the sentences.

use serde_json::{Map, Value, json};

use crate::definition::ResourceDefinition;
use crate::field_error::FieldError;

/// Why a request failed; clients branch on this word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request itself makes no sense: bad JSON, bad selector, namespace mismatch.
    BadRequest,
    /// No token, or one that is not known.
    Unauthorized,
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
    /// Our fault; the log has the rest.
    InternalError,
}

impl Reason {
    /// The HTTP status code that goes with the reason.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError => 500,
            Self::Timeout => 504,
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
        let message = format!("{} \"{name}\" is forbidden: {why}", definition.qualified());
        Self::about(Reason::Forbidden, definition, name, message)
    }

    /// 422 with the fields that are wrong.
    pub fn invalid(definition: &ResourceDefinition, name: &str, errors: &[FieldError]) -> Self {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let listed = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let kind = if definition.group.is_empty() {
            definition.kind.clone()
        } else {
            format!("{}.{}", definition.kind, definition.group)
        };
        let message = format!("{kind} \"{name}\" is invalid: {listed}");
        let mut error = Self::about(Reason::Invalid, definition, name, message);
        error.details.kind.clone_from(&definition.kind);
        error.details.causes = errors.iter().map(FieldError::cause).collect();
        error
    }

    /// 410: the revision asked for lies before what the change log still holds.
    pub fn expired(revision: u64) -> Self {
        Self::new(
            Reason::Expired,
            format!("The resourceVersion {revision} is too old: its changes are no longer kept"),
        )
    }

    /// 504: the revision asked for has not been written yet.
    pub fn from_the_future(asked: u64, current: u64) -> Self {
        let mut error = Self::new(
            Reason::Timeout,
            format!("Too large resource version: {asked}, current: {current}"),
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
        let details = self.details.to_value();
        if details.as_object().is_some_and(|map| !map.is_empty()) {
            status["details"] = details;
        }
        status
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
    fn to_value(&self) -> Value {
        let mut cause = json!({ "reason": self.reason, "message": self.message });
        if !self.field.is_empty() {
            cause["field"] = json!(self.field);
        }
        cause
    }
}
