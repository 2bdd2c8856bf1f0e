//! URLs as Go's `net/url` parses and formats them; browsers use other rules.

use std::fmt;
use std::net::Ipv6Addr;

const BAD_PORT: &str = "invalid port after host";

/// URL. All parts except `query` and `opaque` are unescaped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Url {
    /// Scheme, in lower case.
    pub scheme: String,
    /// Text after the scheme, if no slash follows the scheme; still escaped.
    pub opaque: String,
    /// User and password of the URL.
    pub user: Option<User>,
    /// Host, with the port if there is one.
    pub host: String,
    /// Path of the URL.
    pub path: String,
    /// Text after the question mark; still escaped.
    pub query: String,
    /// Text after the hash.
    pub fragment: String,
}

/// User name and password of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    name: String,
    password: Option<String>,
}

/// Part of a URL; determines which characters are escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    User,
    Host,
    Zone,
    Fragment,
}

impl Part {
    /// Returns true if a byte is not escaped.
    fn keeps(self, byte: u8) -> bool {
        let more = match self {
            Part::Path => "$&+,/:;=@",
            Part::User => "$&+,;=",
            Part::Host | Part::Zone => "!\"$&'()*+,:;<=>[]",
            Part::Fragment => "!$&()*+,/:;=?@",
        };
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || more.as_bytes().contains(&byte)
    }
}

fn escaped(text: &str, part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match part.keeps(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn unescaped(text: &str, part: Part) -> Result<String, String> {
    let is_host = matches!(part, Part::Host | Part::Zone);
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        if *byte != b'%' {
            if is_host && byte.is_ascii() && !part.keeps(*byte) {
                return Err("invalid character in host name".to_owned());
            }
            out.push(*byte);
            rest = after;
            continue;
        }
        let bad = || "invalid URL escape".to_owned();
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|it| it.is_ascii_hexdigit()));
        let digits = digits.ok_or_else(bad)?;
        let value = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        let is_allowed = match part {
            // In a host, only non-ASCII bytes and the percent sign of a zone may be escaped.
            Part::Host => value >= 0x80 || digits == "25",
            Part::Zone => digits == "25" || value == b' ' || Part::Host.keeps(value),
            _ => true,
        };
        if !is_allowed {
            return Err(bad());
        }
        out.push(value);
        rest = &after[2..];
    }
    String::from_utf8(out).map_err(|_| "a part of the URL is not UTF-8".to_owned())
}

impl Url {
    /// Parses a URL or a relative reference.
    ///
    /// # Errors
    /// The URL is not valid. The message does not contain the URL, because it may have a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::without_fragment(text)?;
        url.fragment = unescaped(fragment, Part::Fragment)?;
        Ok(url)
    }

    fn without_fragment(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("invalid control character in URL".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            url.path = text.to_owned();
            return Ok(url);
        }
        let (scheme, rest) = scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.to_owned();
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if first_segment(rest).contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let authority = rest.strip_prefix("//");
        let authority = authority.filter(|rest| !scheme.is_empty() || !rest.starts_with('/'));
        let path = match authority {
            Some(after) => {
                let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
                (url.user, url.host) = parse_authority(scheme, authority)?;
                path
            }
            None => rest,
        };
        url.path = unescaped(path, Part::Path)?;
        Ok(url)
    }

    /// Returns the host without port and brackets.
    pub fn hostname(&self) -> &str {
        let host = match self.host.rfind(':') {
            Some(colon) if is_port(&self.host[colon..]) => &self.host[..colon],
            _ => &self.host,
        };
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }
}

fn first_segment(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Returns the scheme and the text after its colon; an empty scheme if there is none.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let end = text.find(|c| !is_inner(c)).unwrap_or(text.len());
    match text[end..].strip_prefix(':') {
        Some(_) if end == 0 => Err("missing protocol scheme".to_owned()),
        Some(rest) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Ok((&text[..end], rest))
        }
        _ => Ok(("", text)),
    }
}

fn parse_authority(scheme: &str, text: &str) -> Result<(Option<User>, String), String> {
    let Some((user, host)) = text.rsplit_once('@') else {
        return Ok((None, parse_host(scheme, text)?));
    };
    let host = parse_host(scheme, host)?;
    let may_be = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(may_be) {
        return Err("invalid userinfo".to_owned());
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(unescaped(password, Part::User)?)),
        None => (user, None),
    };
    Ok((Some(User { name: unescaped(name, Part::User)?, password }), host))
}

/// Returns true for an empty text, or a colon and any number of digits.
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => text.is_empty(),
    }
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return parse_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Go is strict about more than one colon where it knows the scheme.
    let colon = match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => host.find(':'),
        _ => host.rfind(':'),
    };
    if colon.is_some_and(|colon| !is_port(&host[colon..])) {
        return Err(BAD_PORT.to_owned());
    }
    unescaped(host, Part::Host)
}

/// Parses a host such as `[fe80::1%25eth0]:80`.
fn parse_literal(host: &str) -> Result<String, String> {
    let close = host.rfind(']').ok_or("missing ']' in host")?;
    let (inner, after) = (&host[1..close], &host[close + 1..]);
    if !is_port(after) {
        return Err(BAD_PORT.to_owned());
    }
    let zone = inner.find("%25").unwrap_or(inner.len());
    let address = unescaped(&inner[..zone], Part::Host)?;
    let address = address + &unescaped(&inner[zone..], Part::Zone)?;
    let (number, zone) = address.split_once('%').unwrap_or((&address, "-"));
    if zone.is_empty() || number.parse::<Ipv6Addr>().is_err() {
        return Err("invalid IP-literal".to_owned());
    }
    Ok(format!("[{address}]{after}"))
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.name, Part::User))?;
        match &self.password {
            Some(password) => write!(f, ":{}", escaped(password, Part::User)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        match self.opaque.is_empty() {
            true => self.write_place(f)?,
            false => f.write_str(&self.opaque)?,
        }
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", escaped(&self.fragment, Part::Fragment))?;
        }
        Ok(())
    }
}

impl Url {
    /// Writes user, host and path.
    fn write_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_host = !self.host.is_empty() || self.user.is_some();
        if has_host || (!self.scheme.is_empty() && !self.path.is_empty()) {
            f.write_str("//")?;
        }
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&escaped(&self.host, Part::Host))?;
        let path = if self.path == "*" { "*".to_owned() } else { escaped(&self.path, Part::Path) };
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            f.write_str("/")?;
        }
        // Without this prefix, the first segment would be parsed as a scheme.
        if self.scheme.is_empty() && !has_host && first_segment(&path).contains(':') {
            f.write_str("./")?;
        }
        f.write_str(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn a_url_is_taken_apart() {
        let url = Url::parse("HTTPS://me:a%20b@[fe80::1%25eth0]:8443/a%2Fb/c?x=1&y=%20#top%21");
        let url = url.unwrap();
        assert_eq!(url.scheme, "https");
        assert_eq!(url.user.as_ref().unwrap().to_string(), "me:a%20b");
        assert_eq!((url.host.as_str(), url.hostname()), ("[fe80::1%eth0]:8443", "fe80::1%eth0"));
        assert_eq!((url.path.as_str(), url.query.as_str()), ("/a/b/c", "x=1&y=%20"));
        assert_eq!(url.fragment, "top!");
        let url = Url::parse("mailto:root@box").unwrap();
        assert_eq!((url.scheme.as_str(), url.opaque.as_str()), ("mailto", "root@box"));
        let url = Url::parse("///a//b").unwrap();
        assert_eq!((url.host.as_str(), url.path.as_str()), ("", "///a//b"));
        assert_eq!(Url::parse("//box:80/x").unwrap().hostname(), "box");
    }

    #[test]
    fn what_go_does_not_take_is_none() {
        for text in [
            ":a",
            "a b:c/",
            "1:2",
            "http://a b/",
            "http://[::1",
            "http://[1.2.3.4]/",
            "http://[::1%25]/",
            "http://a:b/",
            "http://a:1:2/",
            "http://%41/",
            "http://u ser@h/",
            "/%zz",
            "/a\u{7f}",
            "/a#%z",
        ] {
            assert!(Url::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn parts_are_escaped_where_they_must_be() {
        let url = Url {
            scheme: "http".into(),
            host: "box:80".into(),
            path: "a b?/ü".into(),
            query: "q=1".into(),
            fragment: "x y".into(),
            ..Url::default()
        };
        assert_eq!(url.to_string(), "http://box:80/a%20b%3F/%C3%BC?q=1#x%20y");
        let url = Url { path: "a:b/c".into(), ..Url::default() };
        assert_eq!(url.to_string(), "./a:b/c");
    }
}
