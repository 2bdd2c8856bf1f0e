//! Tests RFC 2131 §4.3, row by row, for reservations.

use std::net::Ipv4Addr;

use super::{Decision, decide};
use crate::events::DropReason;
use crate::messages::boot::Boot;
use crate::messages::request::Request;
use crate::reservation::Reservation;
use crate::vectors::*;

const OTHER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 99);

fn decided(packet: Packet) -> Decision {
    decide(&config(), &machine(), FIXED, &Request::read(&packet.end()).unwrap())
}

fn requests(address: Ipv4Addr) -> Packet {
    udhcpc(REQUEST).option(50, &address.octets())
}

#[test]
fn discover_is_offered_the_reservation_whatever_it_hopes_for() {
    let offer = Decision::Offer(Boot::Nothing);
    assert_eq!(decided(udhcpc(DISCOVER)), offer);
    assert_eq!(decided(udhcpc(DISCOVER).option(50, &OTHER.octets())), offer);
}

#[test]
fn request_in_each_client_state() {
    let ack = Decision::Ack(Boot::Nothing);
    let nak = Decision::Nak(
        "requested 10.77.0.99, but 10.77.0.11 is reserved for 52:54:00:77:00:01".to_owned(),
    );
    let ours = SERVER.octets();
    for (state, packet, decision) in [
        ("selecting", requests(ADDRESS).option(54, &ours), ack.clone()),
        ("selecting, wrong", requests(OTHER).option(54, &ours), nak.clone()),
        ("init-reboot", requests(ADDRESS), ack.clone()),
        ("init-reboot, wrong", requests(OTHER), nak.clone()),
        ("renewing", udhcpc(REQUEST).ciaddr(ADDRESS), ack),
        ("renewing, wrong", udhcpc(REQUEST).ciaddr(OTHER), nak),
        (
            "another's offer taken",
            requests(OTHER).option(54, &OTHER.octets()),
            Decision::Drop(DropReason::OtherServer(OTHER)),
        ),
        ("no address", udhcpc(REQUEST), Decision::Drop(DropReason::NoAddress)),
    ] {
        assert_eq!(decided(packet), decision, "{state}");
    }
}

#[test]
fn the_other_messages() {
    assert_eq!(decided(udhcpc(8).ciaddr(OTHER)), Decision::Inform(Boot::Nothing));
    let ours = SERVER.octets();
    assert_eq!(decided(udhcpc(7).ciaddr(ADDRESS).option(54, &ours)), Decision::Released(ADDRESS));
    let decline = udhcpc(4).option(50, &ADDRESS.octets()).option(54, &ours);
    assert_eq!(decided(decline), Decision::Declined(ADDRESS));
    for kind in [4, 7, 8] {
        let packet = udhcpc(kind).option(54, &OTHER.octets());
        assert_eq!(decided(packet), Decision::Drop(DropReason::OtherServer(OTHER)), "{kind}");
    }
}

#[test]
fn a_record_may_ask_for_silence() {
    let machine = Reservation { disable_dhcp: true, ..machine() };
    for packet in [udhcpc(DISCOVER), selecting(udhcpc(REQUEST)), udhcpc(8).ciaddr(ADDRESS)] {
        let request = Request::read(&packet.end()).unwrap();
        assert_eq!(
            decide(&config(), &machine, FIXED, &request),
            Decision::Drop(DropReason::Disabled)
        );
    }
}
