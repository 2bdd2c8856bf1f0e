//! Which files of other servers an action's environment mentions, and how it is told to get them
//! from the box. Pure.

use std::collections::HashSet;
use std::net::IpAddr;

use api::state::serve;
use api::tinkerbell::WorkflowStatus;
use artifact_cache::Wanted;
use artifact_cache::registry::{self, Reference};
use axum::http::Uri;

/// Where actions have the URL of a file, and where its checksum: `image2disk` and what is like it
/// (IMG_SHA256 is our own, and so is a publisher's file of checksums), `archive2disk`.
const FILES: [(&str, &str); 3] =
    [("IMG_URL", "IMG_SHA256"), ("IMG_CHECKSUM_URL", ""), ("ARCHIVE_URL", "TARFILE_CHECKSUM")];
/// The action whose IMG_URL is no URL but a [`Reference`], and the setting by which it says that
/// the registry wants a user, whom the box does not know.
const OCI: &str = "oci2disk";
const OCI_FILE: &str = "IMG_URL";
const OCI_USER: &str = "REGISTRY_USERNAME";

/// Names and addresses that are the box's own.
pub struct Own(HashSet<String>);

impl Own {
    /// By these names and addresses the box is known.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| plain(&name)).collect())
    }

    /// Whether a file is another server's: an `http`, `https` or `oci` URL without a user whose
    /// host is neither the box nor, as loopback and link-local addresses are, whoever asks.
    pub fn is_foreign(&self, url: &str) -> bool {
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

/// The address of a URL whose host is one.
pub fn address(url: &str) -> Option<IpAddr> {
    let uri: Uri = url.parse().ok()?;
    plain(uri.host()?).parse().ok()
}

/// A host in one spelling.
fn plain(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    host.parse::<IpAddr>().map_or(host, |ip| ip.to_canonical().to_string())
}

/// Whether the action of `image` has its files in registries.
pub fn reads_registry(image: &str) -> bool {
    serve::repository(image) == OCI
}

/// The file that an environment (`KEY=value` each) mentions in `entry`; with `is_oci` by a
/// reference.
fn file(own: &Own, is_oci: bool, environment: &[String], entry: &str) -> Option<Wanted> {
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
    // One that cannot be read, or is of an algorithm unknown here, is the action's to check.
    let checksum = value(checksum).and_then(|text| text.parse().ok());
    Some(Wanted { url, checksum })
}

/// The URL of a file in a registry that asks for no user.
fn of_registry(reference: &str, user: Option<&str>) -> Option<String> {
    let reference = reference.strip_prefix(registry::SCHEME).unwrap_or(reference);
    let is_anybodys = user.is_none_or(str::is_empty);
    let good = is_anybodys && Reference::parse(reference).is_ok();
    good.then(|| format!("{}{reference}", registry::SCHEME))
}

/// Every file of another server that a rendered workflow mentions, once.
pub fn of_workflow(own: &Own, status: &WorkflowStatus) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
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

/// The environment of an action with the URLs that `place` gives for files of other servers, and
/// with the action's own URL where it gives none.
pub fn rewritten(
    own: &Own,
    image: &str,
    environment: &[String],
    place: impl Fn(&Wanted) -> Option<String>,
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
