//! Watch for other servers, without sockets. Inputs are frames, link state and time; outputs are
//! frames to send, reports and records.

use std::time::{Duration, Instant, SystemTime};

use super::carrier::Link;
use super::evidence::{OwnServers, Sighting, sighting};
use super::probe::{Probe, ProbeSender};
use super::record::{Record, Situation};
use super::state::{Event, Foreign, Hold, Neighbor, State};
use super::{Role, Start};

/// Duration of a carrier loss after which the cable may lead to another network: 2 s, less the
/// second by which the kernel may report late (linkwatch batches the events of one second).
const CARRIER_LOSS: Duration = Duration::from_secs(1);
/// Minimum time between two suspensions of the leases because of a client's REQUEST. So forged
/// REQUESTs can suspend leases for a sixth of the time at most.
const CHECK_PERIOD: Duration = Duration::from_secs(60);
/// Interval of probes during the first 600 s after the state was reached, when a mistake is likely.
const PERIOD_FIRST: Duration = Duration::from_secs(60);
const FIRST: Duration = Duration::from_secs(600);
const PERIOD: Duration = Duration::from_secs(600);

/// Action that the caller must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Report the state to all receivers, the DHCP server first.
    Report(State),
    /// Send a frame. If that fails, the caller calls [`Watcher::unsent`].
    Send(Vec<u8>),
    /// Replace the record for the next start; `None` removes it.
    StoreRecord(Option<Record>),
}

/// Current time of both clocks: `at` for timers, `wall` for people and for the next start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub at: Instant,
    pub wall: SystemTime,
}

/// Interface of a watch, its role, and data for its probes.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub interface: String,
    pub role: Role,
    pub own: OwnServers,
    pub sender: ProbeSender,
    /// Transaction id before the first probe; each probe adds 1.
    pub xid: u32,
    pub boot_id: String,
}

#[derive(Debug)]
pub(crate) struct Watcher {
    subject: Subject,
    state: State,
    link: Link,
    /// Time of a carrier loss shorter than [`CARRIER_LOSS`] so far; `None` if there is none.
    lost: Option<Instant>,
    probe: Option<Probe>,
    /// Time of the next probe, while there is a carrier.
    next_probe: Instant,
    /// Earliest time at which a client's REQUEST can suspend leases again.
    next_check: Instant,
    /// Time of the last change to the desired state or to probing; sets the interval of probes.
    settled: Instant,
    xid: u32,
}

impl Watcher {
    /// Starts a watch. `record` was stored by the last watch, and is used with [`Start::Resume`]
    /// only.
    pub fn new(
        subject: Subject,
        link: Link,
        start: Start,
        record: Option<Record>,
        now: Now,
    ) -> (Self, Vec<Action>) {
        let record = record.filter(|_| start == Start::Resume);
        let mut stored = None;
        let state = match (subject.role, record) {
            (Role::Proxy, _) => State::Proxy(Neighbor::Unknown),
            (Role::Leases, Some(Record::Stopped(mut foreign))) => {
                foreign.interface.clone_from(&subject.interface);
                stored = Some(Record::Stopped(foreign.clone()));
                State::Stopped(foreign)
            }
            (Role::Leases, _) if !link.carrier => State::Held(Hold::NoCarrier),
            (Role::Leases, Some(Record::Clean { situation, at }))
                if situation == Situation::of(&subject.boot_id, link)
                    && Record::is_recent(at, now.wall) =>
            {
                stored = Some(Record::Clean { situation, at });
                State::Serving
            }
            (Role::Leases, _) => State::Held(Hold::Probing),
        };
        let watcher = Self {
            xid: subject.xid,
            subject,
            state: state.clone(),
            link,
            lost: None,
            probe: None,
            next_probe: now.at,
            next_check: now.at,
            settled: now.at,
        };
        (watcher, vec![Action::Report(state), Action::StoreRecord(stored)])
    }

    /// Processes one received frame.
    pub fn frame(&mut self, frame: &[u8], now: Now) -> Vec<Action> {
        let Some(sighting) = sighting(frame, &self.subject.own) else { return Vec::new() };
        let foreign = self.foreign(sighting, now);
        let is_named = sighting.mac.is_none() && self.subject.role == Role::Leases;
        let mut actions = Vec::new();
        if is_named {
            if self.state != State::Serving || now.at >= self.next_check {
                self.apply(Event::Named(foreign), now, &mut actions);
            }
            return actions;
        }
        if let Some(probe) = &mut self.probe {
            probe.note(sighting);
        }
        self.apply(Event::Received(foreign), now, &mut actions);
        actions
    }

    /// Processes a new link state of the interface.
    pub fn link(&mut self, link: Link, now: Now) -> Vec<Action> {
        let mut actions = Vec::new();
        let before = std::mem::replace(&mut self.link, link);
        if before.changes != link.changes || before.carrier != link.carrier {
            // The link changed, so the requests of a probe may not have reached other servers.
            if let Some(probe) = &mut self.probe {
                probe.void = true;
            }
        }
        match (before.carrier, link.carrier) {
            (true, false) => self.lost = Some(now.at),
            (false, true) => {
                self.unplugged_by(now, &mut actions);
                if self.lost.take().is_none() {
                    self.apply(Event::Plugged, now, &mut actions);
                }
            }
            _ => {}
        }
        actions
    }

    /// Processes a person's request to resume the interface.
    pub fn rearm(&mut self, now: Now) -> Vec<Action> {
        let mut actions = Vec::new();
        self.apply(Event::Rearm, now, &mut actions);
        if !self.link.carrier && self.lost.is_none() {
            self.apply(Event::Unplugged, now, &mut actions);
        }
        actions
    }

    /// Marks the probe as void, because a frame could not be sent.
    pub fn unsent(&mut self) {
        if let Some(probe) = &mut self.probe {
            probe.void = true;
        }
    }

    /// Processes the passage of time: carrier loss, end of a probe, next probe, next DISCOVER.
    pub fn tick(&mut self, now: Now) -> Vec<Action> {
        let mut actions = Vec::new();
        self.unplugged_by(now, &mut actions);
        if self.probe.as_ref().is_some_and(|probe| probe.is_over(now.at)) {
            self.conclude(now, &mut actions);
        }
        if self.may_probe() && self.probe.is_none() && now.at >= self.next_probe {
            self.xid = self.xid.wrapping_add(1);
            self.probe = Some(Probe::new(now.at, self.xid));
        }
        let due = self.probe.as_mut().and_then(|probe| Some((probe.xid, probe.due(now.at)?)));
        if let Some((xid, secs)) = due {
            actions.push(Action::Send(self.subject.sender.discover(xid, secs)));
        }
        actions
    }

    /// Returns the time of the next [`Self::tick`] without other events; `None`: no timer runs.
    pub fn deadline(&self) -> Option<Instant> {
        let loss = self.lost.map(|lost| lost + CARRIER_LOSS);
        let probe = self.probe.as_ref().map(Probe::deadline);
        let next = (self.may_probe() && self.probe.is_none()).then_some(self.next_probe);
        [loss, probe, next].into_iter().flatten().min()
    }

    /// Returns true if the link is up and the state is not [`State::Stopped`] (needs no probe).
    fn may_probe(&self) -> bool {
        self.link.carrier && !matches!(self.state, State::Stopped(_))
    }

    fn unplugged_by(&mut self, now: Now, actions: &mut Vec<Action>) {
        if self.lost.is_some_and(|lost| now.at >= lost + CARRIER_LOSS) {
            self.lost = None;
            self.probe = None;
            self.apply(Event::Unplugged, now, actions);
        }
    }

    /// Processes the end of a probe.
    fn conclude(&mut self, now: Now, actions: &mut Vec<Action>) {
        let Some(probe) = self.probe.take() else { return };
        if probe.void {
            self.next_probe = now.at;
            return;
        }
        let pause = if now.at < self.settled + FIRST { PERIOD_FIRST } else { PERIOD };
        self.next_probe = (probe.started + pause).max(now.at);
        let known = match &self.state {
            State::Proxy(Neighbor::Server(foreign)) => Some(foreign.server),
            _ => None,
        };
        let answers = probe.answers();
        if answers.iter().all(|sighting| known.is_some_and(|known| known != sighting.server)) {
            self.apply(Event::ProbeClean, now, actions);
            if self.state == State::Serving {
                let situation = Situation::of(&self.subject.boot_id, self.link);
                actions.push(Action::StoreRecord(Some(Record::Clean { situation, at: now.wall })));
            }
        }
        if let Some(first) = answers.first() {
            self.apply(Event::Received(self.foreign(*first, now)), now, actions);
        }
    }

    fn foreign(&self, sighting: Sighting, now: Now) -> Foreign {
        let Sighting { server, mac, offered } = sighting;
        let interface = self.subject.interface.clone();
        Foreign { server, mac, interface, offered, when: now.wall }
    }

    fn apply(&mut self, event: Event, now: Now, actions: &mut Vec<Action>) {
        let before = self.state.clone();
        let after = std::mem::take(&mut self.state).next(event);
        self.state = after.clone();
        if before == after {
            return;
        }
        actions.push(Action::Report(after.clone()));
        match after {
            State::Stopped(foreign) => {
                self.probe = None;
                actions.push(Action::StoreRecord(Some(Record::Stopped(foreign))));
            }
            State::Checking(_) => {
                // A probe in progress may have sent its requests before that server started.
                self.probe = None;
                (self.next_probe, self.next_check) = (now.at, now.at + CHECK_PERIOD);
                // A restart in the middle of the check starts with a probe.
                actions.push(Action::StoreRecord(None));
            }
            State::Held(Hold::Probing) | State::Proxy(Neighbor::Unknown) => {
                self.probe = None;
                (self.next_probe, self.settled) = (now.at, now.at);
                if matches!(before, State::Stopped(_)) {
                    actions.push(Action::StoreRecord(None));
                }
            }
            State::Serving => self.settled = now.at,
            State::Held(_) | State::Proxy(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
