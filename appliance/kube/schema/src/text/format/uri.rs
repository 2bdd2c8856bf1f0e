//! Check of a URI as Go's `url.ParseRequestURI`: an absolute URI or an absolute path.

pub(crate) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if !rest.starts_with('/') {
        // Without a slash the URI is opaque; only a scheme makes it absolute.
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(after) => {
            let (authority, path) = match after.find('/') {
                Some(at) => after.split_at(at),
                None => (after, ""),
            };
            if !is_authority(authority) {
                return false;
            }
            path
        }
        None => rest,
    };
    has_valid_escapes(path)
}

/// Returns scheme (empty if there is none) and rest; `None` if the text begins with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return Some((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn has_valid_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let mut bytes = after.bytes();
        let is_hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
        is_hex(bytes.next()) && is_hex(bytes.next())
    })
}

fn is_authority(text: &str) -> bool {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    user.is_none_or(|user| user.chars().all(is_user_char) && has_valid_escapes(user))
        && is_host(host)
}

fn is_user_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c)
}

fn is_host(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix('[') {
        let Some((address, port)) = inner.rsplit_once(']') else { return false };
        let (address, zone) = match address.split_once("%25") {
            Some((address, zone)) => (address, Some(zone)),
            None => (address, None),
        };
        let is_zone = |zone: &str| !zone.is_empty() && has_valid_escapes(zone);
        return is_port(port)
            && address.parse::<std::net::Ipv6Addr>().is_ok()
            && zone.is_none_or(is_zone);
    }
    let name = match text.rfind(':') {
        Some(at) => {
            let (name, port) = text.split_at(at);
            if !is_port(port) || name.contains(':') && !is_plain_host(name) {
                return false;
            }
            name
        }
        None => text,
    };
    is_plain_host(name) && has_host_escapes(name)
}

fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => text.is_empty(),
    }
}

fn is_plain_host(text: &str) -> bool {
    let is_allowed = |c: char| {
        !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c)
    };
    text.chars().all(is_allowed)
}

/// Returns true if escapes in a host are valid: only of bytes above ASCII, and of `%` itself.
fn has_host_escapes(text: &str) -> bool {
    let is_above_ascii = |after: &str| {
        after.starts_with("25") || after.bytes().next().is_some_and(|byte| byte > b'7')
    };
    has_valid_escapes(text) && text.split('%').skip(1).all(is_above_ascii)
}
