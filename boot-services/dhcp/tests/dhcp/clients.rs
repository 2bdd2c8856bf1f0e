//! Tests Busybox's DHCP client against the running service, over a veth pair.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use dhcp::{DhcpEvent, Netboot};
use stdx::MacAddr;
use stdx::testing::{PATIENCE, wait_for};

use crate::rack::{self, ADDRESS, MAC, Service, Wire, machine, sh};

/// Runs udhcpc until it has a lease, with tries of one second each. Returns the settings that
/// udhcpc passes to its script; `None` without an answer.
fn udhcpc(wire: &Wire, tries: u64, extra: &[&str]) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let settings = folder.path().join("settings");
    fs::write(&script, format!("#!/bin/sh\n[ $1 = bound ] && env > {}\n", settings.display()))
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let status = wire
        .rack("busybox")
        .args(["udhcpc", "-i", "nuc0", "-f", "-n", "-q", "-T", "1", "-t", &tries.to_string(), "-s"])
        .arg(&script)
        .args(extra)
        .status()
        .expect("ip (iproute2) and busybox (busybox-static) are installed");
    let settings = fs::read_to_string(settings).ok();
    assert_eq!(status.success(), settings.is_some());
    settings.map(|text| text.lines().map(str::to_owned).collect())
}

/// Returns the settings of a lease; panics if udhcpc gets none.
fn leased(wire: &Wire, service: &Service, extra: &[&str]) -> Vec<String> {
    udhcpc(wire, PATIENCE.as_secs(), extra)
        .unwrap_or_else(|| panic!("no lease; the service saw {:?}", service.events.all()))
}

fn started(wire: &Wire, netboot: Netboot) -> Service {
    let service = Service::start(wire, machine(netboot));
    service.listens(wire);
    service
}

#[test]
fn a_known_machine_gets_its_reservation() {
    let wire = Wire::new();
    let service = started(&wire, Netboot::Allowed);
    // The client requests another address, and is offered its own.
    let settings = leased(&wire, &service, &["-r", "10.77.0.99"]);
    for expected in [
        "ip=10.77.0.11",
        "mask=24",
        "subnet=255.255.255.0",
        "router=10.77.0.1",
        "dns=10.77.0.1 9.9.9.9",
        "hostname=nuc-01",
        "domain=rack.example",
        "broadcast=10.77.0.255",
        "ntpsrv=10.77.0.1",
        "lease=7200",
        "serverid=10.77.0.1",
    ] {
        assert!(settings.iter().any(|line| line == expected), "{expected} in {settings:#?}");
    }
    let has_setting = |prefix: &str| settings.iter().any(|line| line.starts_with(prefix));
    assert!(
        !has_setting("boot_file=") && !has_setting("siaddr="),
        "a system gets no netboot options"
    );
    let events = service.events.all();
    assert!(matches!(events[0], DhcpEvent::Discover { mac: MAC, .. }), "{events:?}");
    service.events.ends_with(&DhcpEvent::Acked { mac: MAC, address: ADDRESS, file: None });
    service.stop().unwrap();
}

#[test]
fn a_netbooting_client_gets_its_loader() {
    let wire = Wire::new();
    let service = started(&wire, Netboot::Allowed);
    let extra = ["-V", "PXEClient:Arch:00007:UNDI:003000", "-x", "0x5d:0007", "-x", "0x5e:010300"];
    let settings = leased(&wire, &service, &extra);
    for expected in ["boot_file=snponly.efi", "siaddr=10.77.0.1"] {
        assert!(settings.iter().any(|line| line == expected), "{expected} in {settings:#?}");
    }
    let file = Some("snponly.efi".to_owned());
    service.events.ends_with(&DhcpEvent::Acked { mac: MAC, address: ADDRESS, file });
}

#[test]
fn a_stranger_gets_silence_and_is_recorded() {
    let wire = Wire::new();
    let service = started(&wire, Netboot::Allowed);
    sh(&format!("ip -n {} link set nuc0 address 52:54:00:77:00:02", wire.rack_space));
    assert_eq!(udhcpc(&wire, 2, &[]), None);
    let mac = MacAddr([0x52, 0x54, 0, 0x77, 0, 2]);
    let vendor_class = wait_for("a report", || {
        service.events.all().into_iter().find_map(|event| match event {
            DhcpEvent::UnknownMac { vendor_class, .. } => Some(vendor_class),
            _ => None,
        })
    });
    assert!(vendor_class.is_some_and(|class| class.starts_with("udhcp ")));
    let unknown =
        |event: &DhcpEvent| matches!(event, DhcpEvent::UnknownMac { mac: who, .. } if *who == mac);
    // A repeated report is excluded: an unknown machine is reported once a minute at most.
    assert_eq!(service.events.all().len(), 1, "reported once, not per packet");
    assert!(service.events.all().iter().all(unknown));
    // Other machines still get answers while the unknown machine gets none.
    sh(&format!("ip -n {} link set nuc0 address {MAC}", wire.rack_space));
    leased(&wire, &service, &[]);
}

#[test]
fn the_service_ends_with_its_interface() {
    let wire = Wire::new();
    let service = started(&wire, Netboot::Allowed);
    sh(&format!("ip -n {} link del box0", wire.box_space));
    let error = service.ended().unwrap_err();
    assert!(matches!(error, dhcp::Error::Interface { .. }), "{error:?}");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let wire = Wire::new();
    let config = dhcp::Config::new("nuc7", rack::SERVER);
    let error = Service::with(&wire, machine(Netboot::Allowed), config).ended().unwrap_err();
    assert_eq!(error.to_string(), "cannot find the network interface nuc7");
}
