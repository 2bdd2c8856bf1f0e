use super::Engine;
use crate::messages::client::Stage;
use crate::reservation::Netboot;
use crate::v6::message::{Options, put};
use crate::v6::{Config, Directory, Event, Identity, Malformed, Observer, Reservation};
use dhcproto::{Decodable as _, Decoder, v6};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Mutex;
use std::time::Instant;
use stdx::MacAddr;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
const UUID: [u8; 16] = [0x77; 16];
const SERVER_DUID: [u8; 10] = [0, 3, 0, 1, 2, 0, 0, 0, 0, 1];

fn link_local() -> Ipv6Addr {
    "fe80::5054:ff:fe77:1".parse().unwrap()
}

fn elsewhere() -> Ipv6Addr {
    "fe80::1234".parse().unwrap()
}

fn address() -> Ipv6Addr {
    "fd77::11".parse().unwrap()
}

/// Directory with one machine, known by `identity`, and log of its events.
struct KnownMachine {
    identity: Identity,
    machine: Reservation,
    events: Mutex<Vec<Event>>,
}

impl Directory for KnownMachine {
    fn find(&self, identity: Identity) -> Option<Reservation> {
        (identity == self.identity).then(|| self.machine.clone())
    }
}

impl Observer for KnownMachine {
    fn observe(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

fn known(identity: Identity) -> KnownMachine {
    let machine = Reservation {
        netboot: Netboot::Allowed,
        name_servers: vec!["fd77::1".parse().unwrap()],
        lease_secs: 3600,
        ..Reservation::new(MAC, address())
    };
    KnownMachine { identity, machine, events: Mutex::default() }
}

fn engine() -> Engine {
    let server = "fd77::1".parse().unwrap();
    let interface = "eth1".to_owned();
    let config = Config { interface, server, http_port: 7080, binaries: BTreeMap::new() };
    Engine::new(config, MacAddr([2, 0, 0, 0, 0, 1]), Instant::now())
}

/// Returns a message with EDK2's kind of DUID (UUID) and one IA_NA, followed by `more`.
fn message(kind: u8, more: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = vec![kind, 1, 2, 3];
    put(&mut message, 1, &[&[0, 4][..], &UUID].concat());
    put(&mut message, 3, &[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
    put(&mut message, 6, &[0, 59, 0, 60, 0, 23]);
    for (code, value) in more {
        put(&mut message, *code, value);
    }
    message
}

fn handle(directory: &KnownMachine, from: Ipv6Addr, message: &[u8]) -> Option<Vec<u8>> {
    let answer = engine().handle(message, from, directory, directory, Instant::now()).unwrap();
    answer.iter().for_each(|answer| agrees(answer));
    answer
}

/// Checks that dhcproto finds the same options in a message to a client. A message to a relay has
/// another format and is not checked.
#[track_caller]
fn agrees(bytes: &[u8]) {
    const RELAY_REPLY: u8 = 13;
    if bytes[0] == RELAY_REPLY {
        return;
    }
    let ours = Options::read(&bytes[4..]).expect("options");
    let mut ours: Vec<u16> = ours.iter().map(|(code, _)| code).collect();
    ours.sort_unstable();
    let typed = v6::Message::decode(&mut Decoder::new(bytes)).expect("a message");
    let read: Vec<u16> =
        typed.opts().iter().map(|option| v6::OptionCode::from(option).into()).collect();
    assert_eq!(read, ours, "options that dhcproto reads as their types");
}

fn option(answer: &[u8], code: u16) -> Option<Vec<u8>> {
    Options::read(&answer[4..]).unwrap().get(code).map(<[u8]>::to_vec)
}

fn url(answer: &[u8]) -> Option<String> {
    option(answer, 59).map(|url| String::from_utf8(url).unwrap())
}

fn class(text: &str) -> Vec<u8> {
    [&[0, 0, 1, 0x57, 0, text.len() as u8][..], text.as_bytes()].concat()
}

#[test]
fn firmware_is_offered_its_address_and_a_tftp_url() {
    let known = known(Identity::Mac(MAC));
    let pxe = class("PXEClient:Arch:00007:UNDI:003000");
    let solicit = message(1, &[(16, &pxe), (61, &[0, 7]), (62, &[1, 3, 0])]);
    let answer = handle(&known, link_local(), &solicit).unwrap();
    assert_eq!(answer[..4], [2, 1, 2, 3], "an ADVERTISE of that exchange");
    assert_eq!(option(&answer, 1).unwrap()[2..], UUID);
    assert_eq!(option(&answer, 2).unwrap(), SERVER_DUID);
    assert_eq!(option(&answer, 7).unwrap(), [255]);
    let mut association = vec![0, 0, 0, 9, 0, 0, 0x07, 0x08, 0, 0, 0x0b, 0x40, 0, 5, 0, 24];
    association.extend(address().octets());
    association.extend([0, 0, 0x0e, 0x10, 0, 0, 0x0e, 0x10]);
    assert_eq!(option(&answer, 3).unwrap(), association);
    assert_eq!(url(&answer).unwrap(), "tftp://[fd77::1]/snponly.efi");
    assert!(answer.ends_with(b"snponly.efi"), "the URL is last");
    assert_eq!(option(&answer, 16), None, "with a class EDK2 would ask port 4011");
    assert_eq!(*known.events.lock().unwrap(), [Event::Offered { mac: MAC, stage: Stage::Pxe }]);
}

#[test]
fn http_boot_and_ipxe_get_their_urls() {
    let mut known = known(Identity::Mac(MAC));
    let http = class("HTTPClient:Arch:00016:UNDI:003000");
    let solicit = message(1, &[(16, &http), (61, &[0, 16])]);
    let answer = handle(&known, link_local(), &solicit).unwrap();
    let binary = "http://[fd77::1]:7080/ipxe/binary/52:54:00:77:00:01";
    assert_eq!(url(&answer).unwrap(), format!("{binary}/snponly.efi"));
    assert_eq!(option(&answer, 16).unwrap(), class("HTTPClient"));

    let ipxe = message(1, &[(15, b"\0\x04iPXE"), (16, &class("PXEClient:Arch:00007"))]);
    let script = "http://[fd77::1]:7080/ipxe/script/52:54:00:77:00:01/auto.ipxe";
    assert_eq!(url(&handle(&known, link_local(), &ipxe).unwrap()).unwrap(), script);
    let system = handle(&known, link_local(), &message(1, &[])).unwrap();
    assert_eq!(url(&system), None);
    assert_eq!(option(&system, 23).unwrap().len(), 16);

    known.machine.netboot = Netboot::NotAllowed;
    let answer = handle(&known, link_local(), &solicit).unwrap();
    assert_eq!(url(&answer).unwrap(), format!("{binary}/netboot-not-allowed"));
    assert_eq!(url(&handle(&known, link_local(), &ipxe).unwrap()), None);
}

#[test]
fn a_machine_is_known_by_any_of_its_names() {
    let uuid = message(1, &[]);
    assert!(handle(&known(Identity::Uuid(UUID)), elsewhere(), &uuid).is_some());
    assert!(handle(&known(Identity::Mac(MAC)), elsewhere(), &uuid).is_none());
    for duid in [&[0, 1, 0, 1, 9, 9, 9, 9][..], &[0, 3, 0, 1]] {
        let mut message = vec![1, 1, 2, 3];
        put(&mut message, 1, &[duid, &MAC.0].concat());
        assert!(handle(&known(Identity::Mac(MAC)), elsewhere(), &message).is_some());
    }
    let known = known(Identity::Mac(MacAddr([2, 0, 0, 0, 0, 9])));
    assert!(handle(&known, link_local(), &uuid).is_none());
    assert_eq!(*known.events.lock().unwrap(), [Event::Unknown { mac: MAC }]);
}

#[test]
fn relays_are_undone_and_put_back() {
    let known = known(Identity::Mac(MAC));
    let wrap = |hops: u8, peer: Ipv6Addr, more: &[(u16, &[u8])], inner: &[u8]| {
        let mut outer = vec![12, hops];
        outer.extend([0; 16]);
        outer.extend(peer.octets());
        for (code, value) in more {
            put(&mut outer, *code, value);
        }
        put(&mut outer, 9, inner);
        outer
    };
    let seen = [&[0, 1][..], &MAC.0].concat();
    let inner = wrap(0, elsewhere(), &[(18, b"port 7"), (79, &seen)], &message(1, &[]));
    let outer = wrap(1, "fd01::1".parse().unwrap(), &[], &inner);
    let answer = handle(&known, "fd02::1".parse().unwrap(), &outer).unwrap();
    assert_eq!(answer[..2], [13, 1]);
    let inner = Options::read(&answer[34..]).unwrap().get(9).unwrap();
    assert_eq!(inner[..2], [13, 0]);
    assert_eq!(inner[18..34], elsewhere().octets());
    let options = Options::read(&inner[34..]).unwrap();
    assert_eq!(options.get(18), Some(&b"port 7"[..]));
    assert_eq!(options.get(9).unwrap()[..4], [2, 1, 2, 3]);

    let mut nested = message(1, &[]);
    for hops in 0..9 {
        nested = wrap(hops, elsewhere(), &[], &nested);
    }
    let result = engine().handle(&nested, elsewhere(), &known, &known, Instant::now());
    assert_eq!(result, Err(Malformed::Relay));
}

#[test]
fn each_kind_of_message_has_its_answer() {
    let known = known(Identity::Mac(MAC));
    let ours: (u16, &[u8]) = (2, &SERVER_DUID);
    let reply =
        |kind: u8, more: &[(u16, &[u8])]| handle(&known, link_local(), &message(kind, more));
    for kind in [3, 5] {
        let answer = reply(kind, &[ours]).unwrap();
        assert_eq!(answer[0], 7);
        assert_eq!(option(&answer, 3).unwrap()[16..32], address().octets());
        assert_eq!(reply(kind, &[]), None, "another server's");
        assert_eq!(reply(kind, &[(2, &[0, 3, 0, 1, 9])]), None, "another server's");
    }
    assert!(option(&reply(6, &[]).unwrap(), 3).is_some());
    assert_eq!(reply(1, &[ours]), None, "a SOLICIT names no server");
    let rapid = reply(1, &[(14, &[])]).unwrap();
    assert_eq!((rapid[0], option(&rapid, 14)), (7, Some(Vec::new())));
    for kind in [8, 9] {
        assert_eq!(option(&reply(kind, &[ours]).unwrap(), 13).unwrap(), [0, 0]);
    }
    let information = reply(11, &[]).unwrap();
    assert_eq!((information[0], option(&information, 3)), (7, None));
    // CONFIRM: of this link, of another, and of none.
    let confirm = |address: &str| {
        let mut association = vec![0; 12];
        let address: Ipv6Addr = address.parse().unwrap();
        put(&mut association, 5, &[&address.octets()[..], &[0; 8]].concat());
        let answer = reply(4, &[(3, &association)]).unwrap();
        option(&answer, 13).unwrap()[1]
    };
    assert_eq!((confirm("fd77::99"), confirm("fd78::11")), (0, 4));
    assert_eq!(reply(4, &[]), None);
}

#[test]
fn what_cannot_be_given_is_refused_piece_by_piece() {
    let known = known(Identity::Mac(MAC));
    let mut old = vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    let before: Ipv6Addr = "fd77::99".parse().unwrap();
    put(&mut old, 5, &[&before.octets()[..], &[0; 8]].concat());
    let mut renew = vec![6, 1, 2, 3];
    put(&mut renew, 1, &[&[0, 4][..], &UUID].concat());
    for (kind, value) in [(3, &old[..]), (3, &[0; 12]), (4, &[0; 4]), (25, &[0; 12]), (3, &[0; 3])]
    {
        put(&mut renew, kind, value);
    }
    let answer = handle(&known, link_local(), &renew).unwrap();
    let options = Options::read(&answer[4..]).unwrap();
    let associations: Vec<_> = options.all(3).collect();
    assert_eq!(associations.len(), 2, "one that has no identifier cannot be answered");
    let taken_back = [&[0, 5, 0, 24][..], &before.octets(), &[0; 8]].concat();
    assert!(associations[0].ends_with(&taken_back));
    assert!(associations[1].ends_with(&[0, 13, 0, 2, 0, 2]));
    assert!(options.get(4).unwrap().ends_with(&[0, 13, 0, 2, 0, 2]));
    assert!(options.get(25).unwrap().ends_with(&[0, 13, 0, 2, 0, 6]));
}

#[test]
fn what_is_no_message_is_named() {
    let known = known(Identity::Mac(MAC));
    let read = |bytes: &[u8]| {
        engine().handle(bytes, link_local(), &known, &known, Instant::now()).unwrap_err()
    };
    assert_eq!(read(&[1, 2, 3]), Malformed::Short(3));
    assert_eq!(read(&[7, 1, 2, 3]), Malformed::Kind(7));
    assert_eq!(read(&[1, 1, 2, 3]), Malformed::Anonymous);
    assert_eq!(read(&[1, 1, 2, 3, 0, 6, 0, 9, 1]), Malformed::Option(6));
    assert_eq!(read(&[1, 1, 2, 3, 0, 1, 0, 2, 0, 4]), Malformed::Option(1));
    assert_eq!(read(&[&[12, 0][..], &[0; 32]].concat()), Malformed::Relay);
    let whole = message(1, &[]);
    for length in 0..whole.len() {
        let _ = engine().handle(&whole[..length], link_local(), &known, &known, Instant::now());
    }
}

#[test]
fn an_address_that_another_uses_is_not_offered_again_at_once() {
    let known = known(Identity::Mac(MAC));
    let (mut engine, now) = (engine(), Instant::now());
    let mut handle = |message: &[u8], at: Instant| {
        engine.handle(message, link_local(), &known, &known, at).unwrap().unwrap()
    };
    let declined = |address: Ipv6Addr| {
        let mut association = vec![0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 24];
        association.extend(address.octets());
        association.extend([0; 8]);
        let mut message = vec![9, 1, 2, 3];
        put(&mut message, 1, &[&[0, 4][..], &UUID].concat());
        put(&mut message, 2, &SERVER_DUID);
        put(&mut message, 3, &association);
        message
    };
    let offers = |answer: Vec<u8>| option(&answer, 3).unwrap()[12..14] == [0, 5];
    handle(&declined("fd77::99".parse().unwrap()), now);
    assert!(offers(handle(&message(1, &[]), now)), "the address of another machine");
    assert_eq!(option(&handle(&declined(address()), now), 13).unwrap(), [0, 0]);
    let none = handle(&message(1, &[]), now);
    assert_eq!(option(&none, 3).unwrap()[12..], [0, 13, 0, 2, 0, 2], "no address is available");
    let later = now + super::DECLINED_FOR;
    assert!(offers(handle(&message(1, &[]), later)), "it may be free again");
}
