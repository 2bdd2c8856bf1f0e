//! State of the box itself in the status view: start, clock, system load, log.

mod traffic;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use lifecycle::firmware::time::TimeSync;
use lifecycle::settings::LiveSettings;
use ntp::ClockState;
use platform::confinement::State;
use platform::figures::{self, Work};
use status::source::{Filling, StatusSource};
use status::view::{Clock, Fault, Nic, StatusView, System, TimeState, Trouble};
use tokio::sync::watch;

use crate::journal::JOURNAL;
use crate::start::Start;
use traffic::Traffic;

/// Minimum interval of reading the system load, because CPU time has a resolution of 10 ms.
const EVERY: Duration = Duration::from_secs(2);
/// Name of the clock's source on a guest.
const HOST: &str = "the host";

/// Status source of the box's own state.
pub struct SystemSource {
    state: PathBuf,
    time: Option<watch::Receiver<TimeSync>>,
    trouble: Vec<String>,
    safe_mode: String,
    start: Arc<Start>,
    live: Option<watch::Receiver<LiveSettings>>,
    /// Rights of this process, as text. Later threads inherit the rights.
    confinement: String,
    looked: Mutex<LoadReading>,
}

/// Last reading of the system load.
#[derive(Default)]
struct LoadReading {
    at: Option<Instant>,
    work: Option<Work>,
    system: System,
    traffic: Traffic,
}

impl SystemSource {
    /// Creates the source. `time` and the zone in `live` are `None` unless the box controls its
    /// clock. `trouble` lists problems of the start, and `safe_mode` is the reason for safe mode.
    pub fn new(
        state: PathBuf,
        (time, live): (Option<watch::Receiver<TimeSync>>, Option<watch::Receiver<LiveSettings>>),
        (trouble, safe_mode): (Vec<String>, String),
        start: Arc<Start>,
    ) -> Self {
        let (confinement, looked) = (State::read().to_string(), Mutex::default());
        Self { state, time, trouble, safe_mode, start, live, confinement, looked }
    }

    fn clock(&self, now: Timestamp) -> Clock {
        let clock = match &self.time {
            Some(time) => clock(&time.borrow()),
            None => hosts_clock(figures::clock_is_kept()),
        };
        match &self.live {
            Some(live) => in_zone(clock, &live.borrow().zone, now),
            None => clock,
        }
    }

    /// Returns the system load, and the bytes per second that were sent to machines.
    fn figures(&self, nics: &[Nic]) -> (System, Vec<u64>) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.at.is_none_or(|at| at.elapsed() >= EVERY) {
            let work = figures::work();
            let percent = work.zip(looked.work).and_then(|(now, then)| now.percent_since(then));
            let memory = figures::memory();
            let disk = figures::volume(&self.state);
            looked.system = System {
                cpu_percent: percent.or(looked.system.cpu_percent),
                ram_used: memory.map_or(0, |it| it.used),
                ram_total: memory.map_or(0, |it| it.total),
                disk_used: disk.map_or(0, |it| it.used),
                disk_total: disk.map_or(0, |it| it.total),
                temperature: figures::temperature(),
                flash_life_percent: figures::flash_life(),
                ..System::default()
            };
            let racks = nics.iter().filter(|nic| nic.provisions());
            let sent = racks.filter_map(|nic| figures::sent(&nic.name)).sum();
            let now = Instant::now();
            looked.traffic.note(now, sent);
            (looked.at, looked.work) = (Some(now), work);
        }
        (looked.system.clone(), looked.traffic.samples())
    }
}

impl StatusSource for SystemSource {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        let slot = platform::init::slot().ok().flatten().unwrap_or_default();
        view.slot = slot.to_uppercase().into();
        view.safe_mode = self.safe_mode.as_str().into();
        view.without_state = self.time.is_some() && platform::init::without_state();
        view.clock = self.clock(view.now);
        view.boot = self.start.steps();
        let (system, traffic) = self.figures(&view.nics);
        // Fields of other sources stay: slots, keys, backups.
        let earlier = std::mem::take(&mut view.system);
        view.system = System {
            cpu_percent: system.cpu_percent,
            ram_used: system.ram_used,
            ram_total: system.ram_total,
            disk_used: system.disk_used,
            disk_total: system.disk_total,
            temperature: system.temperature,
            flash_life_percent: system.flash_life_percent,
            confinement: self.confinement.as_str().into(),
            ..earlier
        };
        view.boot_traffic = traffic;
        view.faults.extend(self.trouble.iter().map(|what| fault(what)));
        view.log = JOURNAL.lines();
        Box::pin(std::future::ready(()))
    }
}

fn fault(what: &str) -> Fault {
    let trouble = Trouble { what: what.into(), ..Trouble::default() };
    Fault { title: "START".into(), trouble, urgent: true, ..Fault::default() }
}

fn clock(known: &TimeSync) -> Clock {
    let state = match known.state {
        ClockState::Unset => TimeState::Unset,
        ClockState::Holdover(_) => TimeState::Holdover,
        ClockState::Synced(_) => TimeState::Synced,
    };
    Clock { state, source: known.source.as_str().into(), ..Clock::default() }
}

/// Returns the state of the host's clock. Without a report of a time service, the clock counts as
/// in holdover.
fn hosts_clock(is_kept: Option<bool>) -> Clock {
    let state = if is_kept == Some(true) { TimeState::Synced } else { TimeState::Holdover };
    Clock { state, source: HOST.into(), ..Clock::default() }
}

/// Adds to a clock the time zone in which people read times.
fn in_zone(clock: Clock, zone: &TimeZone, now: Timestamp) -> Clock {
    let info = zone.to_offset_info(now);
    Clock { utc_offset_seconds: info.offset().seconds(), zone: info.abbreviation().into(), ..clock }
}

#[cfg(test)]
mod tests {
    use config::zone;
    use status::view::{Clock, TimeState};

    use super::{hosts_clock, in_zone};

    #[test]
    fn people_read_times_in_their_own_zone() {
        let berlin = zone("Europe/Berlin").unwrap();
        for (now, offset, word) in
            [("2026-01-10T12:00:00Z", 3600, "CET"), ("2026-07-10T12:00:00Z", 7200, "CEST")]
        {
            let clock = in_zone(Clock::default(), &berlin, now.parse().unwrap());
            assert_eq!((clock.utc_offset_seconds, clock.zone.as_str()), (offset, word));
        }
    }

    #[test]
    fn a_hosts_clock_is_believed_as_far_as_its_kernel_does() {
        let cases = [
            (Some(true), TimeState::Synced),
            (Some(false), TimeState::Holdover),
            (None, TimeState::Holdover),
        ];
        for (input, state) in cases {
            assert_eq!(hosts_clock(input).state, state, "{input:?}");
        }
    }
}
