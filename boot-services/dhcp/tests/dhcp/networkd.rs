//! Tests systemd-networkd, the DHCP client of many servers, against the running service, over a
//! veth pair.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::path::Path;

use dhcp::{Config, DhcpEvent, Mode, Netboot, Range, Reservation, Subnet};
use stdx::MacAddr;
use stdx::testing::{Wait, until};

use crate::rack::networkd::Networkd;
use crate::rack::{ADDRESS, MAC, SERVER, Service, Wire, machine, sh};

/// Lease time in seconds. The client renews after half of this time, so the test is short. The
/// lease of a pool must be longer.
const SHORT_LEASE_SECS: u32 = 8;
const POOL_LEASE_SECS: u32 = 600;
const GUEST: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 9]);
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);
const LAST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 109);

fn settings(dhcpv4: &str) -> String {
    format!("[Network]\nDHCP=ipv4\n[DHCPv4]\n{dhcpv4}\n")
}

fn words(values: &[impl Display]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns networkd's expected entries for this machine's lease (RFC 2131 §4.4.5 defines renewal
/// and rebinding times).
fn offered(machine: &Reservation) -> Vec<(&'static str, String)> {
    let fixed = machine.fixed.unwrap();
    vec![
        ("ADDRESS", fixed.address.to_string()),
        ("NETMASK", fixed.netmask.to_string()),
        ("ROUTER", machine.gateway.unwrap().to_string()),
        ("SERVER_ADDRESS", SERVER.to_string()),
        ("DNS", words(&machine.name_servers)),
        ("NTP", words(&machine.time_servers)),
        ("DOMAINNAME", machine.domain_name.clone().unwrap()),
        ("HOSTNAME", machine.hostname.clone().unwrap()),
        ("LIFETIME", machine.lease_secs.to_string()),
        ("T1", (machine.lease_secs / 2).to_string()),
        ("T2", (machine.lease_secs * 7 / 8).to_string()),
    ]
}

fn assert_has(lease: &BTreeMap<String, String>, expected: &[(&'static str, String)]) {
    for (key, value) in expected {
        assert_eq!(lease.get(*key), Some(value), "{key} in {lease:#?}");
    }
}

/// Returns the output of `ip` in the rack's namespace.
fn shown(wire: &Wire, what: &[&str]) -> String {
    let output = wire.rack("ip").args(["-4", "-oneline"]).args(what).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn acks(event: &[DhcpEvent]) -> usize {
    event.iter().filter(|event| matches!(event, DhcpEvent::Acked { .. })).count()
}

/// Counts ACKs without an OFFER before them. A client whose lease ended because the test machine
/// was too busy begins with a DISCOVER, and is not counted.
fn renewals(event: &[DhcpEvent]) -> usize {
    let answers = event
        .iter()
        .filter(|event| matches!(event, DhcpEvent::Acked { .. } | DhcpEvent::Offered { .. }));
    let answers: Vec<_> = answers.collect();
    let both =
        |pair: &&[&DhcpEvent]| pair.iter().all(|event| matches!(event, DhcpEvent::Acked { .. }));
    answers.windows(2).filter(both).count()
}

#[test]
fn a_known_machine_gets_its_reservation_whatever_it_calls_itself() {
    for (identity, client_id) in [("duid", "ff"), ("mac", "01525400770001")] {
        let wire = Wire::new();
        let machine = machine(Netboot::Allowed);
        let service = Service::start(&wire, machine.clone());
        service.listens(&wire);
        let client = Networkd::start(&wire, &settings(&format!("ClientIdentifier={identity}")));
        let lease = client.lease();
        assert_has(&lease, &offered(&machine));
        assert!(lease["CLIENTID"].starts_with(client_id), "{lease:#?}");
        let address = shown(&wire, &["addr", "show", "dev", "nuc0"]);
        assert!(address.contains(&format!(" {ADDRESS}/24 ")), "{address}");
        let route = shown(&wire, &["route", "show", "default"]);
        assert!(route.contains(&format!("default via {SERVER} dev nuc0 ")), "{route}");
        service.events.ends_with(&DhcpEvent::Acked { mac: MAC, address: ADDRESS, file: None });
        client.stop();
        let released = DhcpEvent::Released { mac: MAC, address: ADDRESS };
        until("the release", || service.events.all().contains(&released));
    }
}

#[test]
fn a_reservation_is_renewed_by_unicast() {
    let wire = Wire::new();
    let machine = Reservation { lease_secs: SHORT_LEASE_SECS, ..machine(Netboot::Allowed) };
    let service = Service::start(&wire, machine.clone());
    service.listens(&wire);
    let client = Networkd::start(&wire, &settings(""));
    until("two renewals", || renewals(&service.events.all()) >= 2);
    assert_has(&client.lease(), &offered(&machine));
}

fn pool(wire: &Wire, folder: &Path) -> Service {
    let mut config = Config::new("box0", SERVER);
    config.mode = Mode::Pool;
    config.subnets = vec![Subnet {
        ranges: vec![Range { first: FIRST, last: LAST }],
        gateway: Some(SERVER),
        name_servers: vec![SERVER],
        domain_name: Some("pool.example".to_owned()),
        lease_secs: POOL_LEASE_SECS,
        ..Subnet::new("10.77.0.0/24".parse().unwrap())
    }];
    let leases = folder.join("leases.redb");
    let service = Service::keeping(wire, machine(Netboot::Allowed), config, Some(&leases));
    service.listens(wire);
    service
}

/// Unplugs the cable and plugs it in again. Returns true if the client got its ACK without a
/// DISCOVER.
fn kept_over_a_pulled_cable(wire: &Wire, service: &Service, client: &Networkd) -> bool {
    let before = service.events.all().len();
    sh(&format!("ip -n {} link set box0 down", wire.box_space));
    client.link("CARRIER_STATE", "no-carrier");
    sh(&format!("ip -n {} link set box0 up", wire.box_space));
    let since = || service.events.all().split_off(before);
    until("another ACK", || acks(&since()) > 0);
    !since().iter().any(|event| matches!(event, DhcpEvent::Discover { .. }))
}

#[test]
fn a_stranger_keeps_its_address_over_a_pulled_cable_and_gives_it_back_if_told_to() {
    let wire = Wire::new();
    sh(&format!("ip -n {} link set nuc0 address {GUEST}", wire.rack_space));
    let folder = tempfile::tempdir().unwrap();
    let service = pool(&wire, folder.path());
    let expected = [
        ("ADDRESS", FIRST.to_string()),
        ("NETMASK", "255.255.255.0".to_owned()),
        ("ROUTER", SERVER.to_string()),
        ("DNS", SERVER.to_string()),
        ("DOMAINNAME", "pool.example".to_owned()),
        ("LIFETIME", POOL_LEASE_SECS.to_string()),
    ];
    let client = Networkd::start(&wire, &settings("SendRelease=no"));
    assert_has(&client.lease(), &expected);
    // The client requests its former address (INIT-REBOOT, RFC 2131 §3.2) once, for two seconds. If
    // it was too busy to receive the ACK, it starts again, so the cable is unplugged again.
    let wait = Wait::new("an ACK to a client that asks for what it had");
    while !kept_over_a_pulled_cable(&wire, &service, &client) {
        std::thread::sleep(wait.pause());
    }
    assert_has(&client.lease(), &expected);
    client.stop();
    // The server processes the first client's last packets before the packets of the next client.
    let client = Networkd::start(&wire, &settings("SendRelease=yes"));
    assert_has(&client.lease(), &expected);
    let released = DhcpEvent::Released { mac: GUEST, address: FIRST };
    assert!(!service.events.all().contains(&released), "{:?}", service.events.all());
    client.stop();
    until("the release", || service.events.all().contains(&released));
}
