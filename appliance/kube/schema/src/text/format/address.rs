//! Addresses as Go's `net` parses them; the IPv4 and CIDR formats accept leading zeros
//! (k8s.io/utils `net.ParseIPSloppy`).

use std::net::Ipv6Addr;

/// Returns true for an IPv4 address, or an IPv6 address that ends in an IPv4 address.
pub(crate) fn is_ipv4(text: &str) -> bool {
    let is_v4_first = text.find(['.', ':']).is_some_and(|at| text.as_bytes()[at] == b'.');
    match is_v4_first {
        true => is_dotted_quad(text),
        false => text.contains('.') && is_lenient_ipv6(text),
    }
}

pub(crate) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(crate) fn is_cidr(text: &str) -> bool {
    let Some((address, mask)) = text.split_once('/') else { return false };
    let bits = match (is_dotted_quad(address), is_lenient_ipv6(address)) {
        (true, _) => 32,
        (false, true) => 128,
        (false, false) => return false,
    };
    decimal(mask).is_some_and(|mask| mask <= bits)
}

/// Returns the value of a decimal number, with any leading zeros; `None` if above `u32`.
fn decimal(text: &str) -> Option<u32> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let significant = text.trim_start_matches('0');
    match (is_plain, significant) {
        (false, _) => None,
        (true, "") => Some(0),
        (true, digits) => digits.parse().ok(),
    }
}

fn is_dotted_quad(text: &str) -> bool {
    let octets = text.split('.');
    octets.clone().count() == 4
        && octets.into_iter().all(|octet| decimal(octet).is_some_and(|octet| octet <= 0xff))
}

/// Returns true for an IPv6 address with any number of leading zeros in a group.
fn is_lenient_ipv6(text: &str) -> bool {
    if text.len() > 255 {
        return false;
    }
    let shortened = |group: &str| {
        let digits = group.trim_start_matches('0');
        if digits.is_empty() && !group.is_empty() { "0".to_owned() } else { digits.to_owned() }
    };
    let mut groups: Vec<String> = Vec::new();
    for group in text.split(':') {
        groups.push(match group.contains('.') {
            true => group.split('.').map(shortened).collect::<Vec<_>>().join("."),
            false => shortened(group),
        });
    }
    groups.join(":").parse::<Ipv6Addr>().is_ok()
}

/// Returns true for 6, 8 or 20 bytes as `00:00:…`, `00-00-…` or `0000.0000.…`.
pub(crate) fn is_mac(text: &str) -> bool {
    let Some(separator) = text.chars().find(|c| matches!(c, ':' | '-' | '.')) else {
        return false;
    };
    let width = if separator == '.' { 4 } else { 2 };
    let mut groups = 0;
    for group in text.split(separator) {
        if group.len() != width || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        groups += 1;
    }
    matches!(groups * width / 2, 6 | 8 | 20)
}
