//! The network around the box: other servers, a relay, and ROMs that are not iPXE.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::SystemTime;

use qemu::{
    BootPath, BoxProcess, BoxProgram, Capture, DhcpKind, DhcpMessage, Dnsmasq, Host, Nic,
    NucConfig, Pool, Rack, Relay, Segment, start_kea,
};

use crate::{LONG, config};

const DHCP: &str = "udp port 67 or udp port 68 or udp port 69";
const POOL: Pool =
    Pool { first: Ipv4Addr::new(10, 77, 0, 150), last: Ipv4Addr::new(10, 77, 0, 199) };
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);

fn small(path: BootPath) -> NucConfig {
    NucConfig { path, memory_mib: 64, disk_bytes: 1 << 20, ..NucConfig::bios() }
}

fn wait_for(
    capture: &Capture,
    what: &str,
    mut test: impl FnMut(&DhcpMessage) -> bool,
) -> DhcpMessage {
    let mut found = || capture.dhcp().expect("read the capture").into_iter().find(&mut test);
    qemu::poll(what, LONG, &mut found).expect(what)
}

#[test]
fn a_plain_rom_loads_what_dhcp_names_and_the_loader_says_who_it_is() {
    let rack = Rack::build(config("plain").nuc(small(BootPath::BiosPlainPxe)).capture(DHCP));
    let rack = rack.expect("build the rack");
    let server = rack.add_host("server", &[(Segment::Near, SERVER)]).expect("a host");
    let dnsmasq =
        Dnsmasq::new(POOL).tftp(Path::new("/usr/lib/ipxe")).line("dhcp-boot=undionly.kpxe");
    let _dnsmasq = dnsmasq.start(&server, rack.dir(), "dnsmasq").expect("dnsmasq");
    let (nuc, capture) = (rack.nuc(1), rack.capture().expect("configured"));
    for round in 0..2 {
        let start = SystemTime::now();
        if round == 0 {
            nuc.power_on().expect("switch on");
        } else {
            nuc.reset().expect("reset");
        }
        let asked = |it: &DhcpMessage| it.at() >= start && it.chaddr() == nuc.mac() && it.op() == 1;
        let rom = wait_for(capture, "the ROM's DISCOVER", asked);
        assert_eq!(rom.text(60), "PXEClient:Arch:00000:UNDI:002001");
        assert_eq!((rom.option(77), rom.option(175)), (None, None), "it does not say iPXE");
        let loader = |it: &DhcpMessage| asked(it) && it.text(77) == "iPXE";
        let loader = wait_for(capture, "the loader's DISCOVER", loader);
        assert!(loader.option(175).is_some());
        let datagrams = capture.datagrams().expect("read the capture");
        let read = datagrams.iter().find(|it| it.at >= start && it.target.port() == 69);
        let read = read.expect("the ROM asked for its loader");
        assert!(read.payload.starts_with(b"\0\x01undionly.kpxe\0"), "{:?}", read.payload);
        assert!(rom.at() < read.at && read.at < loader.at());
    }
    rack.succeed();
}

#[test]
fn a_relay_carries_the_far_segment_s_questions_to_the_box() {
    let far = NucConfig { segment: Segment::Far, ..small(BootPath::BiosIpxeRom) };
    let rack = Rack::build(config("relay").nuc(far).capture(DHCP)).expect("build the rack");
    let wire = rack.start_capture_on(Segment::Far, DHCP, "far.pcap").expect("capture");
    let mut relay = Relay::start(&rack).expect("a relay");
    rack.nuc(1).power_on().expect("switch on");
    let mac = rack.nuc(1).mac();
    let asked = wait_for(&wire, "a DISCOVER", |it| it.chaddr() == mac);
    assert_eq!(asked.giaddr(), Ipv4Addr::UNSPECIFIED);
    let near = rack.capture().expect("configured");
    let relayed = wait_for(near, "the relayed DISCOVER", |it| it.chaddr() == mac);
    assert_eq!(relayed.giaddr(), Relay::FAR);
    assert_eq!(relayed.datagram.target.to_string(), "10.77.0.1:67", "to the box alone");
    assert!(relayed.option(82).is_some(), "RFC 3046");
    assert!(relay.process().is_running());
    rack.succeed();
}

/// Starts a client that requests an address repeatedly.
fn ask_for_ever(host: &Host, rack: &Rack) -> BoxProcess {
    let ask = "while :; do busybox udhcpc -f -q -n -i eth0 -t 2 -T 1 -A 0 -s /bin/true; done";
    let program = BoxProgram::new("sh", rack.dir().join("asker.log")).args(["-c", ask]);
    host.spawn(program).expect("start the asker")
}

#[test]
fn servers_come_and_go_and_each_one_s_answers_are_counted() {
    let rack = Rack::build(config("servers").capture(DHCP)).expect("build the rack");
    let capture = rack.capture().expect("configured");
    let host =
        |name: &str, address| rack.add_host(name, &[(Segment::Near, address)]).expect("a host");
    let (first, second) = (host("kea", SERVER), host("rogue", OTHER));
    let asker = host("asker", Ipv4Addr::new(10, 77, 0, 4));
    let offers = |server, since| {
        capture.answers(server, DhcpKind::Offer, since).expect("read the capture").len()
    };
    let more = |server, since| {
        let what = format!("an OFFER from {server}");
        qemu::poll(&what, LONG, || (offers(server, since) > 0).then_some(())).expect(&what);
    };
    let start = SystemTime::now();
    let _kea = start_kea(&first, rack.dir(), POOL).expect("kea");
    let _asker = ask_for_ever(&asker, &rack);
    more(SERVER, start);
    assert_eq!(offers(OTHER, start), 0);

    let rogue = Dnsmasq::new(POOL).start(&second, rack.dir(), "rogue").expect("dnsmasq");
    more(OTHER, start);
    drop(rogue);
    let gone = SystemTime::now();
    more(SERVER, gone);
    assert_eq!(offers(OTHER, gone), 0, "a server that ended offers nothing");

    first.unplug().expect("pull the cable");
    let pulled = SystemTime::now();
    let unanswered = "a question that nobody answers";
    wait_for(capture, unanswered, |it| it.kind == DhcpKind::Discover && it.at() > pulled);
    assert_eq!(offers(SERVER, pulled), 0, "nothing passes a pulled cable");
    first.plug().expect("put the cable back");
    more(SERVER, pulled);
    rack.succeed();
}

#[test]
fn edk2_without_a_driver_is_refused_before_anything_is_built() {
    let nuc = NucConfig { nic: Nic::E1000e, ..NucConfig::uefi() };
    let error = Rack::build(config("no-driver").nuc(nuc)).expect_err("must refuse").to_string();
    assert_eq!(error, "UefiPxe4 needs virtio: EDK2 cannot drive e1000e");
}
