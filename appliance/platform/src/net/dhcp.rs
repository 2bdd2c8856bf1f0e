//! DHCP messages and the client's decisions (RFC 2131), without a socket or a clock.

use std::net::Ipv4Addr;

use stdx::MacAddr;

use super::{Address, Caller, NAME_SERVERS, TIME_SERVERS, prefix_of};

/// What asks the server to broadcast its answer: there is no address yet to send it to.
const BROADCAST: u16 = 0x8000;
const MAGIC_COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Fixed fields before the options.
const FIXED: usize = 236;
/// Shortest message that every relay and server accepts (RFC 951).
const SHORTEST: usize = 300;
/// Lease time when the server states none, seconds.
const DEFAULT_LEASE: u32 = 3600;
/// Shortest lease time believed, seconds: a server that says 0 must not make us spin.
const SHORTEST_LEASE: u32 = 60;

const OPTION_MASK: u8 = 1;
const OPTION_ROUTER: u8 = 3;
const OPTION_DNS: u8 = 6;
const OPTION_NAME: u8 = 12;
const OPTION_NTP: u8 = 42;
const OPTION_REQUESTED: u8 = 50;
const OPTION_LEASE: u8 = 51;
const OPTION_TYPE: u8 = 53;
const OPTION_SERVER: u8 = 54;
const OPTION_PARAMETERS: u8 = 55;
const OPTION_CLASS: u8 = 60;

/// What a client says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Who has an address for me?
    Discover,
    /// I take the offered one.
    Request {
        /// The offered address.
        address: Ipv4Addr,
        /// Who offered it.
        server: Ipv4Addr,
    },
    /// I go on using mine (RFC 2131 section 4.3.2, RENEWING).
    Renew {
        /// The address in use.
        address: Ipv4Addr,
    },
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// An address is on offer.
    Offer(Lease),
    /// The address is ours.
    Ack(Lease),
    /// Begin again.
    Nak,
}

/// An address for some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What is leased.
    pub address: Address,
    /// Who gave it.
    pub server: Ipv4Addr,
    /// For how long, seconds.
    pub seconds: u32,
    /// Who tells the time, at most [`TIME_SERVERS`].
    pub time_servers: Vec<Ipv4Addr>,
}

/// Who speaks, in every message of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client<'a> {
    /// The exchange (`xid`).
    pub id: u32,
    /// The interface's hardware address.
    pub mac: MacAddr,
    /// What it says of itself.
    pub caller: &'a Caller,
}

/// A client's message.
pub fn encode(say: Say, client: Client<'_>, elapsed_secs: u16) -> Vec<u8> {
    let Client { id, mac, caller } = client;
    let mut bytes = vec![0; FIXED];
    // BOOTREQUEST, Ethernet, six bytes of hardware address.
    bytes[..3].copy_from_slice(&[1, 1, 6]);
    bytes[4..8].copy_from_slice(&id.to_be_bytes());
    bytes[8..10].copy_from_slice(&elapsed_secs.to_be_bytes());
    bytes[10..12].copy_from_slice(&BROADCAST.to_be_bytes());
    bytes[28..34].copy_from_slice(&mac.0);
    if let Say::Renew { address } = say {
        bytes[12..16].copy_from_slice(&address.octets());
    }
    bytes.extend(MAGIC_COOKIE);
    let kind = if say == Say::Discover { 1 } else { 3 };
    bytes.extend([OPTION_TYPE, 1, kind]);
    if let Say::Request { address, server } = say {
        bytes.extend([OPTION_REQUESTED, 4]);
        bytes.extend(address.octets());
        bytes.extend([OPTION_SERVER, 4]);
        bytes.extend(server.octets());
    }
    let wanted = [OPTION_MASK, OPTION_ROUTER, OPTION_DNS, OPTION_LEASE, OPTION_NTP];
    put(&mut bytes, OPTION_PARAMETERS, &wanted);
    put(&mut bytes, OPTION_CLASS, caller.class.as_bytes());
    if !caller.name.is_empty() {
        put(&mut bytes, OPTION_NAME, caller.name.as_bytes());
    }
    bytes.push(255);
    bytes.resize(bytes.len().max(SHORTEST), 0);
    bytes
}

/// An option, cut to the longest there can be.
fn put(bytes: &mut Vec<u8>, code: u8, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u8::MAX))];
    bytes.extend([code, u8::try_from(value.len()).unwrap_or(u8::MAX)]);
    bytes.extend(value);
}

/// A server's answer to the exchange `id` of `mac`; `None` for anything else.
pub fn decode(bytes: &[u8], id: u32, mac: MacAddr) -> Option<Heard> {
    let fixed = bytes.get(..FIXED)?;
    let ours = fixed[0] == 2 && fixed[4..8] == id.to_be_bytes() && fixed[28..34] == mac.0;
    let options = bytes.get(FIXED..)?.strip_prefix(&MAGIC_COOKIE)?;
    if !ours {
        return None;
    }
    let address = Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]);
    let kind = *option(options, OPTION_TYPE)?.first()?;
    if kind == 6 {
        return Some(Heard::Nak);
    }
    let usable = !address.is_unspecified() && !address.is_broadcast() && !address.is_multicast();
    let lease = usable.then(|| lease(address, options)).flatten()?;
    match kind {
        2 => Some(Heard::Offer(lease)),
        5 => Some(Heard::Ack(lease)),
        _ => None,
    }
}

fn lease(address: Ipv4Addr, options: &[u8]) -> Option<Lease> {
    let mask = option(options, OPTION_MASK).and_then(|value| addresses(value).next());
    let prefix = prefix_of(mask.unwrap_or(Ipv4Addr::new(255, 255, 255, 0)))?;
    let seconds = option(options, OPTION_LEASE).and_then(|value| value.try_into().ok());
    let seconds = seconds.map_or(DEFAULT_LEASE, u32::from_be_bytes).max(SHORTEST_LEASE);
    let dns = option(options, OPTION_DNS).unwrap_or_default();
    let address = Address {
        address,
        prefix,
        router: option(options, OPTION_ROUTER).and_then(|value| addresses(value).next()),
        name_servers: addresses(dns).take(NAME_SERVERS).collect(),
    };
    Some(Lease {
        address,
        server: option(options, OPTION_SERVER).and_then(|value| addresses(value).next())?,
        seconds,
        time_servers: addresses(option(options, OPTION_NTP).unwrap_or_default())
            .take(TIME_SERVERS)
            .collect(),
    })
}

fn addresses(value: &[u8]) -> impl Iterator<Item = Ipv4Addr> {
    value.chunks_exact(4).map(|part| Ipv4Addr::new(part[0], part[1], part[2], part[3]))
}

/// The value of an option's first appearance (RFC 2132 section 2).
fn option(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        match *options {
            [0, ref rest @ ..] => options = rest,
            [255, ..] | [] | [_] => return None,
            [code, length, ref rest @ ..] => {
                let value = rest.get(..usize::from(length))?;
                if code == wanted {
                    return Some(value);
                }
                options = &rest[usize::from(length)..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 1, 2, 3]);
    static CALLER: Caller = Caller { class: "tinbox", name: String::new() };
    const CLIENT: Client<'_> = Client { id: 7, mac: MAC, caller: &CALLER };

    fn answer(kind: u8, options: &[u8]) -> Vec<u8> {
        let mut bytes = encode(Say::Discover, CLIENT, 0);
        bytes.truncate(FIXED);
        bytes[0] = 2;
        bytes[16..20].copy_from_slice(&[10, 77, 0, 9]);
        bytes.extend(MAGIC_COOKIE);
        bytes.extend([OPTION_TYPE, 1, kind]);
        bytes.extend(options);
        bytes.push(255);
        bytes
    }

    #[test]
    fn an_answer_becomes_a_lease() {
        let options = [
            0, 54, 4, 10, 77, 0, 1, 1, 4, 255, 255, 254, 0, 3, 8, 10, 77, 0, 1, 10, 77, 0, 2, 6, 4,
            9, 9, 9, 9, 51, 4, 0, 0, 2, 0, 42, 4, 10, 77, 0, 5,
        ];
        let address = Address {
            address: Ipv4Addr::new(10, 77, 0, 9),
            prefix: 23,
            router: Some(Ipv4Addr::new(10, 77, 0, 1)),
            name_servers: vec![Ipv4Addr::new(9, 9, 9, 9)],
        };
        let lease = Lease {
            address,
            server: Ipv4Addr::new(10, 77, 0, 1),
            seconds: 512,
            time_servers: vec![Ipv4Addr::new(10, 77, 0, 5)],
        };
        assert_eq!(decode(&answer(2, &options), 7, MAC), Some(Heard::Offer(lease.clone())));
        assert_eq!(decode(&answer(5, &options), 7, MAC), Some(Heard::Ack(lease)));
        assert_eq!(decode(&answer(6, &[]), 7, MAC), Some(Heard::Nak));
    }

    #[test]
    fn what_is_not_ours_or_not_sound_is_nothing() {
        let good = answer(5, &[54, 4, 10, 77, 0, 1]);
        assert!(decode(&good, 7, MAC).is_some());
        assert_eq!(decode(&good, 8, MAC), None, "another exchange");
        assert_eq!(decode(&good, 7, MacAddr([0; 6])), None, "another client");
        assert_eq!(decode(&answer(5, &[]), 7, MAC), None, "no server");
        let gap = [54, 4, 1, 1, 1, 1, 1, 4, 255, 0, 255, 0];
        assert_eq!(decode(&answer(5, &gap), 7, MAC), None, "a mask with a gap");
        let spin = [54, 4, 1, 1, 1, 1, 51, 4, 0, 0, 0, 0];
        let Some(Heard::Ack(lease)) = decode(&answer(5, &spin), 7, MAC) else { panic!() };
        assert_eq!(lease.seconds, SHORTEST_LEASE);
        for length in 0..good.len() {
            let _ = decode(&good[..length], 7, MAC);
        }
    }

    #[test]
    fn a_request_names_address_and_server() {
        let address = Ipv4Addr::new(10, 77, 0, 9);
        let server = Ipv4Addr::new(10, 77, 0, 1);
        let bytes = encode(Say::Request { address, server }, CLIENT, 3);
        let options = &bytes[FIXED + 4..];
        assert_eq!(option(options, OPTION_REQUESTED), Some(&address.octets()[..]));
        assert_eq!(option(options, OPTION_SERVER), Some(&server.octets()[..]));
        assert_eq!(option(options, OPTION_TYPE), Some(&[3][..]));
        assert_eq!(option(options, OPTION_CLASS), Some(&b"tinbox"[..]));
        assert_eq!(option(options, OPTION_NAME), None);
        assert!(bytes.len() >= SHORTEST);
        let caller = Caller { name: "box-7f3a".to_owned(), ..CALLER.clone() };
        let named = encode(Say::Discover, Client { caller: &caller, ..CLIENT }, 0);
        assert_eq!(option(&named[FIXED + 4..], OPTION_NAME), Some(&b"box-7f3a"[..]));
        let bytes = encode(Say::Renew { address }, CLIENT, 0);
        assert_eq!(bytes[12..16], address.octets());
        assert_eq!(option(&bytes[FIXED + 4..], OPTION_REQUESTED), None);
    }
}
