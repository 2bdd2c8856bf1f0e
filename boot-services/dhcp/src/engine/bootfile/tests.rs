//! Tests the boot options for each kind of client.

use super::boot;
use crate::messages::boot::Boot;
use crate::messages::client::Client;
use crate::messages::options::Options;
use crate::messages::request::Request;
use crate::reservation::{Netboot, Reservation};
use crate::vectors::*;

const SCRIPT: &str = "http://10.77.0.1:7080/ipxe/script/52:54:00:77:00:01/auto.ipxe";

fn chosen(machine: &Reservation, packet: Packet) -> Boot {
    boot(&config(), machine, &Request::read(&packet.end()).unwrap().client)
}

fn tftp(file: &str) -> Boot {
    Boot::Tftp { server: SERVER, file: file.to_owned() }
}

fn binary(file: &str) -> Boot {
    let url = format!("http://10.77.0.1:7080/ipxe/binary/52:54:00:77:00:01/{file}");
    Boot::Http { url }
}

#[test]
fn each_captured_client_is_told_what_it_can_load() {
    let script = || Boot::Script { url: SCRIPT.to_owned() };
    for (name, packet, allowed, refused) in [
        ("iPXE BIOS ROM", ipxe_bios(DISCOVER), script(), Boot::Exit),
        ("iPXE EFI", ipxe_efi(DISCOVER), script(), Boot::Exit),
        ("Tinkerbell's iPXE", tinkerbell(DISCOVER), script(), Boot::Exit),
        ("EDK2 PXE", edk2_pxe(DISCOVER), tftp("snponly.efi"), tftp("/netboot-not-allowed")),
        ("EDK2 HTTP", edk2_http(DISCOVER), binary("snponly.efi"), binary("netboot-not-allowed")),
        ("BIOS PXE", bios_pxe(DISCOVER), tftp("undionly.kpxe"), tftp("/netboot-not-allowed")),
        ("udhcpc", udhcpc(DISCOVER), Boot::Nothing, Boot::Nothing),
    ] {
        assert_eq!(chosen(&machine(), packet.clone()), allowed, "{name}");
        let machine = Reservation { netboot: Netboot::NotAllowed, ..machine() };
        assert_eq!(chosen(&machine, packet), refused, "{name}");
    }
}

#[test]
fn the_loader_follows_the_architecture_then_the_settings_then_the_machine() {
    let options = |arch: u16| {
        let mut options = b"\x3c\x09PXEClient\x5d\x02".to_vec();
        options.extend(arch.to_be_bytes());
        Client::read(&Options::read(&options, &[], &[]).unwrap(), machine().mac)
    };
    let mut config = config();
    config.binaries.insert(7, "ipxe.efi".to_owned());
    for (arch, file) in [
        (0, "undionly.kpxe"),
        (7, "ipxe.efi"),
        (9, "snponly.efi"),
        (11, "snp-arm64.efi"),
        (6, "snponly-i386.efi"),
        (10, "snp-arm32.efi"),
        (15, "snponly-i386.efi"),
        (18, "snp-arm32.efi"),
        (41, "snp-arm64.efi"),
        (8, "no-loader-for-architecture-8"),
        (65535, "no-loader-for-architecture-65535"),
    ] {
        assert_eq!(boot(&config, &machine(), &options(arch)), tftp(file), "{arch}");
    }
    let pi = Client { raspberry_pi: true, ..options(0) };
    assert_eq!(boot(&config, &machine(), &pi), tftp("snp-arm64.efi"));
    let machine = Reservation { ipxe_binary: Some("mine.efi".to_owned()), ..machine() };
    assert_eq!(boot(&config, &machine, &options(7)), tftp("mine.efi"));
    assert_eq!(boot(&config, &machine, &options(6)), tftp("mine.efi"));
}

#[test]
fn a_record_with_its_own_boot_file_replaces_all_of_it() {
    let machine = Reservation {
        tftp_server_name: Some("192.0.2.9".to_owned()),
        boot_file_name: Some("u-boot.img".to_owned()),
        netboot: Netboot::NotAllowed,
        ..machine()
    };
    let fixed =
        Boot::Fixed { server: Some("192.0.2.9".to_owned()), file: Some("u-boot.img".to_owned()) };
    for packet in [edk2_pxe(DISCOVER), ipxe_efi(DISCOVER), udhcpc(DISCOVER)] {
        assert_eq!(chosen(&machine, packet), fixed);
    }
}
