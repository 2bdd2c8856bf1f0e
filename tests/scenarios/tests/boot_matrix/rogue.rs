//! Detection of other DHCP servers: the box stops answering within a second of a message from one,
//! and checks again after its cable was unplugged.

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

use scenarios::{
    BoxProcess, BoxProgram, DhcpKind, DhcpMessage, Dnsmasq, Host, Lab, LabConfig, NucConfig, Pool,
    RackConfig, Segment, poll,
};
use stdx::testing::PATIENCE;

const BOX: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const ROGUE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 66);
const ROGUES: Pool =
    Pool { first: Ipv4Addr::new(10, 77, 0, 150), last: Ipv4Addr::new(10, 77, 0, 199) };
/// Maximum time until the box stops answering.
const SILENT_WITHIN: Duration = Duration::from_secs(1);
/// Time for which the silence is checked.
const LISTEN: Duration = Duration::from_secs(8);

/// A rack whose only machine is registered and stays off: a client in its place requests its
/// address repeatedly.
fn lab(name: &str) -> (Lab, Host, BoxProcess) {
    let nuc = NucConfig { memory_mib: 64, disk_bytes: 1 << 20, ..NucConfig::bios() };
    let rack = RackConfig::new(name).nuc(nuc).capture("udp port 67 or udp port 68");
    let mut config = LabConfig::new(rack);
    config.network = "mode = \"reserved\"".to_owned();
    let lab = Lab::start(config).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let asker = lab.rack.add_host("asker", &[(Segment::Near, Ipv4Addr::new(10, 77, 0, 4))]);
    let asker = asker.unwrap();
    let mac = lab.rack.nuc(1).mac();
    asker.ip(&format!("link set eth0 address {mac}\n")).unwrap();
    let ask = "while :; do busybox udhcpc -f -q -n -i eth0 -t 2 -T 1 -A 0 -s /bin/true; done";
    let program = BoxProgram::new("sh", lab.rack.dir().join("asker.log")).args(["-c", ask]);
    let asking = asker.spawn(program).unwrap();
    (lab, asker, asking)
}

fn messages(lab: &Lab) -> Vec<DhcpMessage> {
    lab.rack.capture().unwrap().dhcp().unwrap()
}

/// Waits for a message after `since` and returns the first.
fn wait(
    lab: &Lab,
    what: &str,
    since: SystemTime,
    test: impl Fn(&DhcpMessage) -> bool,
) -> DhcpMessage {
    let found = || messages(lab).into_iter().find(|it| it.at() > since && test(it));
    poll(what, PATIENCE, found).unwrap()
}

fn is_offer(message: &DhcpMessage, server: Ipv4Addr) -> bool {
    message.kind == DhcpKind::Offer && message.server() == Some(server)
}

fn is_asked(lab: &Lab, message: &DhcpMessage) -> bool {
    message.kind == DhcpKind::Discover && message.chaddr() == lab.rack.nuc(1).mac()
}

#[test]
fn a_second_server_silences_the_box_within_a_second() {
    let (lab, _asker, _asking) = lab("rogue-appears");
    let start = SystemTime::UNIX_EPOCH;
    wait(&lab, "the box's OFFER", start, |it| is_offer(it, BOX));
    let host = lab.rack.add_host("rogue", &[(Segment::Near, ROGUE)]).unwrap();
    let rogue = Dnsmasq::new(ROGUES).start(&host, lab.rack.dir(), "rogue").unwrap();
    let heard = wait(&lab, "the rogue's first word", start, |it| it.server() == Some(ROGUE));
    let silent = heard.at() + SILENT_WITHIN;
    let asked_late = |it: &DhcpMessage| is_asked(&lab, it);
    wait(&lab, "a question long after", silent + LISTEN, asked_late);
    let late = messages(&lab).into_iter().filter(|it| it.at() > silent && is_offer(it, BOX));
    assert_eq!(late.count(), 0, "OFFERs of the box while another server is there");
    drop(rogue);
    lab.rack.succeed();
}

#[test]
fn after_its_cable_was_out_the_box_probes_before_it_offers() {
    let (lab, _asker, _asking) = lab("replugged");
    wait(&lab, "the box's OFFER", SystemTime::UNIX_EPOCH, |it| is_offer(it, BOX));
    lab.rack.unplug_box().unwrap();
    let pulled = SystemTime::now();
    // Linux reports carrier changes once a second: it does not notice a cable that is back sooner.
    let long_out = pulled + Duration::from_millis(1500);
    wait(&lab, "a question that nobody hears", long_out, |it| is_asked(&lab, it));
    lab.rack.plug_box().unwrap();
    let offer = wait(&lab, "the box's OFFER again", pulled, |it| is_offer(it, BOX));
    let is_probe = |it: &&DhcpMessage| {
        it.kind == DhcpKind::Discover
            && it.datagram.from == offer.datagram.from
            && it.at() > pulled
            && it.at() < offer.at()
    };
    let all = messages(&lab);
    assert!(all.iter().any(|it| is_probe(&it)), "it offered without having looked");
    lab.rack.succeed();
}
