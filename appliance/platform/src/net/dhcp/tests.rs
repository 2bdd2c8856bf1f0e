//! Tests of client messages, and of valid and invalid responses.

use super::*;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 1, 2, 3]);
static CALLER: ClientIdentity = ClientIdentity { class: "tinbox", name: String::new() };
const CLIENT: Client<'_> = Client { id: 7, mac: MAC, caller: &CALLER };

fn answer(kind: u8, options: &[u8]) -> Vec<u8> {
    let mut bytes = encode(ClientMessage::Discover, CLIENT, 0);
    bytes.truncate(240);
    bytes[0] = 2;
    bytes[16..20].copy_from_slice(&[10, 77, 0, 9]);
    bytes.extend([53, 1, kind]);
    bytes.extend(options);
    bytes.push(255);
    bytes
}

#[test]
fn an_answer_becomes_a_lease() {
    let options = [
        0, 54, 4, 10, 77, 0, 1, 1, 4, 255, 255, 254, 0, 3, 8, 10, 77, 0, 1, 10, 77, 0, 2, 6, 4, 9,
        9, 9, 9, 51, 4, 0, 0, 2, 0, 42, 4, 10, 77, 0, 5,
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
    assert_eq!(decode(&answer(2, &options), 7, MAC), Some(ServerResponse::Offer(lease.clone())));
    assert_eq!(decode(&answer(5, &options), 7, MAC), Some(ServerResponse::Ack(lease)));
    assert_eq!(decode(&answer(6, &[]), 7, MAC), Some(ServerResponse::Nak));
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
    let Some(ServerResponse::Ack(lease)) = decode(&answer(5, &spin), 7, MAC) else { panic!() };
    assert_eq!(lease.seconds, SHORTEST_LEASE);
    for length in 0..good.len() {
        let _ = decode(&good[..length], 7, MAC);
    }
}

#[test]
fn a_malformed_option_hides_none_behind_it() {
    // A host name that is not UTF-8, and a route with a prefix that is longer than an address.
    let options = [12, 1, 0xe4, 121, 2, 200, 1, 54, 4, 10, 77, 0, 1];
    assert!(decode(&answer(5, &options), 7, MAC).is_some());
    let mut long = answer(5, &options);
    long[2] = 255;
    assert_eq!(decode(&long, 7, MAC), None, "an address of 255 bytes");
}

#[test]
fn a_request_names_address_and_server() {
    let address = Ipv4Addr::new(10, 77, 0, 9);
    let server = Ipv4Addr::new(10, 77, 0, 1);
    let written = |say, client| encode(say, client, 3);
    let option = |bytes: &[u8], code| option(&borrowed::Message::new(bytes).unwrap(), code);
    let bytes = written(ClientMessage::Request { address, server }, CLIENT);
    let expected = Some(address.octets().to_vec());
    assert_eq!(option(&bytes, OptionCode::RequestedIpAddress), expected);
    assert_eq!(option(&bytes, OptionCode::ServerIdentifier), Some(server.octets().to_vec()));
    assert_eq!(option(&bytes, OptionCode::MessageType), Some(vec![3]));
    assert_eq!(option(&bytes, OptionCode::ClassIdentifier), Some(b"tinbox".to_vec()));
    assert_eq!(option(&bytes, OptionCode::Hostname), None);
    assert_eq!(bytes[8..12], [0, 3, 0x80, 0], "seconds, and a broadcast reply");
    assert!(bytes.len() >= SHORTEST);
    let caller = ClientIdentity { name: "box-7f3a".to_owned(), ..CALLER.clone() };
    let named = written(ClientMessage::Discover, Client { caller: &caller, ..CLIENT });
    assert_eq!(option(&named, OptionCode::Hostname), Some(b"box-7f3a".to_vec()));
    let bytes = written(ClientMessage::Renew { address }, CLIENT);
    assert_eq!(bytes[12..16], address.octets());
    assert_eq!(option(&bytes, OptionCode::RequestedIpAddress), None);
}
