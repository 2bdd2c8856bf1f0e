//! Other DHCP modes of the box: addresses of its own pool, answers beside another server's,
//! unregistered machines, and IPv6.

use std::net::Ipv4Addr;
use std::time::Duration;

use scenarios::{
    BootOrder, BootPath, Dnsmasq, Lab, LabConfig, NucConfig, Pool, RackConfig, Segment, poll,
    start_kea,
};
use serde_json::Value;

use crate::gate;
use crate::row::Matrix;
use crate::table::{BOTH, Network};

use BootPath::{BiosIpxeRom, UefiPxe4};
use Segment::Near;

/// Pool above the BMCs' addresses and below the relay's.
const POOL: &str = "mode = \"pool\"\npool = \"10.77.0.200-10.77.0.240\"";
const PROXY: &str = "mode = \"proxy\"";
/// The other server, and the addresses that it assigns.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const OTHERS: Pool =
    Pool { first: Ipv4Addr::new(10, 77, 0, 150), last: Ipv4Addr::new(10, 77, 0, 199) };

#[test]
fn pool() {
    Matrix::new("boot-pool", POOL).without_reservations().boot(Network::Pool, &BOTH, |_| ());
}

#[test]
fn proxy_beside_kea() {
    let matrix = Matrix::new("boot-proxy-kea", PROXY).without_reservations();
    matrix.boot(Network::ProxyKea, &BOTH, |lab| {
        let host = lab.rack.add_host("kea", &[(Near, OTHER)]).unwrap();
        let kea = start_kea(&host, lab.rack.dir(), OTHERS).unwrap();
        (host, kea)
    });
}

#[test]
fn proxy_beside_dnsmasq() {
    let matrix = Matrix::new("boot-proxy-dnsmasq", PROXY).without_reservations();
    matrix.boot(Network::ProxyDnsmasq, &BOTH, |lab| {
        let host = lab.rack.add_host("dnsmasq", &[(Near, OTHER)]).unwrap();
        let dnsmasq = Dnsmasq::new(OTHERS).start(&host, lab.rack.dir(), "dnsmasq").unwrap();
        (host, dnsmasq)
    });
}

/// The firmware loads the agent OS's unified kernel image, with the machine's arguments in it.
#[test]
fn without_ipxe() {
    let network = "mode = \"reserved\"\n\
        loaders = { 7 = \"agent-x86_64.efi\", 16 = \"agent-x86_64.efi\" }";
    Matrix::new("boot-uki", network).boot(Network::WithoutIpxe, &BOTH, |_| ());
}

#[test]
fn ipv6() {
    let network = "mode = \"reserved\"\nipv6 = true";
    Matrix::new("boot-ipv6", network).boot(Network::Ipv6, &BOTH, |_| ());
}

#[test]
fn a_machine_that_nobody_described_is_discovered() {
    let nuc = |path| NucConfig { path, boot_order: BootOrder::NetworkFirst, ..NucConfig::bios() };
    let rack = RackConfig::new("boot-unknown").nuc(nuc(BiosIpxeRom)).nuc(nuc(UefiPxe4));
    let mut config = LabConfig::new(rack);
    config.network = format!("{POOL}\nenroll = true");
    let lab = Lab::start(config).unwrap();
    for nuc in lab.rack.nucs() {
        let _place = gate::enter();
        nuc.power_on().unwrap();
        // Its agent has sent its facts, and the box has created the Hardware.
        let name = format!("discovery-{}", nuc.mac().dashed());
        let get = ["hardware", "get", name.as_str(), "--output", "json"];
        let hardware = poll(&name, Duration::from_secs(240), || lab.tinbox(&get).ok()).unwrap();
        let hardware: Value = serde_json::from_str(&hardware).unwrap();
        assert_eq!(hardware["metadata"]["labels"]["tinkerbell.org/auto-discovered"], "true");
        assert_eq!(hardware["spec"]["agentID"], nuc.mac().to_string());
        assert_eq!(hardware["spec"]["disks"][0]["device"], "/dev/vda");
        nuc.cut_power();
    }
    lab.rack.succeed();
}
