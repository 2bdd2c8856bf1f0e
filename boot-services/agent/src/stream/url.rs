//! `http://host[:port]/path?query`, printed without its query, which may hold a secret.

use std::fmt;
use std::str::FromStr;

use http::Uri;

use crate::Error;

/// An absolute URL this agent can fetch: plain HTTP, no user name.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    host: String,
    port: u16,
    path: String,
}

impl Url {
    /// `host:port` to connect to; an IPv6 literal keeps its brackets.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The `Host` field (RFC 9112 section 3.2): the port only when it is not 80.
    pub(super) fn host_field(&self) -> String {
        if self.port == 80 { self.host.clone() } else { self.address() }
    }

    /// The request target in origin form.
    pub(super) fn target(&self) -> &str {
        &self.path
    }

    /// The last part of the path, without the query.
    pub(super) fn file_name(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }

    /// Where a `Location` field leads from here (RFC 9110 section 10.2.2).
    pub(super) fn join(&self, location: &str) -> Result<Self, Error> {
        if location.contains("://") {
            return location.parse();
        }
        let path = if location.starts_with('/') {
            location.to_owned()
        } else {
            let path = self.path.split('?').next().unwrap_or("/");
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{location}")
        };
        format!("http://{}{path}", self.address()).parse()
    }
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let shown = || {
            let plain = text.split(['?', '#']).next().unwrap_or_default();
            match (plain.split_once("://"), plain.rsplit_once('@')) {
                (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
                _ => plain.to_owned(),
            }
        };
        let refuse = |reason: &str| Error::Url { url: shown(), reason: reason.to_owned() };
        let uri: Uri = text.parse().map_err(|_| refuse("it is not a URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(refuse("https is not supported yet; use http")),
            _ => return Err(refuse("it does not begin with http://")),
        }
        let authority = uri.authority().ok_or_else(|| refuse("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(refuse("a user name in it is not supported"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(80),
            path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.split('?').next().unwrap_or_default();
        write!(f, "http://{}{path}", self.host_field())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn reads_and_hides() {
        let url: Url = "http://10.77.0.1:7080/images/a.zst?token=s3cret".parse().unwrap();
        assert_eq!(url.to_string(), "http://10.77.0.1:7080/images/a.zst");
        assert_eq!(url.target(), "/images/a.zst?token=s3cret");
        assert_eq!(url.address(), "10.77.0.1:7080");
        let url: Url = "http://box/a".parse().unwrap();
        assert_eq!(url.join("b?x=1").unwrap().target(), "/b?x=1");
        assert_eq!(url.join("/c/d").unwrap().to_string(), "http://box/c/d");
        assert_eq!(url.join("http://other:81/").unwrap().address(), "other:81");
    }

    #[test]
    fn refuses_with_a_reason_and_no_secret() {
        for (text, words) in [
            ("https://box/a?token=s3cret", "https is not supported"),
            ("ftp://box/a", "does not begin with http://"),
            ("not a url", "not a URL"),
            ("/a", "does not begin"),
            ("http://me:s3cret@box/a", "user name"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
