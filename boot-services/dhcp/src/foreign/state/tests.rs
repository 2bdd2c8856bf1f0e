use super::{Event, Foreign, Hold, Neighbor, Permit, State};
use std::net::Ipv4Addr;
use std::time::SystemTime;

fn foreign(last: u8) -> Foreign {
    Foreign {
        server: Ipv4Addr::new(192, 0, 2, last),
        mac: Some(stdx::MacAddr([2, 0, 0, 0, 0, last])),
        interface: "eth1".to_owned(),
        offered: Some(Ipv4Addr::new(192, 0, 2, 77)),
        when: SystemTime::UNIX_EPOCH,
    }
}

fn events() -> [Event; 6] {
    let (received, named) = (Event::Received(foreign(2)), Event::Named(foreign(3)));
    [received, named, Event::ProbeClean, Event::Unplugged, Event::Plugged, Event::Rearm]
}

/// The whole state table: a row for each state, a column for each of [`events`].
#[test]
fn every_state_knows_every_event() {
    let unwatched = || State::Held(Hold::Unwatched);
    let probing = || State::Held(Hold::Probing);
    let no_carrier = || State::Held(Hold::NoCarrier);
    let serving = || State::Serving;
    let checking = |last| State::Checking(foreign(last));
    let stopped = |last| State::Stopped(foreign(last));
    let unknown = || State::Proxy(Neighbor::Unknown);
    let no_server = || State::Proxy(Neighbor::None);
    let beside = |last| State::Proxy(Neighbor::Server(foreign(last)));
    let table = [
        (unwatched(), [(); 6].map(|()| unwatched())),
        (probing(), [stopped(2), probing(), serving(), no_carrier(), probing(), probing()]),
        (
            no_carrier(),
            [stopped(2), no_carrier(), no_carrier(), no_carrier(), probing(), no_carrier()],
        ),
        (serving(), [stopped(2), checking(3), serving(), no_carrier(), probing(), serving()]),
        (checking(1), [stopped(2), checking(1), serving(), no_carrier(), probing(), checking(1)]),
        (stopped(1), [stopped(1), stopped(1), stopped(1), stopped(1), stopped(1), probing()]),
        (unknown(), [beside(2), beside(3), no_server(), unknown(), unknown(), unknown()]),
        (no_server(), [beside(2), beside(3), no_server(), unknown(), unknown(), no_server()]),
        (beside(1), [beside(1), beside(1), no_server(), unknown(), unknown(), beside(1)]),
    ];
    for (state, row) in table {
        for (event, expected) in events().into_iter().zip(row) {
            assert_eq!(state.clone().next(event.clone()), expected, "{state:?} and {event:?}");
        }
    }
}

#[test]
fn leases_are_given_only_where_nobody_else_gives_them() {
    let gives_leases = |state: &State| *state == State::Serving;
    for (state, permit) in [
        (State::default(), Permit::Nothing),
        (State::Held(Hold::Probing), Permit::Nothing),
        (State::Held(Hold::NoCarrier), Permit::Nothing),
        (State::Serving, Permit::Everything),
        (State::Checking(foreign(1)), Permit::Boots),
        (State::Stopped(foreign(1)), Permit::Boots),
        (State::Proxy(Neighbor::Unknown), Permit::Everything),
    ] {
        assert_eq!(state.permit(), permit, "{state}");
        let is_proxy = matches!(state, State::Proxy(_));
        assert_eq!(permit == Permit::Everything, gives_leases(&state) || is_proxy);
    }
}

#[test]
fn a_foreign_server_is_told_in_one_line() {
    let mut server = foreign(1);
    assert_eq!(
        State::Stopped(server.clone()).to_string(),
        "stopped: another DHCP server, 192.0.2.1 (02:00:00:00:00:01) on eth1, \
         offering 192.0.2.77"
    );
    (server.mac, server.offered) = (None, None);
    assert_eq!(server.to_string(), "192.0.2.1 on eth1");
}
