//! `capi init --mode capt`: the commands that install the stock provider, CAPT, with the box as its
//! external Tinkerbell.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::commands::Context;
use crate::commands::capi::{Role, TOKEN_DAYS, Token, checked, issue};
use crate::error::Error;

/// Default name of the file with the kubeconfig.
const FILE: &str = "capt.kubeconfig";
/// Namespace of CAPT's components.
const NAMESPACE: &str = "capt-system";
/// Secret that CAPT's components mount by default, and its key (CAPT v0.7.0, config/manager).
const SECRET: &str = "external-tinkerbell-kubeconfig";
const KEY: &str = "kubeconfig";
/// First version of CAPT that can use a Tinkerbell outside its own cluster.
const FIRST: CaptVersion = CaptVersion { major: 0, minor: 7, patch: 0 };

/// Version of CAPT, as `v0.7.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CaptVersion {
    major: u64,
    minor: u64,
    patch: u64,
}

impl fmt::Display for CaptVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for CaptVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected a version such as {FIRST}, found {text:?}");
        let numbers = text.trim_start_matches('v').split('.').map(str::parse::<u64>);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().map_err(|_| expected())?;
        let &[major, minor, patch] = numbers.as_slice() else { return Err(expected()) };
        let version = Self { major, minor, patch };
        if version < FIRST {
            return Err(format!(
                "CAPT {version} cannot use a Tinkerbell outside its own cluster; {FIRST} is the \
                 first version that can"
            ));
        }
        Ok(version)
    }
}

#[derive(Debug, clap::Args)]
pub struct CaptArguments {
    /// Mode capt: version of CAPT, at least v0.7.0; earlier versions have no external mode
    /// [default: v0.7.0]
    #[arg(long, value_name = "VERSION")]
    capt_version: Option<CaptVersion>,
    /// Mode capt: URL of the box's API as the management cluster reaches it [default: the URL in
    /// your kubeconfig]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Mode capt: address of the box in the network of the machines [default: the host in the URL]
    #[arg(long, value_name = "HOST", value_parser = host)]
    machine_host: Option<String>,
    /// Mode capt: new file for the kubeconfig, which is a secret; the commands delete it [default:
    /// capt.kubeconfig]
    #[arg(long, value_name = "FILE")]
    credential_file: Option<PathBuf>,
}

impl CaptArguments {
    /// Returns the first of these options that is given.
    pub fn given(&self) -> Option<&'static str> {
        super::first_given(&[
            ("--capt-version", self.capt_version.is_some()),
            ("--server", self.server.is_some()),
            ("--machine-host", self.machine_host.is_some()),
            ("--credential-file", self.credential_file.is_some()),
        ])
    }
}

fn host(text: &str) -> Result<String, String> {
    let is_host = |char: char| char.is_ascii_alphanumeric() || "-.".contains(char);
    let is_valid = !text.is_empty() && text.chars().all(is_host);
    let expected = "expected an IPv4 address or a host name, such as 192.168.7.1";
    is_valid.then(|| text.to_owned()).ok_or_else(|| expected.to_owned())
}

/// Writes the kubeconfig of CAPT to a new file, and prints the commands.
pub async fn run(context: &Context, arguments: &CaptArguments) -> Result<(), Error> {
    let server = match &arguments.server {
        Some(server) => checked("--server", server.clone())?,
        None => context.client.server().to_owned(),
    };
    let machine_host = match &arguments.machine_host {
        Some(host) => host.clone(),
        None => host_of(&server)?,
    };
    let file = arguments.credential_file.as_deref().unwrap_or(Path::new(FILE));
    let file = std::path::absolute(file)
        .map_err(|source| Error::Write { file: file.display().to_string(), source })?;
    let path = quoted(&file)?;
    let token = Token { role: Role::Capt, server: &server, account: "tinbox-capt" };
    // A token that cannot be stored would be valid and unknown.
    let new = create(&file)?;
    let end = completed(&file, fill(context, &token, new, &file).await)?;
    let text = commands(arguments.capt_version.unwrap_or(FIRST), &path, &machine_host);
    context.printer.line(text.trim_end())?;
    context.printer.note(&format!(
        "{} contains a token that ends at {end}; the commands put it into a Secret of the cluster \
         of KUBECONFIG, and delete the file",
        file.display()
    ));
    Ok(())
}

/// Returns the host of a URL for machines, which is not an IPv6 address: CAPT appends a port.
fn host_of(url: &str) -> Result<String, Error> {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    let end = rest.find([':', '/']).unwrap_or(rest.len());
    host(&rest[..end]).map_err(|why| Error::Usage(format!("--machine-host: {why}")))
}

/// Returns a path in single quotes for a shell. The option `--from-file` of kubectl is a list.
fn quoted(path: &Path) -> Result<String, Error> {
    let text = path.to_str().filter(|text| !text.contains(['\'', '"', ',', '=', '\n']));
    let wrong = || {
        let path = path.display();
        Error::Usage(format!("expected a --credential-file without ' \" , and =; found {path}"))
    };
    text.map(|text| format!("'{text}'")).ok_or_else(wrong)
}

/// Creates an empty private file, which must not exist.
fn create(path: &Path) -> Result<File, Error> {
    let mut new = OpenOptions::new();
    new.write(true).create_new(true).mode(0o600).open(path).map_err(|source| {
        let file = path.display().to_string();
        match source.kind() {
            ErrorKind::AlreadyExists => Error::Usage(format!(
                "{file} already exists: run the commands that were printed with it again, or \
                 choose another --credential-file"
            )),
            _ => Error::Write { file, source },
        }
    })
}

/// Writes a kubeconfig with a new token. Returns the time when the token ends.
async fn fill(
    context: &Context,
    token: &Token<'_>,
    mut new: File,
    path: &Path,
) -> Result<String, Error> {
    let (kubeconfig, end) = issue(context, token, TOKEN_DAYS).await?;
    let text = crate::output::yaml(&kubeconfig);
    let written = new.write_all(text.as_bytes()).and_then(|()| new.sync_all());
    let named = |source| Error::Write { file: path.display().to_string(), source };
    written.map(|()| end).map_err(named)
}

/// Removes the file after a failure: an incomplete file would stop the next attempt.
fn completed<T>(path: &Path, result: Result<T, Error>) -> Result<T, Error> {
    result.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

/// Returns the commands, which can be repeated: the file is deleted as soon as the Secret exists.
/// `file` is quoted. A server-side apply stores no copy of the Secret in an annotation.
fn commands(version: CaptVersion, file: &str, machine_host: &str) -> String {
    format!(
        "set -eu\n\
         kubectl get namespace {NAMESPACE} >/dev/null 2>&1 \\\n\
         \x20 || kubectl create namespace {NAMESPACE}\n\
         if [ -s {file} ]; then\n\
         \x20 kubectl create secret generic {SECRET} --namespace {NAMESPACE} \\\n\
         \x20   --from-file={KEY}={file} --dry-run=client -o yaml \\\n\
         \x20   | kubectl apply --server-side --force-conflicts -f -\n\
         \x20 rm {file}\n\
         else\n\
         \x20 kubectl get secret {SECRET} --namespace {NAMESPACE} >/dev/null\n\
         fi\n\
         TINKERBELL_IP={machine_host} EXTERNAL_TINKERBELL_KUBECONFIG={SECRET} \\\n\
         \x20 clusterctl init --infrastructure tinkerbell-tinkerbell:{version}\n"
    )
}

#[cfg(test)]
mod tests;
