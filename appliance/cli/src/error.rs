//! Errors for people at a shell: a line with attempt, object and cause, and a line with a hint.

mod exit;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use api::meta::Resource;
use box_flash::FlashError;
use machine_actions::ActionError;
use stdx::Hint as _;
use template_library::LibraryError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments do not fit together.
    #[error("{0}")]
    Usage(String),
    /// The value of an argument is not valid; the hint names valid values.
    #[error("{why}")]
    Argument { why: String, hint: String },
    /// No kubeconfig exists in the usual places. Holds their paths.
    #[error("found no kubeconfig: looked for {0}")]
    NoKubeconfig(String),
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {}: {why}", .path.display())]
    Kubeconfig {
        path: PathBuf,
        /// Cause, as a phrase.
        why: String,
    },
    /// A file cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// Path of the file, or `standard input`.
        file: String,
        #[source]
        source: io::Error,
    },
    /// The content of a file is not valid for the command.
    #[error("cannot use {file}: {why}")]
    Content {
        /// Path of the file, or `standard input`.
        file: String,
        /// Cause, with the line if there is one.
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
    /// The command cannot be carried out.
    #[error("cannot {what}: {why}")]
    Unable {
        /// Attempt: `run template debian`.
        what: String,
        /// Cause, as a phrase.
        why: String,
        /// Advice for the user.
        hint: &'static str,
    },
    /// The image cannot be trusted, or the disk cannot be written.
    #[error(transparent)]
    Flash(FlashError),
    /// No machine has this name or address.
    #[error("found no machine {0:?}")]
    NoMachine(String),
    /// The state of an object does not permit the operation.
    #[error("cannot {what}: {why}")]
    State {
        /// Attempt, as a phrase: `retry nuc1`.
        what: String,
        /// Cause, as a phrase.
        why: String,
        /// Advice for the user, with the actions that the state permits.
        hint: String,
    },
    /// An action on a machine was not requested.
    #[error(transparent)]
    Action(ActionError),
    /// The command is of older Tinkerbell, and another one does its work now.
    #[error("this command no longer exists")]
    Retired(&'static str),
    /// The box or a machine needs a person: the result of `status --check`.
    #[error("{0}")]
    NeedsPerson(String),
    /// A person ended the command by Control-C.
    #[error("interrupted")]
    Interrupted,
    /// The operation that the command waited for failed.
    #[error("{what} {how}: {why}")]
    Failed {
        /// Object of the operation: `workflow nuc1-x7k2p`.
        what: String,
        /// Way in which the operation failed: `failed`, `timed out`, `was deleted`.
        how: &'static str,
        /// Cause, as a phrase.
        why: String,
        /// Command of this program that shows more.
        look: String,
    },
    /// The operation did not end in time.
    #[error("{what} has not ended after {after}; it is still running")]
    TooLate {
        /// Name of the operation or object.
        what: String,
        /// Time that was waited.
        after: String,
        /// Command of this program that waits longer; `None` to run the same command again.
        longer: Option<String>,
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
    /// Some of several objects were written before an error.
    #[error("{done} of {all} objects were written, then: {source}")]
    Partly {
        /// Number of objects that the box stored.
        done: usize,
        /// Number of all objects.
        all: usize,
        /// Error of the object that the box did not store.
        source: Box<Error>,
    },
    /// A file cannot be written.
    #[error("cannot write {file}")]
    Write {
        file: String,
        #[source]
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
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

impl From<FlashError> for Error {
    fn from(error: FlashError) -> Self {
        match error {
            FlashError::Read { file, source } => Self::Read { file, source },
            FlashError::Content { file, why } => Self::Content { file, why },
            error => Self::Flash(error),
        }
    }
}

impl From<LibraryError> for Error {
    fn from(error: LibraryError) -> Self {
        match error.hint() {
            Some(hint) => Self::Argument { why: error.to_string(), hint: hint.to_owned() },
            None => Self::Usage(error.to_string()),
        }
    }
}

impl Error {
    /// Creates the error of a wait for `what` that ended after `limit`. `longer` is another command
    /// that waits longer.
    pub fn too_late(what: String, limit: Duration, longer: Option<String>) -> Self {
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Error::TooLate { what, after: stdx::seconds(millis), longer }
    }

    /// Returns advice for the user; `None` if there is none. `program` is the name of this program
    /// in the advice, `tinbox` or `tink`.
    pub fn hint(&self, program: &str) -> Option<String> {
        let text = match self {
            Error::Usage(_) => format!("`{program} --help` shows every command"),
            Error::NoKubeconfig(_) => format!(
                "`{program} box claim ADDRESS` writes one for a new box; a claimed box offers it \
                 on its page; then name the file with --kubeconfig or TINBOX_KUBECONFIG"
            ),
            Error::Kubeconfig { .. } => {
                "download the kubeconfig from the box's page again".to_owned()
            }
            Error::Reach { trouble, server, .. } => trouble.hint(server),
            Error::Refused { hint: Some(hint), .. } | Error::Argument { hint, .. } => hint.clone(),
            // The box's own services name what is missing; the hint is for kinds and namespaces.
            Error::Refused { code: 404, message, .. } if !is_of_kinds(message) => return None,
            Error::Refused { code, reason, .. } => refused(*code, reason)?.to_owned(),
            Error::Answer { .. } => {
                "check that `server:` in the kubeconfig is a Tinbox of this program's version"
                    .to_owned()
            }
            Error::Unknown { resource, .. } => {
                format!("`{program} {} list` shows all names", command(resource))
            }
            Error::Ambiguous { .. } => "use the id or the full name of the object".to_owned(),
            Error::Unable { hint, .. } => (*hint).to_owned(),
            Error::Flash(error) => error.hint()?.to_owned(),
            Error::State { hint, .. } => hint.clone(),
            Error::Retired(now) => format!("use `{now}`"),
            Error::NoMachine(_) => format!(
                "`{program} machine list` shows all names; `{program} hardware push` adds a machine"
            ),
            Error::NeedsPerson(_) => format!("`{program} status` shows the reason"),
            Error::Action(error) => match error {
                ActionError::NoMachine(_) => format!("`{program} machine list` shows all names"),
                ActionError::NoWorkflow(_) | ActionError::State { .. } => {
                    format!("the state changed meanwhile: `{program} machine list` shows it")
                }
                error => error.hint()?.to_owned(),
            },
            Error::Failed { look, .. } => format!("`{program} {look}` shows more"),
            Error::TooLate { longer, .. } => match longer {
                Some(command) => format!("`{program} {command}` waits longer"),
                None => "run the command again to wait longer, or set --timeout".to_owned(),
            },
            Error::Partly { source, .. } => return source.hint(program),
            Error::Content { .. } => "correct the file and run the command again".to_owned(),
            Error::Untrusted { .. } => {
                "compare the pin with the box's screen; if the screen shows another pin, another \
                 machine answered in place of the box: nothing was sent"
                    .to_owned()
            }
            Error::Read { .. } | Error::Write { .. } | Error::Output(_) | Error::Interrupted => {
                return None;
            }
        };
        Some(text)
    }

    /// Returns true for a temporary failure: restart of the box, network, too many requests.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Reach { trouble, .. } => {
                matches!(
                    trouble,
                    ReachFailure::Refused | ReachFailure::Silent | ReachFailure::Broken
                )
            }
            Error::Refused { code, .. } => matches!(code, 410 | 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// Returns true if the reader of standard output closed the pipe, which is not an error.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
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
        _ => "hardware".to_owned(),
    }
}

#[cfg(test)]
mod tests;
