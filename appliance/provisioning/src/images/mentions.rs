//! Search for URLs of other servers in the environment of an action, and replacement of these URLs.
//! All functions are pure.

use std::collections::HashSet;
use std::net::IpAddr;

use api::state::serve;
use api::tinkerbell::WorkflowStatus;
use artifact_cache::registry::{self, Reference};
use artifact_cache::{RemoteFile, UPLOAD_SCHEME};
use axum::http::Uri;

/// Variables for the URL of a file and for its checksum, of `image2disk`, similar actions and
/// `archive2disk`. IMG_SHA256 and IMG_CHECKSUM_URL are extensions of Tinbox.
const FILES: [(&str, &str); 3] =
    [("IMG_URL", "IMG_SHA256"), ("IMG_CHECKSUM_URL", ""), ("ARCHIVE_URL", "TARFILE_CHECKSUM")];
/// Action whose IMG_URL is a [`Reference`] to an OCI registry instead of a URL. With
/// REGISTRY_USERNAME, the registry needs credentials, which the box does not have.
const OCI: &str = "oci2disk";
const OCI_FILE: &str = "IMG_URL";
const OCI_USER: &str = "REGISTRY_USERNAME";

/// Names and addresses of the box itself.
pub struct OwnNames(HashSet<String>);

impl OwnNames {
    /// Creates the set from names and addresses of the box.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| plain(&name)).collect())
    }

    /// Returns true if `url` is a file on another server: an `http`, `https` or `oci` URL without
    /// user name, whose host is neither the box nor a loopback or link-local address. An uploaded
    /// file counts too: machines get it from the cache only.
    pub fn is_foreign(&self, url: &str) -> bool {
        if url.starts_with(UPLOAD_SCHEME) {
            return true;
        }
        let Ok(uri) = url.parse::<Uri>() else { return false };
        let Some(authority) = uri.authority() else { return false };
        let host = plain(authority.host());
        let nobodys = match host.parse() {
            Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_link_local() || ip.is_unspecified(),
            Ok(IpAddr::V6(ip)) => {
                ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified()
            }
            Err(_) => host == "localhost",
        };
        matches!(uri.scheme_str(), Some("http" | "https" | "oci"))
            && !authority.as_str().contains('@')
            && !nobodys
            && !self.0.contains(&host)
    }
}

/// Returns the host of a URL if it is an IP address; otherwise `None`.
pub fn address(url: &str) -> Option<IpAddr> {
    let uri: Uri = url.parse().ok()?;
    plain(uri.host()?).parse().ok()
}

/// Returns a host in lower case without brackets, and an IPv4-mapped address as IPv4.
fn plain(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    host.parse::<IpAddr>().map_or(host, |ip| ip.to_canonical().to_string())
}

/// Returns true if the action of `image` reads its files from an OCI registry.
pub fn reads_registry(image: &str) -> bool {
    serve::repository(image) == OCI
}

/// Returns the remote file of one `entry` (`KEY=value`) of an environment; `None` if the entry has
/// none. With `is_oci`, the value is a registry reference.
fn file(own: &OwnNames, is_oci: bool, environment: &[String], entry: &str) -> Option<RemoteFile> {
    let (key, url) = entry.split_once('=')?;
    let (_, checksum) = FILES.into_iter().find(|(name, _)| *name == key)?;
    let value = |name: &str| {
        let pairs = environment.iter().filter_map(|entry| entry.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let url =
        if is_oci && key == OCI_FILE { of_registry(url, value(OCI_USER))? } else { url.to_owned() };
    if !own.is_foreign(&url) {
        return None;
    }
    // A checksum that is invalid or has an unknown algorithm is left to the action.
    let checksum = value(checksum).and_then(|text| text.parse().ok());
    Some(RemoteFile { url, checksum })
}

/// Returns the `oci` URL of a registry reference; `None` if it is invalid or needs a user.
fn of_registry(reference: &str, user: Option<&str>) -> Option<String> {
    let reference = reference.strip_prefix(registry::SCHEME).unwrap_or(reference);
    let is_anybodys = user.is_none_or(str::is_empty);
    let good = is_anybodys && Reference::parse(reference).is_ok();
    good.then(|| format!("{}{reference}", registry::SCHEME))
}

/// Returns all remote files that a rendered workflow mentions, without duplicates.
pub fn of_workflow(own: &OwnNames, status: &WorkflowStatus) -> Vec<RemoteFile> {
    let mut all: Vec<RemoteFile> = Vec::new();
    for task in &status.tasks {
        for action in &task.actions {
            let environment = serve::environment(task, action);
            let is_oci = reads_registry(&action.image);
            let mentioned = |entry: &String| file(own, is_oci, &environment, entry);
            for wanted in environment.iter().filter_map(mentioned) {
                if !all.contains(&wanted) {
                    all.push(wanted);
                }
            }
        }
    }
    all
}

/// Returns the environment of an action with the URL of each remote file replaced by the result of
/// `place`. For `None`, the URL stays unchanged.
pub fn rewritten(
    own: &OwnNames,
    image: &str,
    environment: &[String],
    place: impl Fn(&RemoteFile) -> Option<String>,
) -> Vec<String> {
    let is_oci = reads_registry(image);
    let rewrite = |entry: &String| {
        let wanted = file(own, is_oci, environment, entry)?;
        let (key, _) = entry.split_once('=')?;
        Some(format!("{key}={}", place(&wanted)?))
    };
    environment.iter().map(|entry| rewrite(entry).unwrap_or_else(|| entry.clone())).collect()
}

#[cfg(test)]
mod tests;
