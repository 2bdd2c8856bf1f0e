//! Simulation of an update on a virtual clock, with power cuts at every step. The simulation runs
//! from the boot loader's choice of a slot until the new system has passed its checks or is undone.
//!
//! Real parts: the reaction of process 1 to a missing heartbeat ([`SupervisorMonitor`]) and to
//! exits ([`Restarts`], [`CrashCounter`]). The reaction of the supervisor to failed checks
//! ([`Health`]) and to the loader's variables ([`record`]) is real too. Simulated parts: GRUB (see
//! [`grub`]), the systems, and the disk. A power cut leaves the disk before or after each write.
//! `tests/firmware` boots real systems for the rest.

mod grub;
mod tests;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use platform::heartbeat::{EVERY, HeartbeatMessage};
use platform::init::{CrashCounter, Next, Restarts, SupervisorMonitor};
use platform::slots::{Environment, Slot};

use super::record::{self, Record, Stage, judged};
use crate::update::proving::{Health, LOOK, Verdict};

/// Duration of firmware, boot loader and kernel in seconds.
const BOOT: u64 = 10;
/// Timeout in seconds after which the watchdog restarts a frozen machine.
const WATCHDOG: u64 = 60;
/// Maximum length of a simulated run in seconds.
const LONG: u64 = 3000;
/// Number of starts after which the simulated box counts as restarting forever.
const STARTS_MAX: usize = 40;
const PANIC: &str = "Attempted to kill init!";
const LACK: &str = "eth1 is missing";
const AGAIN: &str = "the supervisor ended repeatedly";
const SILENT: &str = "it was started twice, but did not pass its checks";

/// Behavior of a slot's system. Numbers are seconds after the supervisor's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    /// All checks pass from this time on.
    Works(u64),
    /// The kernel panics at this time.
    Panics(u64),
    /// The machine freezes at this time, including process 1.
    Freezes(u64),
    /// The supervisor exits at this time, in every run.
    Ends(u64),
    /// The supervisor exits at this time in every run, except in safe mode.
    EndsUnlessSafe(u64),
    /// The supervisor hangs from this time on.
    Hangs(u64),
    /// The supervisor reports that its API is stuck.
    Mute,
    /// A NIC is always missing.
    Lacks,
}
use System::{Ends, EndsUnlessSafe, Freezes, Hangs, Lacks, Mute, Panics, Works};

/// Error that stands for a power cut of the simulated box.
#[derive(Debug)]
struct Cut;

/// Reason why a simulated run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The slot was marked good.
    Good,
    /// Restart of the whole machine.
    Restart,
    /// The supervisor exited, and may be started again.
    Ended,
    /// No event ended the run within [`LONG`].
    Open,
}

/// Simulated box, with the contents of its disk.
struct Life {
    systems: [System; 2],
    grubenv: Vec<u8>,
    record: Option<Record>,
    /// Reason why the last run ended: the note of process 1, or the kernel's record of a panic.
    note: Option<String>,
    crashes: CrashCounter,
    epoch: Instant,
    now: Duration,
    /// Number of steps so far, and the steps at which the power is cut.
    steps: u64,
    cuts: Vec<u64>,
    /// Started slots, each with the start time in seconds.
    starts: Vec<(char, u64)>,
    safe: Option<String>,
}

impl Life {
    /// Creates a box with these systems in its slots A and B. `decide` sets the variables on its
    /// boot volume.
    fn new(systems: [System; 2], decide: impl FnOnce(&mut Environment)) -> Self {
        let mut loader = Environment::default();
        loader.prefer(Slot::A);
        loader.mark_good(Slot::A);
        loader.mark_good(Slot::B);
        decide(&mut loader);
        let grubenv = loader.block().unwrap().to_vec();
        Self {
            systems,
            grubenv,
            record: None,
            note: None,
            crashes: CrashCounter::default(),
            epoch: Instant::now(),
            now: Duration::ZERO,
            steps: 0,
            cuts: Vec::new(),
            starts: Vec::new(),
            safe: None,
        }
    }

    /// Creates a box that works in slot A and has just installed `system` in slot B.
    fn updated(system: System, cuts: impl IntoIterator<Item = u64>) -> Self {
        let mut life = Self::new([Works(20), system], |loader| loader.put_on_trial(Slot::B));
        life.record = Some(Record::on_trial("9.1.0".to_owned(), Slot::B, Timestamp::UNIX_EPOCH));
        life.cuts = cuts.into_iter().collect();
        life
    }

    /// Counts a step at which the power may be cut: each second, and before and after each write.
    fn step(&mut self) -> Result<(), Cut> {
        self.steps += 1;
        if self.cuts.contains(&self.steps) { Err(Cut) } else { Ok(()) }
    }

    fn wait(&mut self, seconds: u64) -> Result<(), Cut> {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.step()?;
        }
        Ok(())
    }

    fn instant(&self) -> Instant {
        self.epoch + self.now
    }

    fn loader(&self) -> Environment {
        Environment::parse(&self.grubenv).unwrap()
    }

    fn change(&mut self, decide: impl FnOnce(&mut Environment)) -> Result<(), Cut> {
        self.step()?;
        let mut loader = self.loader();
        decide(&mut loader);
        self.grubenv = loader.block().unwrap().to_vec();
        self.step()
    }

    fn keep(&mut self, record: Record) -> Result<(), Cut> {
        self.step()?;
        self.record = Some(record);
        self.step()
    }

    /// Starts the box again and again until a slot is good, or a run has no event.
    fn live(&mut self) -> End {
        while self.starts.len() < STARTS_MAX {
            match self.start() {
                Ok(End::Restart) | Err(Cut) => {}
                Ok(end) => return end,
            }
        }
        End::Restart
    }

    fn start(&mut self) -> Result<End, Cut> {
        self.step()?;
        let slot = grub::start(&mut self.grubenv);
        self.starts.push((slot.letter(), self.now.as_secs()));
        self.wait(BOOT)?;
        let reason = self.note.take();
        self.step()?;
        (self.crashes, self.safe) = self.crashes.clone().started(slot, reason.as_deref());
        self.step()?;
        let mut restarts = Restarts::default();
        loop {
            let end = self.supervise(slot, reason.as_deref())?;
            if end != End::Ended {
                return Ok(end);
            }
            match restarts.ended(self.instant()) {
                Next::StartAfter(wait) => self.wait(wait.as_secs().max(1))?,
                Next::Restart => return self.restart(format!("{AGAIN}: exit status 101")),
            }
        }
    }

    /// Restarts the machine, and records the reason.
    fn restart(&mut self, why: String) -> Result<End, Cut> {
        self.step()?;
        self.note = Some(why);
        self.step()?;
        Ok(End::Restart)
    }

    /// Simulates one run of the supervisor. `reason` is the reason why the previous run ended.
    fn supervise(&mut self, slot: Slot, reason: Option<&str>) -> Result<End, Cut> {
        self.judge(slot, reason)?;
        let on_trial = self.record.as_ref().is_some_and(|record| record.stage == Stage::OnTrial);
        let proves = self.safe.is_none() || !on_trial;
        let system = self.systems[usize::from(slot == Slot::B)];
        let (mut monitor, mut health) =
            (SupervisorMonitor::new(self.instant()), Health::new(self.now));
        for second in 0..LONG {
            if self.instant() >= monitor.deadline() {
                return self.restart(monitor.sentence(self.instant()));
            }
            match system {
                Panics(at) if second == at => return self.restart(PANIC.to_owned()),
                Freezes(at) if second == at => return self.wait(WATCHDOG).map(|()| End::Restart),
                Ends(at) if second == at => return Ok(End::Ended),
                EndsUnlessSafe(at) if second == at && self.safe.is_none() => {
                    return Ok(End::Ended);
                }
                _ => {}
            }
            let turns = !matches!(system, Hangs(at) if second >= at);
            if turns && second % EVERY.as_secs() == 0 {
                monitor.receive(system.message(second), self.instant());
            }
            if turns && proves && second % LOOK.as_secs() == 0 {
                let lacks = system.lacks(second);
                match health.look(lacks.is_none(), on_trial, self.now) {
                    Verdict::Open => {}
                    Verdict::Works => return self.prove(slot).map(|()| End::Good),
                    Verdict::Fails => return self.give_up(lacks.unwrap_or_default()),
                }
            }
            self.wait(1)?;
        }
        Ok(End::Open)
    }

    /// Performs the writes of `Updates::judge`: the record first, then the loader's variables.
    fn judge(&mut self, running: Slot, reason: Option<&str>) -> Result<(), Cut> {
        let loader = self.loader();
        let facts = (reason.map(str::to_owned), Some("9.1.0".to_owned()));
        let found = judged(&loader, running, self.record.clone(), facts, Timestamp::UNIX_EPOCH);
        if let Some(record) = found.filter(|found| Some(found) != self.record.as_ref()) {
            self.keep(record)?;
        }
        if loader.trial().is_some_and(|slot| slot != running) {
            self.change(|loader| record::undo(loader, running))?;
        }
        Ok(())
    }

    /// Performs the writes of `Updates::proved`: the loader's variables first, then the record.
    fn prove(&mut self, running: Slot) -> Result<(), Cut> {
        self.change(|loader| record::prove(loader, running))?;
        match self.record.clone().filter(|record| record.stage == Stage::OnTrial) {
            Some(record) => self.keep(Record { stage: Stage::Good, ..record }),
            None => Ok(()),
        }
    }

    /// Performs the writes of `Updates::give_up`. The restart is orderly: no reason is recorded.
    fn give_up(&mut self, reason: &str) -> Result<End, Cut> {
        if let Some(record) = self.record.clone() {
            self.keep(Record { reason: reason.to_owned(), ..record })?;
        }
        Ok(End::Restart)
    }

    fn order(&self) -> String {
        self.starts.iter().map(|(slot, _)| *slot).collect()
    }

    /// Returns the slot of the last start.
    fn last(&self) -> char {
        self.starts.last().unwrap().0
    }

    /// Returns the stage of the last update, and its reason.
    fn stage(&self) -> Option<(Stage, &str)> {
        self.record.as_ref().map(|record| (record.stage, record.reason.as_str()))
    }
}

impl System {
    /// Returns the heartbeat of the supervisor at `second`.
    fn message(self, second: u64) -> HeartbeatMessage {
        match self {
            Mute if second > 20 => {
                HeartbeatMessage::Stuck { what: "the API".to_owned(), seconds: second }
            }
            _ => HeartbeatMessage::Beat,
        }
    }

    /// Returns the failed check at `second`, or `None` if all checks pass.
    fn lacks(self, second: u64) -> Option<&'static str> {
        match self {
            Works(at) if second < at => Some(LACK),
            Lacks => Some(LACK),
            Mute => Some("the API does not answer"),
            _ => None,
        }
    }
}
