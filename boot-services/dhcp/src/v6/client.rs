//! Identity of a DHCPv6 client, and kind of the client program.

use std::net::Ipv6Addr;

use stdx::MacAddr;

use super::message::{Message, Options, code};
use crate::messages::client::Stage;

const ETHERNET: [u8; 2] = [0, 1];

/// Identity of a machine for [`super::Directory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// MAC address of one of the machine's interfaces.
    Mac(MacAddr),
    /// System UUID in SMBIOS's form (first three fields little-endian), sent by firmware and iPXE.
    Uuid([u8; 16]),
}

/// Returns the client's identities, the most reliable first: the MAC address in its DUID (RFC 8415
/// §11.2, §11.4), the address that its relay reports (RFC 6939), the source of its link-local
/// address (RFC 4291 appendix A), and the UUID in its DUID (RFC 6355). EDK2's DUID has only the
/// UUID.
pub(super) fn identities(message: &Message<'_>, from: Ipv6Addr) -> impl Iterator<Item = Identity> {
    let duid = message.client_id.unwrap_or_default();
    let nearest = message.relays.last();
    let relay = nearest.and_then(|relay| relay.options.get(code::LINK_LAYER));
    let relay = relay.and_then(|value| value.strip_prefix(&ETHERNET)).and_then(mac);
    let client = nearest.map_or(from, |relay| relay.peer);
    let macs = [duid_mac(duid), relay, eui_64(client)];
    let uuid = duid.strip_prefix(&[0, 4]).and_then(|uuid| uuid.try_into().ok());
    macs.into_iter().flatten().map(Identity::Mac).chain(uuid.map(Identity::Uuid))
}

fn duid_mac(duid: &[u8]) -> Option<MacAddr> {
    match duid {
        [0, 1, 0, 1, _, _, _, _, address @ ..] | [0, 3, 0, 1, address @ ..] => mac(address),
        _ => None,
    }
}

fn mac(bytes: &[u8]) -> Option<MacAddr> {
    let address: [u8; 6] = bytes.try_into().ok()?;
    let is_station = address[0] & 1 == 0 && address != [0; 6];
    is_station.then_some(MacAddr(address))
}

fn eui_64(address: Ipv6Addr) -> Option<MacAddr> {
    match address.octets() {
        [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, 0xff, 0xfe, d, e, f] => {
            mac(&[a ^ 2, b, c, d, e, f])
        }
        _ => None,
    }
}

/// Client description in options 15, 16 and 61.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub stage: Stage,
    /// Client architecture: first entry of option 61.
    pub arch: Option<u16>,
    /// Enterprise number of option 16, echoed in the answer.
    pub enterprise: [u8; 4],
}

impl Client {
    pub fn read(options: Options<'_>) -> Self {
        let vendor = options.get(code::VENDOR_CLASS).and_then(<[u8]>::split_first_chunk::<4>);
        let (enterprise, classes) = vendor.map_or(([0; 4], &[][..]), |(n, rest)| (*n, rest));
        let is = |prefix: &[u8]| parts(classes).any(|class| class.starts_with(prefix));
        let user = options.get(code::USER_CLASS).unwrap_or_default();
        let stage = if parts(user).any(|class| class == b"iPXE" || class == b"Tinkerbell") {
            Stage::Ipxe
        } else if is(b"PXEClient") {
            Stage::Pxe
        } else if is(b"HTTPClient") {
            Stage::HttpBoot
        } else {
            Stage::System
        };
        let listed = options.get(code::ARCHITECTURE).and_then(|list| list.first_chunk().copied());
        Self { stage, arch: listed.map(u16::from_be_bytes), enterprise }
    }
}

/// Splits a value into strings, each preceded by its length in two bytes (RFC 8415 §21.15).
fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (part, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        Some(part)
    })
}
