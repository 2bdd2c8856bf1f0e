//! Actions that are not built in: container images. The agent fetches an image through the box's
//! registry into memory, and runs it as upstream's agent does with Docker.
//!
//! ```text
//! reference → manifest → config, layers     fetched from the box, checked by digest   pull
//! layers → a tmpfs in a mount namespace     bounded by a share of memory              sandbox
//! /dev, /sys, /proc, volumes                beneath its root                          mounts
//! the program, first of its PID namespace   all capabilities, the host's network      run
//! ```
//!
//! Differences from upstream: the container always uses the host's network. Image and processes are
//! removed when the action ends, for any reason.

mod config;
mod manifest;
mod mounts;
mod pull;
mod reference;
mod run;
mod sandbox;
mod user;
mod volume;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agent_rpc::Assignment;
use imaging::Meter;
use imaging::stream::Timeouts;

use crate::Error;
use crate::outcome::{Leave, Outcome};
pub use config::Process;
pub use manifest::Manifest;
pub use reference::Reference;
pub use user::Account;
pub use volume::Volume;

/// Maximum number of volumes of one action.
const VOLUMES: usize = 64;
/// Maximum wait for the last output after a program's end. A process that the program left behind
/// may keep the pipes open.
const REST: Duration = Duration::from_millis(500);
/// Port of the box's registry, on the host of its workflow service.
const REGISTRY_PORT: u16 = 7080;
/// File by which a program requests a restart, as in Tinkerbell's OS, and the file's folder.
const REBOOT: &str = "/worker/reboot";
const REBOOT_FOLDER: &str = "/worker";

/// Container image to run, with the action's settings.
#[derive(Clone)]
pub struct Container {
    /// Image name from the action, for messages.
    image_name: String,
    image: Reference,
    command: Vec<String>,
    environment: Vec<(String, String)>,
    volumes: Vec<Volume>,
    /// True if the container has its own PID namespace; false for the host's.
    own_processes: bool,
    /// `host:port` of the box's registry.
    registry: Arc<str>,
    timeouts: Timeouts,
}

/// Omits the command and the environment, which may contain secrets.
impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container")
            .field("image", &self.image)
            .field("volumes", &self.volumes)
            .field("own_processes", &self.own_processes)
            .finish_non_exhaustive()
    }
}

/// Returns `host:7080`, the box's registry, for the workflow service at `authority` (`host:port`).
pub fn registry_beside(authority: &str) -> Arc<str> {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    format!("{host}:{REGISTRY_PORT}").into()
}

impl Container {
    /// Parses an assignment whose image is not built in.
    ///
    /// # Errors
    /// [`Error::Image`]: the image name, a volume or the PID namespace is invalid.
    pub fn parse(
        assignment: &Assignment,
        environment: Vec<(String, String)>,
        registry: Arc<str>,
        timeouts: Timeouts,
    ) -> Result<Self, Error> {
        let image_name = assignment.image.clone();
        let bad = |reason: String| Error::Image { image: image_name.clone(), reason };
        let image = Reference::parse(&image_name).map_err(bad)?;
        let volumes = &assignment.volumes;
        if volumes.len() > VOLUMES {
            return Err(bad(format!("it has more than {VOLUMES} volumes")));
        }
        let volumes = volumes.iter().map(|text| Volume::parse(text));
        let volumes = volumes.collect::<Result<_, _>>().map_err(bad)?;
        let of_namespaces = assignment.namespaces.as_ref().map_or("", |it| it.pid.as_str());
        let own_processes = match (assignment.pid.as_str(), of_namespaces) {
            ("", "" | "private") => true,
            ("host", "" | "host") | ("", "host") => false,
            (pid, other) => {
                let word = if pid.is_empty() { other } else { pid };
                return Err(bad(format!(
                    "the PID namespace {word:?} is not valid: use host or leave it empty"
                )));
            }
        };
        let command = assignment.command.clone();
        Ok(Self {
            image_name,
            image,
            command,
            environment,
            volumes,
            own_processes,
            registry,
            timeouts,
        })
    }

    /// Fetches the image and runs it to its end. Dropping the future kills its processes.
    pub async fn run(self, meter: &Arc<Meter>) -> Result<Outcome, Error> {
        let has_reboot_folder =
            self.volumes.iter().any(|it| it.source.as_deref() == Some(REBOOT_FOLDER));
        if has_reboot_folder {
            // A file of an earlier action is not a request of this one.
            let _ = std::fs::remove_file(REBOOT);
        }
        let message = self.to_its_end(meter).await?;
        if has_reboot_folder && std::fs::remove_file(REBOOT).is_ok() {
            tracing::info!(image = self.image_name, "{REBOOT} requests a restart");
            return Ok(Outcome::Leave(Leave::Reboot));
        }
        Ok(Outcome::Done(message))
    }

    fn bad(&self, reason: impl Into<String>) -> Error {
        Error::Image { image: self.image_name.clone(), reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use agent_rpc::{Assignment, Namespaces};
    use imaging::stream::Timeouts;

    use super::{Container, registry_beside};

    fn parse(assignment: &Assignment) -> Result<Container, String> {
        let registry = registry_beside("10.77.0.1:42113");
        let secret = vec![("PASSWORD".to_owned(), "s3cret".to_owned())];
        Container::parse(assignment, secret, registry, Timeouts::DEFAULT)
            .map_err(|error| stdx::chain(&error))
    }

    #[test]
    fn the_registry_is_beside_the_workflow_service() {
        assert_eq!(&*registry_beside("10.77.0.1:42113"), "10.77.0.1:7080");
        assert_eq!(&*registry_beside("[fd77::1]:42113"), "[fd77::1]:7080");
        assert_eq!(&*registry_beside("tinbox.local"), "tinbox.local:7080");
    }

    #[test]
    fn processes_are_the_containers_own_unless_the_hosts_are_asked_for() {
        for (pid, of_namespaces, own) in [
            ("", None, true),
            ("", Some(""), true),
            ("host", None, false),
            ("", Some("host"), false),
            ("host", Some("host"), false),
        ] {
            let namespaces = of_namespaces
                .map(|pid| Namespaces { pid: pid.to_owned(), ..Namespaces::default() });
            let (image, pid) = ("alpine".to_owned(), pid.to_owned());
            let assignment = Assignment { image, pid, namespaces, ..Assignment::default() };
            assert_eq!(parse(&assignment).unwrap().own_processes, own);
        }
        let (image, pid) = ("alpine".to_owned(), "container:x".to_owned());
        let error = parse(&Assignment { image, pid, ..Assignment::default() }).unwrap_err();
        assert!(error.contains("\"container:x\" is not valid"), "{error}");
    }

    #[test]
    fn mistakes_are_said_and_secrets_are_not() {
        let image = "alpine:3".to_owned();
        let volumes = vec!["data:/data".to_owned()];
        let error = parse(&Assignment { image, volumes, ..Assignment::default() }).unwrap_err();
        assert!(error.starts_with("cannot run the image \"alpine:3\": the volume"), "{error}");
        let (image, command) = ("alpine:3".to_owned(), vec!["s3cret".to_owned()]);
        let container = parse(&Assignment { image, command, ..Assignment::default() }).unwrap();
        assert!(!format!("{container:?}").contains("s3cret"));
    }
}
