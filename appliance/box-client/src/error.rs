//! Errors of the client: attempt, object and cause; and a hint for the person who reads the error.

use std::io;
use std::path::PathBuf;

use api::meta::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Failure of a request, of a lookup or of the kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No kubeconfig exists in the usual places. Holds their paths.
    #[error("found no kubeconfig: looked for {0}")]
    NoKubeconfig(String),
    /// The file of the kubeconfig cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// Path of the file.
        file: String,
        /// Cause from the operating system.
        #[source]
        source: io::Error,
    },
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {}: {why}", .path.display())]
    Kubeconfig {
        /// File of the kubeconfig.
        path: PathBuf,
        /// Cause, as a phrase.
        why: String,
    },
    /// TLS or a header cannot be made from the CA or the token of the kubeconfig.
    #[error("cannot prepare the connection to {server}: {why}")]
    Unusable {
        /// URL of the box.
        server: String,
        /// Cause, as a phrase.
        why: String,
    },
    /// The box does not respond.
    #[error("cannot reach the box at {server}: {why}")]
    Reach {
        /// URL of the box.
        server: String,
        /// Kind of the failure.
        trouble: ReachFailure,
        /// Cause, as a phrase.
        why: String,
    },
    /// The box refused the request.
    #[error("cannot {what}: {message}")]
    Refused {
        /// Failed attempt: `create workflow`.
        what: String,
        /// HTTP status code of the response.
        code: u16,
        /// Machine-readable reason in the response, such as `AlreadyExists`.
        reason: String,
        /// Message of the box.
        message: String,
        /// Hint of the box; `None` if its response has none.
        hint: Option<String>,
    },
    /// The response is not valid for the API.
    #[error("cannot {what}: unexpected response: {why}")]
    Answer {
        /// Failed attempt: `create workflow`.
        what: String,
        /// Cause, as a phrase.
        why: String,
    },
    /// No object has this name.
    #[error("found no {} {text:?}{}", noun(.resource), place(.namespace))]
    Unknown {
        /// Kind that was looked for.
        resource: Resource,
        /// Name that was given.
        text: String,
        /// Namespace that was searched; empty for a kind without namespaces.
        namespace: String,
    },
    /// Several objects match this name.
    #[error("{text:?} matches more than one {}: {names}", noun(.resource))]
    Ambiguous {
        /// Kind that was looked for.
        resource: Resource,
        /// Name that was given.
        text: String,
        /// Names of the matching objects.
        names: String,
    },
    /// The pin of the box differs from the expected pin.
    #[error("the box at {address} has the pin {found}, not {wanted}")]
    Untrusted {
        /// Address of the box.
        address: String,
        /// Pin of the box that responded.
        found: String,
        /// Expected pin, or the person's refusal.
        wanted: String,
    },
}

/// Kind of a connection failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachFailure {
    /// No program listens at the port.
    Refused,
    /// The box does not respond at the address of the command line.
    Address,
    /// The box did not respond in time, or no route leads to it.
    Silent,
    /// The name does not resolve.
    Name,
    /// The CA of the kubeconfig did not sign the box's certificate.
    UnknownCa,
    /// The box's certificate is for another name or address.
    OtherName,
    /// The box's certificate is not valid at this time.
    Expired,
    /// The TLS handshake failed.
    Tls,
    /// The connection ended before the response did.
    Broken,
}

impl ClientError {
    /// Returns advice for the user; `None` if there is none. `program` is the name of the command
    /// line in the advice, such as `tinbox`.
    pub fn hint(&self, program: &str) -> Option<String> {
        let text = match self {
            ClientError::NoKubeconfig(_) => format!(
                "`{program} box claim ADDRESS` writes one for a new box; a claimed box offers it \
                 on its page; then name the file with --kubeconfig or TINBOX_KUBECONFIG"
            ),
            ClientError::Kubeconfig { .. } | ClientError::Unusable { .. } => {
                "download the kubeconfig from the box's page again".to_owned()
            }
            ClientError::Reach { trouble, server, .. } => trouble.hint(server),
            ClientError::Refused { hint: Some(hint), .. } => hint.clone(),
            // The box's own services name what is missing; the hint is for kinds and namespaces.
            ClientError::Refused { code: 404, message, .. } if !is_of_kinds(message) => {
                return None;
            }
            ClientError::Refused { code, reason, .. } => refused(*code, reason)?.to_owned(),
            ClientError::Answer { .. } => {
                "check that `server:` in the kubeconfig is a Tinbox of this program's version"
                    .to_owned()
            }
            ClientError::Unknown { resource, .. } => {
                format!("`{program} {} list` shows all names", command(resource))
            }
            ClientError::Ambiguous { .. } => "use the id or the full name of the object".to_owned(),
            ClientError::Untrusted { .. } => {
                "compare the pin with the box's screen; if the screen shows another pin, another \
                 machine answered in place of the box: nothing was sent"
                    .to_owned()
            }
            ClientError::Read { .. } => return None,
        };
        Some(text)
    }

    /// Returns true for a temporary failure: restart of the box, network, too many requests.
    pub fn is_passing(&self) -> bool {
        match self {
            ClientError::Reach { trouble, .. } => {
                matches!(
                    trouble,
                    ReachFailure::Refused | ReachFailure::Silent | ReachFailure::Broken
                )
            }
            ClientError::Refused { code, .. } => {
                matches!(code, 410 | 429 | 500 | 502 | 503 | 504)
            }
            _ => false,
        }
    }
}

/// Reads a response of the box as the type `T`. `what` is the attempt: `read the settings`.
///
/// # Errors
/// The response has another form.
pub fn decode<T: DeserializeOwned>(what: &str, answer: Value) -> Result<T, ClientError> {
    serde_json::from_value(answer).map_err(|error| {
        let what = what.to_owned();
        ClientError::Answer { what, why: error.to_string() }
    })
}

impl ReachFailure {
    fn hint(self, server: &str) -> String {
        match self {
            ReachFailure::Refused => {
                "start tinboxd there, or name another box with --kubeconfig FILE".to_owned()
            }
            ReachFailure::Address => "compare the address with the box's screen or box.toml".into(),
            ReachFailure::Silent => {
                "check that the box is on and that this machine is on its network".to_owned()
            }
            ReachFailure::Name => format!("correct `server: {server}` in the kubeconfig"),
            ReachFailure::UnknownCa => "another box answers at this address: download the \
                 kubeconfig from its page"
                .to_owned(),
            ReachFailure::OtherName => {
                "use an address that the box's certificate names, or add this address to the \
                 configuration of the box"
                    .to_owned()
            }
            ReachFailure::Expired => "compare the clocks of the box and this computer".to_owned(),
            ReachFailure::Tls => format!("is {server} the box's API? Its port is 6443"),
            ReachFailure::Broken => "run the command again; the box may be restarting".to_owned(),
        }
    }
}

/// Returns true for a 404 message about a kind, a path or a namespace, and not about an object.
fn is_of_kinds(message: &str) -> bool {
    let of_namespace = message.starts_with("namespaces ") && message.ends_with(" not found");
    of_namespace || message.contains("could not find the requested resource")
}

fn refused(code: u16, reason: &str) -> Option<&'static str> {
    Some(match (code, reason) {
        (401, _) => {
            "the box rejected the kubeconfig's token: download a new kubeconfig from its page"
        }
        (403, _) => "use a kubeconfig with more rights",
        (404, _) => "does the namespace exist, and does this version of the box serve the kind?",
        (409, "AlreadyExists") => "choose another name, or delete the existing object first",
        (409, _) => "another client changed the object at the same time: run the command again",
        (412, _) => "check the current state, then run the command again",
        (422, _) => "correct the fields named above and run the command again",
        (413, _) => "make the object smaller; agents download large files from another server",
        (429 | 503 | 504, _) => "wait a moment and run the command again",
        (500, _) => "the box's log has the cause",
        _ => return None,
    })
}

/// Returns the name of a kind for people.
fn noun(resource: &Resource) -> String {
    match (resource.group, resource.kind) {
        ("bmc.tinkerbell.org", kind) => format!("BMC {}", kind.to_lowercase()),
        (_, "OSImage") => "OS image".to_owned(),
        (_, kind) => kind.to_lowercase(),
    }
}

fn place(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") }
}

/// Returns the command that lists the objects of a kind.
fn command(resource: &Resource) -> String {
    match resource.kind {
        "Network" | "Template" | "Workflow" => resource.kind.to_lowercase(),
        "OSImage" => "os-image".to_owned(),
        _ => "hardware".to_owned(),
    }
}

#[cfg(test)]
mod tests;
