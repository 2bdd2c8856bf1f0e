//! Which files of other servers an action's environment mentions, and how it is told to get them
//! from the box. Pure.

use std::collections::HashSet;
use std::net::IpAddr;

use api::state::serve;
use api::tinkerbell::WorkflowStatus;
use axum::http::Uri;
use netboot::cache::Wanted;
use netboot::cache::registry::{self, Reference};

/// Where actions have the URL of a file, and where its checksum: `image2disk` and what is like it
/// (IMG_SHA256 is our own), `archive2disk`.
const FILES: [(&str, &str); 2] = [("IMG_URL", "IMG_SHA256"), ("ARCHIVE_URL", "TARFILE_CHECKSUM")];
/// The action whose IMG_URL is no URL but a [`Reference`], and the setting by which it says that
/// the registry wants a user, whom the box does not know.
const OCI: &str = "oci2disk";
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
    let url = if is_oci { of_registry(url, value(OCI_USER))? } else { url.to_owned() };
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

/// The environment of an action with the URLs that `place` gives for files of other servers.
pub fn rewritten(
    own: &Own,
    image: &str,
    environment: &[String],
    place: impl Fn(&Wanted) -> String,
) -> Vec<String> {
    let is_oci = reads_registry(image);
    let rewrite = |entry: &String| {
        let wanted = file(own, is_oci, environment, entry)?;
        let (key, _) = entry.split_once('=')?;
        Some(format!("{key}={}", place(&wanted)))
    };
    environment.iter().map(|entry| rewrite(entry).unwrap_or_else(|| entry.clone())).collect()
}

#[cfg(test)]
mod tests {
    use api::tinkerbell::{ActionStatus, TaskStatus, WorkflowStatus};
    use netboot::cache::{Checksum, Digest};

    use super::{Own, of_workflow, rewritten};

    fn own() -> Own {
        Own::new(["10.77.0.1", "fd77::1", "Tinbox.local"].map(str::to_owned))
    }

    #[test]
    fn the_boxs_own_files_and_what_is_no_url_are_left_alone() {
        for (url, foreign) in [
            ("http://10.1.2.3/a.raw", true),
            ("https://images.example:8443/a.raw?x=1", true),
            ("http://[2001:db8::1]/a", true),
            ("http://10.77.0.1:7080/images/a.raw", false),
            ("http://[fd77:0::1]/a", false),
            ("http://TINBOX.local/a", false),
            ("http://127.0.0.1/a", false),
            ("http://localhost:8080/a", false),
            ("http://169.254.169.254/a", false),
            ("http://me:pw@a.example/a", false),
            ("ftp://a.example/a", false),
            ("oci://ghcr.io/a/b:latest", true),
            ("ghcr.io/a/b:latest", false),
            ("/a", false),
            ("", false),
        ] {
            assert_eq!(own().is_foreign(url), foreign, "{url}");
        }
    }

    #[test]
    fn files_are_found_with_their_checksums_and_told_anew() {
        let digest = Digest::of(b"x");
        let pairs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
        };
        let image = [("IMG_URL", "http://a/b.zst"), ("IMG_SHA256", &*digest.hex())];
        let archive = [("ARCHIVE_URL", "http://a/c.tgz"), ("TARFILE_CHECKSUM", "md5:00")];
        let action = |it: &[(&str, &str)]| ActionStatus {
            environment: pairs(it),
            ..ActionStatus::default()
        };
        let task = TaskStatus {
            actions: vec![action(&image), action(&archive), action(&image)],
            ..TaskStatus::default()
        };
        let status = WorkflowStatus { tasks: vec![task], ..WorkflowStatus::default() };
        let found = of_workflow(&own(), &status);
        let told: Vec<_> = found.iter().map(|it| (it.url.as_str(), it.checksum)).collect();
        let sha256 = Some(Checksum::Sha256(digest));
        assert_eq!(told, [("http://a/b.zst", sha256), ("http://a/c.tgz", None)]);

        let before = ["ARCHIVE_URL=http://a/c.tgz", "DEST_DISK=/dev/sda", "IMG_URL=/a/b"];
        let place = |wanted: &netboot::cache::Wanted| format!("http://box{}", &wanted.url[8..]);
        let after = rewritten(&own(), "image2disk", &before.map(str::to_owned), place);
        let want = ["ARCHIVE_URL=http://box/c.tgz", "DEST_DISK=/dev/sda", "IMG_URL=/a/b"];
        assert_eq!(after, want);
    }

    #[test]
    fn a_reference_is_a_file_to_oci2disk_alone() {
        let told = |image: &str, environment: &[&str]| {
            let environment: Vec<String> = environment.iter().map(ToString::to_string).collect();
            rewritten(&own(), image, &environment, |wanted| format!("at {}", wanted.url)).remove(0)
        };
        let (oci, reference) = ("quay.io/tinkerbell/actions/oci2disk:v1", "IMG_URL=ghcr.io/a/b:c");
        assert_eq!(told(oci, &[reference]), "IMG_URL=at oci://ghcr.io/a/b:c");
        assert_eq!(told(oci, &["IMG_URL=oci://ghcr.io/a/b:c"]), "IMG_URL=at oci://ghcr.io/a/b:c");
        assert_eq!(told("image2disk", &[reference]), reference);
        assert_eq!(told(oci, &[reference, "REGISTRY_USERNAME=me"]), reference);
        for own in ["IMG_URL=10.77.0.1:5000/a:b", "IMG_URL=localhost:5000/a:b", "IMG_URL=a:b"] {
            assert_eq!(told(oci, &[own]), own);
        }
    }
}
