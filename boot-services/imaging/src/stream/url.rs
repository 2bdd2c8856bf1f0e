//! URLs, `http(s)://host[:port]/path?query`. Messages omit the query, which may contain a secret.

use std::fmt;
use std::str::FromStr;

use http::Uri;

use crate::Error;

/// Absolute http or https URL without a user name.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    secure: bool,
    host: String,
    port: u16,
    path: String,
}

impl Url {
    /// Returns `host:port` for the connection. An IPv6 literal keeps its brackets.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns true for `https`.
    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Returns the host name or IP address that the server's certificate must have.
    pub(super) fn server_name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// Returns the value of the `Host` field (RFC 9112 section 3.2), without the scheme's default
    /// port.
    pub fn host_field(&self) -> String {
        if self.port == port_of(self.secure) { self.host.clone() } else { self.address() }
    }

    /// Returns the request target in origin form: path and query.
    pub(super) fn target(&self) -> &str {
        &self.path
    }

    /// Returns the last part of the path, without the query.
    pub(super) fn file_name(&self) -> &str {
        self.path().rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path without the query.
    pub(super) fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Resolves the value of a `Location` field relative to this URL (RFC 9110 section 10.2.2, RFC
    /// 3986 section 5). A redirect from https to http is an error.
    pub(super) fn join(&self, location: &[u8]) -> Result<Self, Error> {
        let reason = "it redirects to an invalid URL".to_owned();
        let refuse = |_| Error::Url { url: self.to_string(), reason };
        let base = format!("{}://{}{}", self.scheme(), self.address(), self.path);
        let base = url::Url::parse(&base);
        let joined = base.and_then(|base| base.join(&encoded(location)));
        let mut to = joined.map_err(refuse)?;
        if self.secure && to.scheme() == "http" {
            let reason = "it redirects from https to http, which is not secure".to_owned();
            return Err(Error::Url { url: self.to_string(), reason });
        }
        to.set_fragment(None);
        to.as_str().parse().map_err(|error| match error {
            Error::Url { url, reason } => {
                Error::Url { url, reason: format!("{reason} ({self} redirects there)") }
            }
            error => error,
        })
    }
}

/// Percent-encodes bytes beyond ASCII in a `Location` field, which some servers leave unencoded.
fn encoded(field: &[u8]) -> String {
    let encode = |byte: &u8| match byte.is_ascii() {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    field.iter().map(encode).collect()
}

fn port_of(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
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
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(refuse("it does not begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| refuse("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refuse("a user name in it is not supported"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            secure,
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(port_of(secure)),
            path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme(), self.host_field(), self.path())
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
        assert_eq!(url.join(b"b?x=1").unwrap().target(), "/b?x=1");
        assert_eq!(url.join(b"/c/d").unwrap().to_string(), "http://box/c/d");
        assert_eq!(url.join(b"http://other:81/").unwrap().address(), "other:81");
    }

    #[test]
    fn redirects_lead_where_the_rfc_says() {
        let url: Url = "http://box:81/a/b;c?d=/e".parse().unwrap();
        for (location, target) in [
            (&b"/file?from=http://mirror.example/b"[..], "/file?from=http://mirror.example/b"),
            (b"other?u=https://a/b", "/a/other?u=https://a/b"),
            (b"../g/./h/../i", "/g/i"),
            (b"?y", "/a/b;c?y"),
            (b"", "/a/b;c?d=/e"),
            (b"#part", "/a/b;c?d=/e"),
            (b"my disk|1.img#part", "/a/my%20disk|1.img"),
            (b"/pl\xc3\xa4tze/\xe4", "/pl%C3%A4tze/%E4"),
            (b"/a%2Fb", "/a%2Fb"),
        ] {
            let to = url.join(location).unwrap();
            assert_eq!((to.address(), to.target()), ("box:81".to_owned(), target));
        }
        assert_eq!(url.join(b"//[fd00::1]/x").unwrap().address(), "[fd00::1]:80");
        for (location, words) in [
            (&b"http://me:s3cret@box/a?s3cret"[..], "fetch http://box/a: a user name"),
            (b"ftp://box/a?s3cret", "(http://box:81/a/b;c redirects there)"),
            (b"http://box:99999/s3cret", "http://box:81/a/b;c: it redirects to an invalid URL"),
        ] {
            let error = url.join(location).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_redirect_keeps_the_scheme_and_never_leads_from_https_to_http() {
        let url: Url = "https://[fd00::1]/a?token=s3cret".parse().unwrap();
        assert_eq!((url.address().as_str(), url.server_name()), ("[fd00::1]:443", "fd00::1"));
        assert_eq!(url.join(b"b").unwrap().to_string(), "https://[fd00::1]/b");
        assert_eq!(url.join(b"//box/b").unwrap().to_string(), "https://box/b");
        let error = url.join(b"http://box/b?s3cret").unwrap_err().to_string();
        assert!(error.contains("to http") && !error.contains("s3cret"), "{error}");
        let plain: Url = "http://box/a".parse().unwrap();
        assert_eq!(plain.join(b"https://box/b").unwrap().to_string(), "https://box/b");
    }

    #[test]
    fn refuses_with_a_reason_and_no_secret() {
        for (text, words) in [
            ("ftp://box/a?token=s3cret", "does not begin with http://"),
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
