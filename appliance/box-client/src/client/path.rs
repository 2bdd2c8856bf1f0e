//! Paths and queries of the API.

use std::fmt;

use api::core::SERVICE_ACCOUNT;
use api::meta::Resource;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that are percent-encoded in a path segment or a query value: all except the
/// unreserved (RFC 3986 section 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// API path of a collection or of one object. Displays as in messages: `workflow/install`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    path: String,
    shown: String,
}

impl Path {
    /// Path of all objects of a kind in a namespace; empty for cluster-scoped kinds.
    pub fn collection(resource: Resource, namespace: &str) -> Path {
        let root = if resource.group.is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{root}/{}", resource.api_version());
        if !namespace.is_empty() {
            path.push_str("/namespaces/");
            path.push_str(&escape(namespace));
        }
        path.push('/');
        path.push_str(resource.plural);
        Path { path, shown: resource.kind.to_lowercase() }
    }

    /// Path of one object.
    pub fn object(resource: Resource, namespace: &str, name: &str) -> Path {
        // A list with `-q` prints KIND/NAME.
        let kind = format!("{}/", resource.kind.to_ascii_lowercase());
        let name = name.strip_prefix(&kind).unwrap_or(name);
        let collection = Path::collection(resource, namespace);
        Path {
            path: format!("{}/{}", collection.path, escape(name)),
            shown: format!("{}/{name}", collection.shown),
        }
    }

    /// Path to create tokens of a ServiceAccount.
    pub fn token(namespace: &str, account: &str) -> Path {
        let account_path = Path::object(SERVICE_ACCOUNT, namespace, account);
        Path {
            path: format!("{}/token", account_path.path),
            shown: format!("token of {}", account_path.shown),
        }
    }

    /// Path of the progress of a workflow's running action: an extension of the API.
    pub fn progress(namespace: &str, workflow: &str) -> Path {
        let (namespace, name) = (escape(namespace), escape(workflow));
        Path {
            path: format!(
                "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/workflows/{name}/progress"
            ),
            shown: format!("progress of workflow/{workflow}"),
        }
    }

    /// Path of the latest syslog lines of a machine: an extension of the API.
    pub fn log(namespace: &str, hardware: &str, lines: usize) -> Path {
        let Path { path, shown } = Path::of_object(namespace, "hardware", hardware, "log");
        Path { path: format!("{path}?lines={lines}"), shown }
    }

    /// Path of a part of an object that is not stored in the object, such as a reading of a BMC: an
    /// extension of the API.
    pub fn of_object(namespace: &str, kind: &str, name: &str, part: &str) -> Path {
        let (namespace, escaped) = (escape(namespace), escape(name));
        let of = format!("/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/{kind}/{escaped}");
        Path { path: format!("{of}/{part}"), shown: format!("{part} of {kind}/{name}") }
    }

    /// Path of the serial console of a machine: an extension of the API.
    pub fn console(namespace: &str, hardware: &str) -> Path {
        Path::of_object(namespace, "hardware", hardware, "console")
    }

    fn fixed(path: &str, shown: &str) -> Path {
        Path { path: path.to_owned(), shown: shown.to_owned() }
    }

    /// Path of the DHCP clients of the last hour: an extension of the API.
    pub fn dhcp_clients() -> Path {
        Path::fixed("/apis/tinbox.dev/v1alpha1/heard", "list of DHCP clients")
    }

    /// Path of the status view of the box: an extension of the API.
    pub fn status() -> Path {
        Path::fixed("/apis/tinbox.dev/v1alpha1/status", "the state of the box")
    }

    /// Path of the image cache: an extension of the API.
    pub fn images() -> Path {
        Path { path: "/apis/tinbox.dev/v1alpha1/images".to_owned(), shown: "images".to_owned() }
    }

    /// Path of the file of an OSImage: an extension of the API.
    pub fn os_image_file(namespace: &str, name: &str) -> Path {
        Path::of_object(namespace, "osimages", name, "file")
    }

    /// Path to blink the box's LED: an extension of the API.
    pub fn identify() -> Path {
        Path::fixed("/apis/tinbox.dev/v1alpha1/identify", "the box's lights")
    }

    /// Path to search the networks for BMCs: an extension of the API.
    pub fn bmc_discovery() -> Path {
        Path::fixed("/apis/tinbox.dev/v1alpha1/bmc-discovery", "the search for BMCs")
    }

    /// Path of the box's system and its updates: an extension of the API.
    pub fn update() -> Path {
        Path::fixed("/apis/box.tinbox.dev/v1alpha1/update", "the box's system")
    }

    /// Path to return to the system in the other slot.
    pub fn rollback() -> Path {
        Path::fixed("/apis/box.tinbox.dev/v1alpha1/update/rollback", "the system before")
    }

    /// Path to restart into an installed update.
    pub fn restart() -> Path {
        Path::fixed("/apis/box.tinbox.dev/v1alpha1/update/restart", "the restart")
    }

    /// Path of the settings (`box.toml`): an extension of the API, for administrators only.
    pub fn settings() -> Path {
        Path::fixed("/apis/box.tinbox.dev/v1alpha1/settings", "the settings")
    }

    /// Path of a part of the settings API: `history`, `diff` or `revert`.
    pub fn of_settings(what: &str) -> Path {
        let Path { path, shown } = Path::settings();
        Path { path: format!("{path}/{what}"), shown: format!("{shown} ({what})") }
    }

    /// Path of the backups API. `what` is a suffix such as `/kept`, or empty.
    pub fn backup(what: &str) -> Path {
        Path { path: format!("/backup{what}"), shown: "a backup".to_owned() }
    }

    /// Path of the access tokens. `what` is a suffix that begins with a slash, or empty.
    pub fn access(what: &str) -> Path {
        let path = format!("/apis/box.tinbox.dev/v1alpha1/access{what}");
        Path { path, shown: "the tokens".to_owned() }
    }

    /// Path to restart, switch off or reset the box.
    pub fn reset() -> Path {
        Path::fixed("/apis/box.tinbox.dev/v1alpha1/reset", "the reset of the box")
    }

    /// Returns the path as sent to the box, with its query if it has one.
    pub fn as_str(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Builds a query such as `?a=b&c=d`. Pairs with an empty value are left out.
pub fn query(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(&format!("{key}={}", escape(value)));
    }
    text
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::{Path, query};
    use api::core::SECRET;
    use api::tinkerbell::WORKFLOW;

    #[test]
    fn paths() {
        let object = Path::object(WORKFLOW, "default", "install");
        let path = "/apis/tinkerbell.org/v1alpha1/namespaces/default/workflows/install";
        assert_eq!((object.as_str(), object.to_string().as_str()), (path, "workflow/install"));
        let secrets = Path::collection(SECRET, "a");
        assert_eq!(secrets.as_str(), "/api/v1/namespaces/a/secrets");
        let odd = Path::object(SECRET, "a", "../b?c");
        assert_eq!(odd.as_str(), "/api/v1/namespaces/a/secrets/..%2Fb%3Fc");
    }

    #[test]
    fn queries() {
        assert_eq!(query(&[("a", ""), ("b", "x=y,z"), ("c", "1")]), "?b=x%3Dy%2Cz&c=1");
        assert_eq!(query(&[]), "");
    }
}
