use super::{Action, Now, Subject, Watcher};
use crate::foreign::carrier::Link;
use crate::foreign::evidence::{OwnServers, tests::Packet};
use crate::foreign::probe::ProbeSender;
use crate::foreign::record::Record;
use crate::foreign::{Hold, Neighbor, Permit, Role, Start, State};
use std::time::{Duration, Instant, SystemTime};
use stdx::MacAddr;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

/// Watcher with a simulated time, and its actions.
struct Bench {
    watcher: Watcher,
    start: Now,
    now: Now,
    link: Link,
    sent: Vec<Duration>,
    reports: Vec<(Duration, State)>,
    stored: Option<Record>,
}

fn subject(role: Role) -> Subject {
    Subject {
        interface: "eth1".to_owned(),
        role,
        own: OwnServers { servers: vec![[10, 77, 0, 1].into()], macs: vec![MAC] },
        sender: ProbeSender::new(MAC, [0xff; 6]),
        xid: 1,
        boot_id: "boot".to_owned(),
    }
}

const UP: Link = Link { index: 7, mac: MAC, carrier: true, changes: 2 };

impl Bench {
    fn new(role: Role) -> Self {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_394_041);
        Self::at(Now { at: Instant::now(), wall }, role, UP, Start::Arm, None)
    }

    fn at(now: Now, role: Role, link: Link, start: Start, record: Option<Record>) -> Self {
        let (watcher, actions) = Watcher::new(subject(role), link, start, record, now);
        let (sent, reports) = (Vec::new(), Vec::new());
        let mut bench = Self { watcher, start: now, now, link, sent, reports, stored: None };
        bench.did(actions);
        bench
    }

    fn did(&mut self, actions: Vec<Action>) {
        let since = self.now.at - self.start.at;
        for action in actions {
            match action {
                Action::Report(state) => self.reports.push((since, state)),
                Action::Send(_) => self.sent.push(since),
                Action::StoreRecord(record) => self.stored = record,
            }
        }
    }

    fn advance(&mut self, by: Duration) {
        self.now = Now { at: self.now.at + by, wall: self.now.wall + by };
    }

    /// Advances the time, and calls `tick` at each deadline.
    fn pass(&mut self, seconds: f64) {
        let end = self.now.at + Duration::from_secs_f64(seconds);
        while let Some(deadline) = self.watcher.deadline().filter(|at| *at <= end) {
            self.advance(deadline.saturating_duration_since(self.now.at));
            let actions = self.watcher.tick(self.now);
            self.did(actions);
        }
        self.advance(end - self.now.at);
    }

    fn receive(&mut self, packet: &Packet) {
        let actions = self.watcher.frame(&packet.frame(), self.now);
        self.did(actions);
    }

    fn carrier(&mut self, carrier: bool) {
        self.link = Link { carrier, changes: self.link.changes + 1, ..self.link };
        let actions = self.watcher.link(self.link, self.now);
        self.did(actions);
    }

    fn rearm(&mut self) {
        let actions = self.watcher.rearm(self.now);
        self.did(actions);
    }

    fn state(&self) -> &State {
        &self.reports.last().expect("the first state is reported").1
    }

    /// Returns the watcher of the next process on the same box.
    fn restarted(&self, role: Role, link: Link) -> Self {
        Self::at(self.now, role, link, Start::Resume, self.stored.clone())
    }
}

fn secs(values: &[u64]) -> Vec<Duration> {
    values.iter().copied().map(Duration::from_secs).collect()
}

#[test]
fn nothing_is_served_before_a_probe_of_ten_seconds() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(9.9);
    assert_eq!(bench.reports, [(Duration::ZERO, State::Held(Hold::Probing))]);
    assert_eq!(bench.sent, secs(&[0, 2, 4, 8]));
    bench.pass(0.1);
    assert_eq!(bench.reports[1..], [(Duration::from_secs(10), State::Serving)]);
}

#[test]
fn probes_go_on_each_minute_and_then_every_ten() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(3600.0);
    let minutes = (0..=10).map(|n| n * 60).chain((1..=5).map(|n| 600 + n * 600));
    let expected: Vec<u64> =
        minutes.flat_map(|start| [start, start + 2, start + 4, start + 8]).collect();
    let sent: Vec<u64> = bench.sent.iter().map(Duration::as_secs).collect();
    assert_eq!(sent, expected.into_iter().filter(|at| *at <= 3600).collect::<Vec<_>>());
    assert_eq!(bench.reports.len(), 2);
}

#[test]
fn a_server_that_answers_the_probe_is_never_served_beside() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(4.0);
    bench.receive(&Packet::offer());
    let State::Stopped(foreign) = bench.state().clone() else { panic!("{}", bench.state()) };
    assert_eq!(
        foreign.to_string(),
        "192.168.1.1 (00:1b:21:01:02:03) on eth1, offering 192.168.1.100"
    );
    assert_eq!(foreign.when, bench.now.wall);
    bench.pass(86_400.0);
    assert_eq!((bench.sent.len(), bench.reports.len()), (3, 2), "it waits for a person");
}

#[test]
fn a_server_that_appears_stops_leases_at_once_and_a_person_arms_again() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(100.0);
    bench.receive(&Packet::offer());
    assert_eq!(bench.state().permit(), Permit::Boots);
    assert!(matches!(bench.stored, Some(Record::Stopped(_))));
    bench.pass(100.0);
    let probes = bench.sent.len();
    bench.rearm();
    assert_eq!(*bench.state(), State::Held(Hold::Probing));
    assert_eq!(bench.stored, None, "a restart in the middle of the probe starts with a probe");
    bench.pass(10.0);
    assert_eq!(*bench.state(), State::Serving);
    assert_eq!(bench.sent.len(), probes + 4);
    bench.rearm();
    assert_eq!(*bench.state(), State::Serving, "armed already");
}

#[test]
fn the_word_of_a_client_holds_leases_for_one_probe_and_stops_none() {
    let mut bench = Bench::new(Role::Leases);
    bench.receive(&Packet::request());
    assert_eq!(*bench.state(), State::Held(Hold::Probing), "it is looked for already");
    bench.pass(17.0);
    assert_eq!(*bench.state(), State::Serving);
    bench.receive(&Packet::request());
    assert!(matches!(bench.state(), State::Checking(_)), "{}", bench.state());
    assert_eq!(bench.state().permit(), Permit::Boots);
    assert_eq!(bench.stored, None, "a restart in the middle of the check starts with a probe");
    bench.pass(9.9);
    bench.receive(&Packet::request());
    bench.pass(0.1);
    assert_eq!(*bench.state(), State::Serving, "no server answered");
    assert!(matches!(bench.stored, Some(Record::Clean { .. })));
    // A client that repeats the REQUEST suspends leases for one probe each minute, and no longer.
    let reports = bench.reports.len();
    for _ in 0..600 {
        bench.receive(&Packet::request());
        bench.pass(1.0);
    }
    let held = bench.reports[reports..].iter();
    let held = held.filter(|(_, state)| matches!(state, State::Checking(_))).count();
    assert_eq!(held, 10);
}

#[test]
fn a_server_that_a_client_named_and_that_answers_stops_leases() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(17.0);
    let probes = bench.sent.len();
    bench.receive(&Packet::request());
    bench.pass(3.0);
    assert_eq!(bench.sent.len(), probes + 2, "a probe begins at once");
    bench.receive(&Packet::offer());
    assert!(matches!(bench.state(), State::Stopped(_)), "{}", bench.state());
    assert!(matches!(bench.stored, Some(Record::Stopped(_))));
}

#[test]
fn a_cable_that_was_out_makes_the_network_unknown() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(20.0);
    bench.carrier(false);
    bench.pass(2.0);
    assert_eq!(*bench.state(), State::Held(Hold::NoCarrier), "held before it is back");
    bench.pass(60.0);
    assert_eq!(bench.sent.len(), 4, "nothing is sent without a carrier");
    bench.carrier(true);
    assert_eq!(*bench.state(), State::Held(Hold::Probing));
    bench.pass(9.9);
    assert_eq!(*bench.state(), State::Held(Hold::Probing));
    bench.pass(0.1);
    assert_eq!(*bench.state(), State::Serving);
}

#[test]
fn a_blink_of_the_link_changes_nothing_but_voids_a_probe() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(5.0);
    bench.carrier(false);
    bench.pass(0.5);
    bench.carrier(true);
    bench.pass(4.5);
    assert_eq!(*bench.state(), State::Held(Hold::Probing), "the first probe proves nothing");
    bench.pass(10.0);
    assert_eq!(*bench.state(), State::Serving);
    bench.carrier(false);
    bench.pass(0.9);
    bench.carrier(true);
    assert_eq!(*bench.state(), State::Serving);
    bench.pass(1.0);
    // The loss is reported late, together with the return: no tick occurred in between.
    bench.carrier(false);
    bench.advance(Duration::from_secs(5));
    bench.carrier(true);
    assert_eq!(*bench.state(), State::Held(Hold::Probing));
}

#[test]
fn a_probe_that_was_not_sent_proves_nothing() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(3.0);
    bench.watcher.unsent();
    bench.pass(16.9);
    assert_eq!(*bench.state(), State::Held(Hold::Probing));
    bench.pass(0.1);
    assert_eq!(*bench.state(), State::Serving);
}

#[test]
fn arming_without_a_cable_waits_for_it() {
    let mut bench = Bench::new(Role::Leases);
    bench.receive(&Packet::offer());
    bench.carrier(false);
    bench.pass(60.0);
    bench.rearm();
    assert_eq!(*bench.state(), State::Held(Hold::NoCarrier));
    bench.carrier(true);
    bench.pass(10.0);
    assert_eq!(*bench.state(), State::Serving);
}

#[test]
fn a_restart_serves_on_where_nobody_pulled_the_cable() {
    let mut bench = Bench::new(Role::Leases);
    bench.pass(30.0);
    let mut next = bench.restarted(Role::Leases, UP);
    assert_eq!(next.reports, [(Duration::ZERO, State::Serving)]);
    next.pass(10.0);
    assert_eq!(next.sent, secs(&[0, 2, 4, 8]), "a probe runs beside");
    let held = |bench: &Bench, link| *bench.restarted(Role::Leases, link).state() != State::Serving;
    assert!(held(&bench, Link { changes: 4, ..UP }), "the cable was out");
    assert!(held(&bench, Link { index: 8, ..UP }), "another interface of that name");
    assert!(held(&bench, Link { carrier: false, ..UP }));
    let armed = Bench::at(bench.now, Role::Leases, UP, Start::Arm, bench.stored.clone());
    assert_eq!(*armed.state(), State::Held(Hold::Probing), "a person arms: probed first");
    bench.advance(Duration::from_secs(600));
    assert!(held(&bench, UP), "too long ago");
}

#[test]
fn a_stop_outlives_a_restart() {
    let mut bench = Bench::new(Role::Leases);
    bench.receive(&Packet::offer());
    let mut next = bench.restarted(Role::Leases, Link { changes: 9, ..UP });
    assert_eq!(next.state(), bench.state());
    next.pass(86_400.0);
    assert_eq!(next.restarted(Role::Leases, UP).state(), bench.state());
}

#[test]
fn a_proxy_tells_beside_whom_it_works() {
    let mut bench = Bench::new(Role::Proxy);
    assert_eq!(*bench.state(), State::Proxy(Neighbor::Unknown));
    assert_eq!(bench.state().permit(), Permit::Everything);
    bench.pass(10.0);
    assert_eq!(*bench.state(), State::Proxy(Neighbor::None));
    bench.pass(55.0);
    bench.receive(&Packet::offer());
    let State::Proxy(Neighbor::Server(foreign)) = bench.state() else { panic!() };
    assert_eq!(foreign.server.to_string(), "192.168.1.1");
    let reported = bench.reports.len();
    bench.receive(&Packet::offer());
    bench.pass(10.0);
    assert_eq!(bench.reports.len(), reported, "reported once");
    // The server is replaced: the next probe gets an answer only from the new server.
    bench.pass(50.0);
    let mut other = Packet::offer();
    other.message[248] = 2;
    bench.receive(&other);
    bench.pass(9.0);
    let State::Proxy(Neighbor::Server(foreign)) = bench.state() else { panic!() };
    assert_eq!(foreign.server.to_string(), "192.168.1.2");
    bench.pass(60.0);
    assert_eq!(*bench.state(), State::Proxy(Neighbor::None), "and it goes");
}
