//! HTTPS routes of the repository. They need no session: the content has no secret, and is the same
//! for every box of a version except for the box's name and certificate authority.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::host::gitlab_name;
use crate::repository::Repository;

/// Port that a URL of HTTPS does not name.
const HTTPS_PORT: u16 = 443;
/// Maximum length of a host in characters: the longest host name (RFC 1035) and a port.
const HOST_CHARS_MAX: usize = 261;

/// Release and the box that serves it.
#[derive(Debug)]
struct Site {
    repository: Repository,
    /// Host name of the box without a port, for clients that used an IP address.
    name: String,
    /// Port of the HTTPS listener.
    port: u16,
    /// Certificate authority of the box, as PEM.
    authority: String,
}

/// Returns the routes for a box that is called `name` in its network and listens on `port`.
/// `authority` is the certificate of its authority as PEM.
pub fn router(repository: Repository, name: String, port: u16, authority: String) -> Router {
    Router::new()
        .route("/clusterctl.yaml", get(config))
        .route("/clusterctl.sh", get(script))
        .route("/clusterctl.tar", get(archive))
        .route("/infrastructure-components.yaml", get(components))
        .route("/api/v4/projects/{*file}", get(package_file))
        .with_state(Arc::new(Site { repository, name, port, authority }))
}

async fn config(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Response {
    yaml(site.repository.config(&site.gitlab_host(requested(&uri, &headers))))
}

async fn script(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Response {
    let origin = format!("https://{}", site.host(requested(&uri, &headers)));
    let text = site.repository.script(&origin, &site.authority);
    ([(CONTENT_TYPE, "text/x-shellscript")], text).into_response()
}

async fn archive(State(site): State<Arc<Site>>) -> Response {
    ([(CONTENT_TYPE, "application/x-tar")], site.repository.archive()).into_response()
}

async fn components(State(site): State<Arc<Site>>) -> Response {
    yaml(site.repository.components().to_owned())
}

async fn package_file(State(site): State<Arc<Site>>, uri: Uri) -> Response {
    match site.repository.package_file(uri.path()) {
        Some(text) => yaml(text.to_owned()),
        None => {
            let text = format!(
                "this box serves version {} of the provider: see /clusterctl.yaml\n",
                site.repository.version()
            );
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

/// Returns the host that the client requested. Over HTTP/2 it is in the URL, and `Host` is absent.
fn requested<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a str {
    let header = headers.get(HOST).and_then(|host| host.to_str().ok());
    uri.authority().map(|it| it.as_str()).or(header).unwrap_or_default()
}

fn yaml(text: String) -> Response {
    ([(CONTENT_TYPE, "application/yaml")], text).into_response()
}

impl Site {
    /// Returns the host for the URLs: the requested name if it begins with `gitlab.`, else that
    /// name with `gitlab.` before it. A request by IP address gets the name of the box.
    fn gitlab_host(&self, requested: &str) -> String {
        let name = requested.split(':').next().unwrap_or_default();
        let is_name = name.starts_with(|char: char| char.is_ascii_alphabetic());
        let name = if is_name && is_host(requested) { name } else { &self.name };
        self.with_port(&gitlab_name(name))
    }

    /// Returns the requested host with its port, or the name of the box for an invalid host.
    fn host(&self, requested: &str) -> String {
        if is_host(requested) { requested.to_owned() } else { self.with_port(&self.name) }
    }

    fn with_port(&self, name: &str) -> String {
        match self.port {
            HTTPS_PORT => name.to_owned(),
            port => format!("{name}:{port}"),
        }
    }
}

/// Returns true for a host that can be written into a shell script and a YAML document unquoted.
fn is_host(text: &str) -> bool {
    let allowed = |char: char| char.is_ascii_alphanumeric() || "-.:[]".contains(char);
    !text.is_empty() && text.len() <= HOST_CHARS_MAX && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::Site;
    use crate::Repository;

    fn site(port: u16) -> Site {
        let (repository, authority) = (Repository::new("0.1.0"), "PEM\n".into());
        Site { repository, name: "tinbox.local".into(), port, authority }
    }

    fn host(requested: &str, port: u16) -> String {
        site(port).gitlab_host(requested)
    }

    #[test]
    fn a_script_names_only_a_valid_host() {
        assert_eq!(site(443).host("192.168.7.1:8443"), "192.168.7.1:8443");
        assert_eq!(site(443).host("[fd00::1]"), "[fd00::1]");
        assert_eq!(site(8443).host("box$(reboot).example"), "tinbox.local:8443");
    }

    #[test]
    fn urls_have_a_host_that_clusterctl_accepts() {
        assert_eq!(host("gitlab.box.example", 443), "gitlab.box.example");
        assert_eq!(host("box.example:80", 443), "gitlab.box.example");
        assert_eq!(host("192.168.7.1", 443), "gitlab.tinbox.local");
        assert_eq!(host("[fd00::1]:8443", 8443), "gitlab.tinbox.local:8443");
        assert_eq!(host("box\".example", 443), "gitlab.tinbox.local");
    }
}
