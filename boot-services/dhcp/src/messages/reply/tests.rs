//! Tests answers, decoded field by field.

use std::net::Ipv4Addr;

use super::{Answer, Grant, nak};
use crate::engine::bootfile::boot;
use crate::messages::options::Options;
use crate::messages::oracle;
use crate::messages::request::Request;
use crate::reservation::{Reservation, Route};
use crate::vectors::*;

const SCRIPT: &[u8] = b"http://10.77.0.1:7080/ipxe/script/52:54:00:77:00:01/auto.ipxe";

struct Read {
    bytes: Vec<u8>,
    options: Options,
}

impl Read {
    fn get(&self, code: u8) -> Option<&[u8]> {
        self.options.get(code)
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        let octets: [u8; 4] = self.bytes[at..at + 4].try_into().unwrap();
        octets.into()
    }

    /// Returns the header's `file` up to its first zero byte.
    fn file(&self) -> &[u8] {
        self.bytes[108..236].split(|byte| *byte == 0).next().unwrap()
    }
}

fn read(bytes: Vec<u8>) -> Read {
    assert!(bytes.len() >= 300);
    assert_eq!(bytes[..4], [2, 1, 6, 0]);
    assert_eq!(bytes[4..8], [0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(bytes[28..34], MAC.0);
    assert_eq!(bytes[34..108], [0; 74], "rest of chaddr, and sname");
    assert_eq!(bytes[236..240], [99, 130, 83, 99]);
    oracle::agrees(&bytes);
    let options = Options::read(&bytes[240..], &[], &[]).unwrap();
    Read { bytes, options }
}

fn answer_of(machine: &Reservation, packet: Packet, answer: Answer, lease: bool) -> Read {
    let request = Request::read(&packet.end()).unwrap();
    let boot = boot(&config(), machine, &request.client);
    let (config, fixed) = (&config(), machine.fixed.unwrap());
    read(Grant { config, machine, fixed, request: &request, boot: &boot }.message(answer, lease))
}

fn offer(packet: Packet) -> Read {
    answer_of(&machine(), packet, Answer::Offer, true)
}

/// Returns the option codes in the order of the message.
fn order(reply: &Read) -> Vec<u8> {
    let mut rest = &reply.bytes[240..];
    let mut codes = Vec::new();
    while rest[0] != 255 {
        codes.push(rest[0]);
        rest = &rest[2 + usize::from(rest[1])..];
    }
    codes
}

#[test]
fn every_client_gets_its_settings() {
    for packet in [
        ipxe_bios(DISCOVER),
        ipxe_efi(DISCOVER),
        tinkerbell(DISCOVER),
        edk2_pxe(DISCOVER),
        edk2_http(DISCOVER),
        bios_pxe(DISCOVER),
        udhcpc(DISCOVER),
    ] {
        let flags = packet.bytes[10..12].to_vec();
        let reply = offer(packet);
        assert_eq!(reply.bytes[10..12], flags);
        assert_eq!(reply.address(12), Ipv4Addr::UNSPECIFIED);
        assert_eq!(reply.address(16), ADDRESS);
        assert_eq!(reply.get(53), Some(&[2][..]));
        assert_eq!(reply.get(54), Some(&SERVER.octets()[..]));
        assert_eq!(reply.get(51), Some(&86_400_u32.to_be_bytes()[..]));
        assert_eq!(reply.get(1), Some(&[255, 255, 255, 0][..]));
        assert_eq!(reply.get(3), Some(&SERVER.octets()[..]));
        assert_eq!(reply.get(28), Some(&[10, 77, 0, 255][..]));
        assert_eq!(reply.get(6), Some(&[10, 77, 0, 1, 9, 9, 9, 9][..]));
        assert_eq!(reply.get(42), Some(&SERVER.octets()[..]));
        assert_eq!(reply.get(12), Some(&b"nuc-01"[..]));
        assert_eq!(reply.get(15), Some(&b"rack.example"[..]));
        assert_eq!(reply.get(119), Some(&b"\x04rack\x07example\0"[..]));
    }
}

#[test]
fn ipxe_gets_the_script_and_no_proxy_wait() {
    for packet in [ipxe_bios(DISCOVER), ipxe_efi(DISCOVER), tinkerbell(DISCOVER)] {
        let reply = offer(packet);
        assert_eq!(reply.file(), SCRIPT);
        assert_eq!(reply.get(67), Some(&[SCRIPT, b"\0"].concat()[..]));
        assert_eq!(reply.get(175), Some(&[176, 1, 1][..]));
        assert_eq!(reply.get(60), None);
        assert_eq!(reply.get(43), None);
        assert_eq!(reply.get(61), Some(&[1, 0x52, 0x54, 0, 0x77, 0, 1][..]));
    }
}

#[test]
fn edk2_pxe_gets_the_loader_by_tftp() {
    let reply = offer(edk2_pxe(DISCOVER));
    assert_eq!(reply.address(20), SERVER);
    assert_eq!(reply.file(), b"snponly.efi");
    assert_eq!(reply.get(67), Some(&b"snponly.efi\0"[..]));
    assert_eq!(reply.get(60), Some(&b"PXEClient"[..]));
    assert_eq!(reply.get(43), Some(&[6, 1, 8, 255][..]));
    assert_eq!(reply.get(97), Some(&MACHINE_ID[..]));
    assert_eq!(reply.get(61), None, "it sent none");
    assert_eq!(reply.get(175), None);
}

#[test]
fn edk2_http_gets_a_url_and_its_own_class() {
    let reply = offer(edk2_http(DISCOVER));
    let url = b"http://10.77.0.1:7080/ipxe/binary/52:54:00:77:00:01/snponly.efi\0";
    assert_eq!(reply.get(67), Some(&url[..]));
    assert_eq!(reply.get(60), Some(&b"HTTPClient"[..]));
    assert_eq!(reply.address(20), Ipv4Addr::UNSPECIFIED);
    assert_eq!(reply.get(97), Some(&MACHINE_ID[..]));
}

#[test]
fn a_bios_rom_reads_the_header_only() {
    let reply = offer(bios_pxe(DISCOVER));
    assert_eq!(reply.file(), b"undionly.kpxe");
    assert_eq!(reply.address(20), SERVER);
    assert_eq!(reply.get(67), None);
    let machine = Reservation { ipxe_binary: Some("x".repeat(128)), ..machine() };
    let reply = answer_of(&machine, bios_pxe(DISCOVER), Answer::Offer, true);
    assert_eq!(reply.file(), b"");
    let option = [&[b'x'; 128][..], b"\0"].concat();
    assert_eq!(reply.get(67), Some(&option[..]), "too long for the header");
    let machine = Reservation { ipxe_binary: Some("x".repeat(127)), ..machine };
    let reply = answer_of(&machine, bios_pxe(DISCOVER), Answer::Offer, true);
    assert_eq!(reply.file(), &[b'x'; 127]);
}

/// Firmware that reads options 66 and 67 as C strings must find a terminating zero.
#[test]
fn a_boot_name_in_an_option_ends_with_a_zero() {
    let fixed = Reservation {
        tftp_server_name: Some("boot.example".to_owned()),
        boot_file_name: Some("x".repeat(140)),
        ..machine()
    };
    for packet in [edk2_pxe(DISCOVER), edk2_http(DISCOVER), ipxe_efi(DISCOVER), udhcpc(DISCOVER)] {
        for (machine, always) in [(machine(), false), (fixed.clone(), true)] {
            let reply = answer_of(&machine, packet.clone(), Answer::Offer, true);
            for code in [66, 67] {
                let value = reply.get(code);
                assert!(value.is_some() || !always, "{code}");
                let zeros = value.map_or(1, |value| value.iter().filter(|b| **b == 0).count());
                assert_eq!(zeros, 1, "{code}");
                assert!(value.is_none_or(|value| value.ends_with(&[0])), "{code}");
            }
        }
    }
}

#[test]
fn a_system_hears_nothing_of_netboot() {
    let reply = offer(udhcpc(DISCOVER));
    assert_eq!(reply.file(), b"");
    assert_eq!(reply.address(20), Ipv4Addr::UNSPECIFIED);
    for code in [43, 60, 66, 67, 97, 175] {
        assert_eq!(reply.get(code), None, "{code}");
    }
}

#[test]
fn a_record_with_its_own_boot_file_is_sent_those_names() {
    let machine = Reservation {
        tftp_server_name: Some("192.0.2.9".to_owned()),
        boot_file_name: Some("u-boot.img".to_owned()),
        ..machine()
    };
    let reply = answer_of(&machine, edk2_pxe(DISCOVER), Answer::Ack, true);
    assert_eq!(reply.get(66), Some(&b"192.0.2.9\0"[..]));
    assert_eq!(reply.get(67), Some(&b"u-boot.img\0"[..]));
    assert_eq!(reply.file(), b"u-boot.img");
    assert_eq!(reply.address(20), Ipv4Addr::new(192, 0, 2, 9));
    assert_eq!(reply.get(60), None);
    assert_eq!(reply.get(43), None);
}

#[test]
fn an_ack_of_a_renewal_and_one_of_an_inform() {
    let reply = answer_of(&machine(), udhcpc(REQUEST).ciaddr(ADDRESS), Answer::Ack, true);
    assert_eq!(reply.get(53), Some(&[5][..]));
    assert_eq!((reply.address(12), reply.address(16)), (ADDRESS, ADDRESS));
    let reply = answer_of(&machine(), udhcpc(8).ciaddr(ADDRESS), Answer::Ack, false);
    assert_eq!(reply.address(12), ADDRESS);
    assert_eq!(reply.address(16), Ipv4Addr::UNSPECIFIED);
    assert_eq!(reply.get(51), None);
    assert_eq!(reply.get(6), Some(&[10, 77, 0, 1, 9, 9, 9, 9][..]));
}

#[test]
fn no_lease_time_is_a_day_and_not_nothing() {
    let machine = Reservation { lease_secs: 0, ..machine() };
    let reply = answer_of(&machine, udhcpc(DISCOVER), Answer::Offer, true);
    assert_eq!(reply.get(51), Some(&86_400_u32.to_be_bytes()[..]));
    let machine = Reservation { lease_secs: 604_800, ..machine };
    let reply = answer_of(&machine, udhcpc(DISCOVER), Answer::Offer, true);
    assert_eq!(reply.get(51), Some(&604_800_u32.to_be_bytes()[..]));
}

#[test]
fn routes_in_rfc_3442_form() {
    let route = |destination: &str, router: [u8; 4]| Route {
        destination: destination.parse().unwrap(),
        router: router.into(),
    };
    let machine = Reservation {
        classless_static_routes: vec![
            route("0.0.0.0/0", [10, 77, 0, 1]),
            route("10.0.0.0/8", [10, 77, 0, 2]),
            route("192.0.2.128/25", [10, 77, 0, 3]),
        ],
        ..machine()
    };
    let reply = answer_of(&machine, tinkerbell(DISCOVER), Answer::Offer, true);
    let routes = [0, 10, 77, 0, 1, 8, 10, 10, 77, 0, 2, 25, 192, 0, 2, 128, 10, 77, 0, 3];
    assert_eq!(reply.get(121), Some(&routes[..]));
}

#[test]
fn relay_information_is_echoed_last() {
    let circuit = [1, 4, b'e', b't', b'h', b'0'];
    let relay = Ipv4Addr::new(10, 88, 0, 1);
    let packet = udhcpc(DISCOVER).giaddr(relay).option(82, &circuit);
    let reply = offer(packet);
    assert_eq!(reply.get(82), Some(&circuit[..]));
    assert_eq!(order(&reply).last(), Some(&82));
    assert_eq!(reply.address(24), relay);
}

#[test]
fn a_small_client_gets_a_message_it_can_take() {
    let machine =
        Reservation { name_servers: vec![SERVER; 40], time_servers: vec![SERVER; 60], ..machine() };
    let requests = || Packet::new(0).option(53, &[1]).option(61, &[7; 40]);
    for (packet, limit) in [
        (requests(), 548),
        (requests().option(57, &[0, 0]), 548),
        (requests().option(57, &[2, 0x40]), 548),
        (requests().option(57, &[3, 0x20]), 772),
        (requests().option(57, &[0xff, 0]), 1472),
    ] {
        let reply = answer_of(&machine, packet, Answer::Offer, true);
        assert!(reply.bytes.len() <= limit, "{} of {limit}", reply.bytes.len());
        assert_eq!(reply.address(16), ADDRESS);
        assert_eq!(reply.get(1), Some(&[255, 255, 255, 0][..]));
        assert_eq!(reply.get(61), Some(&[7; 40][..]));
        assert_eq!(reply.get(42).is_some(), limit > 548, "the last of the list goes first");
    }
}

#[test]
fn a_long_value_goes_in_parts() {
    let machine = Reservation { name_servers: vec![SERVER; 100], ..machine() };
    let reply = answer_of(&machine, edk2_pxe(REQUEST), Answer::Ack, true);
    assert_eq!(reply.get(6).map(<[u8]>::len), Some(400));
    assert_eq!(order(&reply).iter().filter(|code| **code == 6).count(), 2);
}

#[test]
fn a_domain_that_is_none_is_not_searched() {
    for domain in [".", "a..b", &"x".repeat(64), &"abc.".repeat(70)] {
        let machine = Reservation { domain_name: Some((*domain).to_owned()), ..machine() };
        let reply = answer_of(&machine, edk2_pxe(DISCOVER), Answer::Offer, true);
        assert_eq!(reply.get(119), None, "{domain}");
    }
}

#[test]
fn a_nak_says_why_and_gives_nothing() {
    let request = |packet: Packet| Request::read(&packet.end()).unwrap();
    let reply = read(nak(&config(), &request(selecting(udhcpc(REQUEST))), "no"));
    assert_eq!(reply.get(53), Some(&[6][..]));
    assert_eq!(reply.get(54), Some(&SERVER.octets()[..]));
    assert_eq!(reply.get(56), Some(&b"no"[..]));
    for at in [12, 16, 20] {
        assert_eq!(reply.address(at), Ipv4Addr::UNSPECIFIED);
    }
    assert_eq!(reply.bytes[10], 0);
    for code in [1, 3, 6, 51, 60, 67] {
        assert_eq!(reply.get(code), None, "{code}");
    }
    let relayed = selecting(udhcpc(REQUEST)).giaddr(Ipv4Addr::new(10, 88, 0, 1));
    let reply = read(nak(&config(), &request(relayed), "no"));
    assert_eq!(reply.bytes[10], 0x80, "the relay must broadcast it");
}
