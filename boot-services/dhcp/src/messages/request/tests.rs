//! Tests that captured messages are decoded value by value, and others are refused with a reason.

use proptest::prelude::*;

use super::{Kind, Malformed, Request};
use crate::messages::client::Stage;
use crate::vectors::*;

#[test]
fn captured_messages_have_their_captured_length() {
    for (name, packet, length) in [
        ("iPXE BIOS ROM", ipxe_bios(DISCOVER), 400),
        ("iPXE BIOS ROM, REQUEST", selecting(ipxe_bios(REQUEST)), 412),
        ("iPXE EFI", ipxe_efi(DISCOVER), 388),
        ("EDK2 PXE", edk2_pxe(DISCOVER), 347),
        ("EDK2 HTTP", edk2_http(DISCOVER), 340),
    ] {
        assert_eq!(packet.end().len(), length, "{name}");
    }
}

#[test]
fn captured_messages_are_understood() {
    for (name, packet, stage, arch, flags, max_size) in [
        ("iPXE BIOS ROM", ipxe_bios(DISCOVER), Stage::Ipxe, Some(0), 0, Some(1472)),
        ("iPXE EFI", ipxe_efi(DISCOVER), Stage::Ipxe, Some(7), 0, Some(1472)),
        ("Tinkerbell's iPXE", tinkerbell(DISCOVER), Stage::Ipxe, Some(7), 0x8000, Some(1472)),
        ("EDK2 PXE", edk2_pxe(DISCOVER), Stage::Pxe, Some(7), 0x8000, Some(1472)),
        ("EDK2 PXE, REQUEST", edk2_pxe(REQUEST), Stage::Pxe, Some(7), 0x8000, Some(0xff00)),
        ("EDK2 HTTP", edk2_http(DISCOVER), Stage::HttpBoot, Some(16), 0x8000, Some(1472)),
        ("BIOS PXE", bios_pxe(DISCOVER), Stage::Pxe, Some(0), 0x8000, Some(1260)),
        ("udhcpc", udhcpc(DISCOVER), Stage::System, None, 0, Some(576)),
    ] {
        let request = Request::read(&packet.end()).unwrap();
        assert_eq!(request.client.stage, stage, "{name}");
        assert_eq!(request.client.arch, arch, "{name}");
        assert_eq!(request.flags, flags, "{name}");
        assert_eq!(request.max_size, max_size, "{name}");
        assert_eq!(request.mac, MAC, "{name}");
        assert_eq!(request.xid, [0xde, 0xad, 0xbe, 0xef], "{name}");
        let netboots = stage != Stage::System;
        assert_eq!(request.wants(67), netboots, "{name}");
        assert_eq!(request.client.machine_id, netboots.then_some(MACHINE_ID), "{name}");
    }
    let request = Request::read(&selecting(ipxe_bios(REQUEST)).end()).unwrap();
    assert_eq!(request.kind, Kind::Request);
    assert_eq!(request.requested, Some(ADDRESS));
    assert_eq!(request.server_id, Some(SERVER));
    assert_eq!(request.client_id.as_deref(), Some(&[1, 0x52, 0x54, 0, 0x77, 0, 1][..]));
    assert_eq!(request.client.vendor_class.as_deref(), Some("PXEClient:Arch:00000:UNDI:002001"));
}

#[test]
fn every_type_a_client_sends() {
    for (code, kind) in [
        (1, Some(Kind::Discover)),
        (2, None),
        (3, Some(Kind::Request)),
        (4, Some(Kind::Decline)),
        (5, None),
        (6, None),
        (7, Some(Kind::Release)),
        (8, Some(Kind::Inform)),
        (0, None),
        (9, None),
    ] {
        let read = Request::read(&Packet::new(0).option(53, &[code]).end());
        assert_eq!(read.map(|request| request.kind).ok(), kind, "{code}");
    }
}

#[test]
fn what_is_no_client_message_is_refused() {
    let good = || udhcpc(DISCOVER);
    for (reason, bytes) in [
        (Malformed::Short(0), Vec::new()),
        (Malformed::Short(239), good().end()[..239].to_vec()),
        (Malformed::NotRequest(2), good().at(0, &[2]).end()),
        (Malformed::Hardware, good().at(1, &[6]).end()),
        (Malformed::Hardware, good().at(2, &[16]).end()),
        (Malformed::Hardware, good().at(28, &[0; 6]).end()),
        (Malformed::Hardware, good().at(28, &[0xff; 6]).end()),
        (Malformed::Hardware, good().at(28, &[1]).end()),
        (Malformed::Cookie, good().at(236, &[0; 4]).end()),
        (Malformed::Kind, Packet::new(0).end()),
        (Malformed::Option(53), good().option(53, &[1]).end()),
        (Malformed::Option(50), good().option(50, &[10, 77, 0]).end()),
        (Malformed::Option(54), good().option(54, &[]).end()),
        (Malformed::Option(57), good().option(57, &[1, 2]).end()),
        (Malformed::Option(12), good().option(12, &[b'a'; 9]).bytes[..285].to_vec()),
    ] {
        assert_eq!(Request::read(&bytes), Err(reason));
    }
}

#[test]
fn options_in_the_file_and_name_fields_are_read() {
    let mut file = vec![93, 2, 0, 7];
    file.push(255);
    let sname = [60, 9, b'P', b'X', b'E', b'C', b'l', b'i', b'e', b'n', b't', 255];
    let bytes =
        Packet::new(0).at(108, &file).at(44, &sname).option(53, &[1]).option(52, &[3]).end();
    let client = Request::read(&bytes).unwrap().client;
    assert_eq!((client.stage, client.arch), (Stage::Pxe, Some(7)));
}

#[test]
fn a_long_identifier_is_not_kept() {
    let long = Packet::new(0).option(53, &[1]).option(61, &[1; 200]).option(61, &[1; 200]);
    assert_eq!(Request::read(&long.end()).unwrap().client_id, None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
        let _ = Request::read(&bytes);
    }

    #[test]
    fn any_options_are_read_or_refused(
        options in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut bytes = Packet::new(0).option(53, &[1]).bytes;
        bytes.extend(options);
        let _ = Request::read(&bytes);
    }
}
