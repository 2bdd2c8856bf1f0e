//! Host that a client requested.

use axum::http::header::HOST;
use axum::http::{HeaderMap, Uri};

/// Maximum length of a host in characters: the longest host name (RFC 1035), brackets and a port.
const HOST_CHARS_MAX: usize = 265;
/// Port that a URL of HTTPS does not name.
const HTTPS_PORT: u16 = 443;

/// Returns the requested host without its port; `None` if it is missing or not valid.
pub fn host(headers: &HeaderMap) -> Option<String> {
    host_of(headers.get(HOST)?.to_str().ok()?)
}

pub fn host_of(text: &str) -> Option<String> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => format!("[{}]", rest.split_once(']')?.0),
        None => text.split(':').next()?.to_owned(),
    };
    let good = |char: char| char.is_ascii_alphanumeric() || "-._:[]".contains(char);
    (!bare.is_empty() && bare.len() <= HOST_CHARS_MAX && bare.chars().all(good)).then_some(bare)
}

/// Returns the requested host: of the URL (HTTP/2), else of the `Host` header.
pub(crate) fn asked(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    uri.authority().and_then(|it| host_of(it.as_str())).or_else(|| host(headers))
}

/// Returns the URL of the pages by which the client reached the box: `https://box.example:8443`.
pub fn pages(uri: &Uri, headers: &HeaderMap) -> String {
    let header = headers.get(HOST).and_then(|it| it.to_str().ok());
    let requested = uri.authority().map(|it| it.as_str()).or(header).unwrap_or_default();
    let host = host_of(requested).unwrap_or_default();
    let port = requested.strip_prefix(&host).and_then(|rest| rest.strip_prefix(':'));
    let port = port.and_then(|port| port.parse::<u16>().ok()).filter(|port| *port != HTTPS_PORT);
    port.map_or_else(|| format!("https://{host}"), |port| format!("https://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use axum::http::header::HOST;
    use axum::http::{HeaderMap, HeaderValue, Uri};

    use super::pages;

    #[test]
    fn the_url_of_the_pages_has_only_a_valid_host_and_port() {
        let by_header = |host: &'static str| {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            pages(&Uri::from_static("/cluster-api"), &headers)
        };
        assert_eq!(by_header("192.168.7.1"), "https://192.168.7.1");
        assert_eq!(by_header("box.example:443"), "https://box.example");
        assert_eq!(by_header("[fd00::1]:8443"), "https://[fd00::1]:8443");
        assert_eq!(by_header("box:8443'; reboot '"), "https://box");
        assert_eq!(by_header("a$(reboot)"), "https://");
        let http2 = Uri::from_static("https://box.example:8443/cluster-api");
        assert_eq!(pages(&http2, &HeaderMap::new()), "https://box.example:8443");
    }
}
