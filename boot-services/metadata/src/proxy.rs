//! Determines the client's address behind a proxy from `X-Forwarded-For`, which is trusted only
//! from configured proxies.
//!
//! Each proxy appends the address of its client, so the list is read from its end: the first
//! address that is not a trusted proxy is the client. The client itself wrote the entries before
//! it; they are ignored. Tootles reads the list in the same way (`pkg/xff`), but with a malformed
//! list it treats the proxy as the client. Here such a request is refused, because the proxy may be
//! a machine.

use std::net::IpAddr;

use axum::http::HeaderMap;

use crate::Config;

/// Name of the header.
pub(crate) const FORWARDED_FOR: &str = "x-forwarded-for";
/// Maximum trusted proxies in a row.
const MAX_HOPS: usize = 16;

/// Error: a trusted proxy sent a list without a valid client address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Returns the client's address; an IPv4-mapped IPv6 address becomes IPv4.
pub(crate) fn client(
    peer: IpAddr,
    headers: &HeaderMap,
    config: &Config,
) -> Result<IpAddr, Malformed> {
    let mut client = peer.to_canonical();
    if !config.trusts(client) {
        return Ok(client);
    }
    // Several such headers are one list (RFC 9110, section 5.3).
    let lines = headers.get_all(FORWARDED_FOR).into_iter().rev();
    let hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    for (count, hop) in hops.enumerate() {
        let hop = str::from_utf8(hop.trim_ascii()).map_err(|_| Malformed)?;
        client = hop.parse::<IpAddr>().map_err(|_| Malformed)?.to_canonical();
        if !config.trusts(client) {
            return Ok(client);
        }
        if count == MAX_HOPS {
            return Err(Malformed);
        }
    }
    Ok(client)
}

#[cfg(test)]
mod tests;
