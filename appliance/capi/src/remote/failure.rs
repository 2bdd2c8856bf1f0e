//! Meaning of a failed request: an object is gone only if the API server says so about this very
//! object. A missing credential, missing rights, a missing definition of a kind and a proxy's page
//! say nothing about objects.

use std::fmt;

use api::meta::{ObjectKey, Resource};
use http::StatusCode;
use kube::core::Status;
use objects::ObjectError;
use serde_json::Value;
use stdx::chain;

/// Maximum length of a server's message in an error.
const MESSAGE_CHARS_MAX: usize = 500;

const CREDENTIAL: &str = "the credential is not valid or has expired: give the box a new \
                          kubeconfig";
const RIGHTS: &str = "the rights return by themselves after `clusterctl upgrade apply`; else \
                      bind the box to the ClusterRole tinbox-system-controllers by a \
                      ClusterRoleBinding";
const DEFINITION: &str = "the management cluster does not serve this kind: install the provider \
                          with `clusterctl init --infrastructure tinbox`";
const SERVER: &str = "the answer is not from a Kubernetes API: check `server` in the kubeconfig, \
                      and proxies on the way";
const NETWORK: &str = "check that the box reaches the API server of the management cluster";
const CERTIFICATE: &str = "the certificate of the API server does not match \
                           certificate-authority-data or `server` of the kubeconfig";
const VALIDITY: &str = "the certificate of the API server is not valid by the clock of the box: \
                        set both clocks by NTP, or renew the certificate";

/// Cause of an error that says nothing about objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The server does not accept the credential (401).
    Credential,
    /// The user lacks a right (403).
    Rights,
    /// The server does not serve the kind.
    Definition,
    /// The server is not a Kubernetes API.
    Server,
    /// The certificate of the server is not the expected one.
    Certificate,
    /// The certificate of the server is not valid yet, or no longer, by the clock of the box.
    Validity,
    /// The server cannot be reached, or any other cause.
    Other,
}

/// Returns the advice of each cause.
#[cfg(test)]
pub fn hints() -> [&'static str; 7] {
    [CREDENTIAL, RIGHTS, DEFINITION, SERVER, CERTIFICATE, VALIDITY, NETWORK]
}

impl Cause {
    /// Returns the cause of an error with this hint.
    pub fn of(hint: Option<&str>) -> Self {
        match hint {
            Some(CREDENTIAL) => Self::Credential,
            Some(RIGHTS) => Self::Rights,
            Some(DEFINITION) => Self::Definition,
            Some(SERVER) => Self::Server,
            Some(CERTIFICATE) => Self::Certificate,
            Some(VALIDITY) => Self::Validity,
            _ => Self::Other,
        }
    }
}

/// Object or objects that a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Kind of the objects.
    pub resource: Resource,
    /// Namespace and name; the name is empty for a list or a watch.
    pub key: ObjectKey,
}

impl Subject {
    /// Returns the subject of a request about one object.
    pub fn object(resource: Resource, key: &ObjectKey) -> Self {
        Self { resource, key: key.clone() }
    }

    /// Returns the subject of a list or a watch; an empty namespace stands for all.
    pub fn all(resource: Resource, namespace: &str) -> Self {
        Self { resource, key: ObjectKey::new(namespace, "") }
    }

    /// Creates an error that says nothing about the existence of objects.
    pub fn unavailable(&self, why: impl Into<String>, hint: Option<&'static str>) -> ObjectError {
        ObjectError::Unavailable { what: self.to_string(), why: why.into(), hint }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, ObjectKey { namespace, name }) = (self.resource.kind, &self.key);
        match (namespace.as_str(), name.as_str()) {
            ("", "") if self.resource.plural.is_empty() => f.write_str(kind),
            ("", "") => write!(f, "{kind} objects"),
            (_, "") => write!(f, "{kind} objects in {namespace}"),
            ("", _) => write!(f, "{kind} {name}"),
            _ => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Error that a controller receives as it is.
    Object(ObjectError),
    /// The requested resource version is too old (410): the objects must be listed again.
    Expired(ObjectError),
}

impl From<Failure> for ObjectError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Object(error) | Failure::Expired(error) => error,
        }
    }
}

impl From<ObjectError> for Failure {
    fn from(error: ObjectError) -> Self {
        Self::Object(error)
    }
}

/// Converts a response other than a success.
pub fn of_response(subject: &Subject, code: StatusCode, body: &[u8]) -> Failure {
    match read_status(body) {
        Some(status) => of_status(subject, code, &status),
        None => of_foreign(subject, code, body).into(),
    }
}

/// Reads a failure `Status` of a Kubernetes API.
fn read_status(body: &[u8]) -> Option<Status> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let is_status = value["kind"] == "Status" && value["apiVersion"] == "v1";
    let status: Status = serde_json::from_value(value).ok().filter(|_| is_status)?;
    Some(status).filter(|status| !status.is_success())
}

/// Converts an error that a Kubernetes API reports.
pub fn of_status(subject: &Subject, code: StatusCode, status: &Status) -> Failure {
    let message = || plain(&status.message);
    let unavailable = |hint| subject.unavailable(format!("{} ({code})", message()), hint);
    let what = || subject.to_string();
    let error = match (code.as_u16(), status.reason.as_str()) {
        (404, "NotFound") if is_about(subject, status) => ObjectError::NotFound(what()),
        // The answer to a request whose group, version or kind is not served.
        (404, _) if status.details.as_ref().is_none_or(|details| details.name.is_empty()) => {
            unavailable(Some(DEFINITION))
        }
        (409, "AlreadyExists") => ObjectError::AlreadyExists(what()),
        (409, "Conflict") => ObjectError::Conflict(what()),
        (410, _) => return Failure::Expired(unavailable(None)),
        (400, "BadRequest") | (422, "Invalid") | (413, _) => ObjectError::Invalid(message()),
        (401, _) => unavailable(Some(CREDENTIAL)),
        (403, _) => unavailable(Some(RIGHTS)),
        _ => unavailable(None),
    };
    error.into()
}

/// Returns true if a `NotFound` is about the object itself, not about its namespace or kind.
fn is_about(subject: &Subject, status: &Status) -> bool {
    let Subject { resource, key } = subject;
    status.details.as_ref().is_some_and(|details| {
        !key.name.is_empty()
            && details.name == key.name
            && details.kind == resource.plural
            && details.group == resource.group
    })
}

/// Converts a response that is not of a Kubernetes API, such as the page of a proxy.
fn of_foreign(subject: &Subject, code: StatusCode, body: &[u8]) -> ObjectError {
    let text = plain(&String::from_utf8_lossy(body));
    let hint = match code.as_u16() {
        401 => CREDENTIAL,
        // kube-apiserver's own text for a group that is not served.
        404 if text == "404 page not found" => DEFINITION,
        _ => SERVER,
    };
    subject.unavailable(format!("{code}: {text}"), Some(hint))
}

/// Converts a successful response whose body is not what the API promises.
pub fn of_unexpected(subject: &Subject, expected: &str, found: &str) -> ObjectError {
    subject.unavailable(format!("expected {expected}, found {}", plain(found)), Some(SERVER))
}

/// Converts an error of the connection.
pub fn of_transport(subject: &Subject, error: &(dyn std::error::Error + 'static)) -> ObjectError {
    let why = chain(error);
    // rustls reports both with the times of the certificate and of the box.
    let is_untimely = ["certificate expired", "certificate not valid yet"]
        .iter()
        .any(|error| why.contains(&format!("invalid peer certificate: {error}")));
    let is_untrusted = why.contains("invalid peer certificate");
    let hint = match (is_untimely, is_untrusted) {
        (true, _) => VALIDITY,
        (false, true) => CERTIFICATE,
        (false, false) => NETWORK,
    };
    subject.unavailable(why, Some(hint))
}

/// Converts a request without a response in time.
pub fn of_silence(subject: &Subject, what: &str) -> ObjectError {
    subject.unavailable(what, Some(NETWORK))
}

/// Returns one line of limited length.
fn plain(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    let line = words.join(" ");
    let line = line.chars().filter(|char| !char.is_control());
    let shown: String = line.take(MESSAGE_CHARS_MAX).collect();
    if shown.is_empty() { "empty response".to_owned() } else { shown }
}

#[cfg(test)]
mod tests;
