//! Counter of restarts after a hang, a crash or a kernel panic. Too many restarts in a row start
//! the box in safe mode, with the reason (WD-4).
//!
//! Restarts are counted for each slot, because the boot loader itself leaves a slot that never
//! worked. The count does not need a clock, which a machine may not have. Restarts are in a row if
//! no run between them lasted an hour.

use std::path::Path;
use std::time::Duration;

use super::STATE;
use crate::error::one_line;
use crate::slots::Slot;

/// File with the counters, on the state volume.
const FILE: &str = "falls";
/// Maximum size of the counter file in bytes.
const BYTES_MAX: u64 = 4096;
/// Maximum length of a reason in bytes. The file then fits into one sector, which can be
/// overwritten on a full disk.
const WHY_MAX: usize = 400;
/// Number of restarts after which the system of a slot starts in safe mode.
pub(super) const RESTARTS_MAX: u32 = 3;
/// Length of a run after which the counters are reset: one hour.
pub(super) const STEADY: Duration = Duration::from_secs(3600);

/// Counters of restarts, one for each slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrashCounter {
    a: u32,
    b: u32,
    /// Slot of the last start.
    ran: Option<Slot>,
    /// Reason of the last counted restart.
    why: String,
}

impl CrashCounter {
    /// Counts the start of `slot`. `ended` is the reason if the previous run ended badly, and
    /// counts for the slot of that run. Returns the new counters, and a reason if safe mode is due.
    pub fn started(mut self, slot: Slot, ended: Option<&str>) -> (Self, Option<String>) {
        if let Some(why) = ended {
            let count = self.count(self.ran.unwrap_or(slot));
            *count = count.saturating_add(1);
            why.clone_into(&mut self.why);
        }
        self.ran = Some(slot);
        let count = *self.count(slot);
        let too_often = (count >= RESTARTS_MAX).then(|| {
            let why = if self.why.is_empty() { "cause unknown" } else { &self.why };
            format!("it restarted itself {count} times in a row, the last time: {why}")
        });
        (self, too_often)
    }

    /// Returns zero counters after an orderly shutdown or a run of [`STEADY`]. Keeps the last slot.
    fn cleared(self) -> Self {
        Self { ran: self.ran, ..Self::default() }
    }

    fn count(&mut self, slot: Slot) -> &mut u32 {
        match slot {
            Slot::A => &mut self.a,
            Slot::B => &mut self.b,
        }
    }

    fn text(&self) -> String {
        let ran = self.ran.map_or('-', Slot::letter);
        let why = one_line(&self.why);
        let why = &why[..why.floor_char_boundary(WHY_MAX)];
        format!("{} {} {ran} {why}\n", self.a, self.b)
    }

    /// Parses the stored counters. Invalid text gives zero counters.
    fn parse(text: &str) -> Self {
        let read = || {
            let mut words = text.trim_end_matches('\n').splitn(4, ' ');
            let (a, b) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let ran = match words.next()? {
                "a" => Some(Slot::A),
                "b" => Some(Slot::B),
                _ => None,
            };
            Some(Self { a, b, ran, why: words.next().unwrap_or_default().to_owned() })
        };
        read().unwrap_or_default()
    }
}

fn load(state: &Path) -> CrashCounter {
    let kept = durable_file::read(&state.join(FILE), BYTES_MAX).unwrap_or_else(|error| {
        eprintln!("tinbox: cannot read how often the box restarted itself: {error}");
        None
    });
    kept.map(|text| CrashCounter::parse(&String::from_utf8_lossy(&text))).unwrap_or_default()
}

fn keep(state: &Path, crashes: &CrashCounter) {
    if let Err(error) = durable_file::replace(state, FILE, crashes.text().as_bytes()) {
        eprintln!("tinbox: cannot save how often the box restarted itself: {error}");
    }
}

/// Counts this start. Returns the reason for safe mode if there were too many restarts.
pub(super) fn count(slot: Slot, ended: Option<&str>) -> Option<String> {
    let state = Path::new(STATE);
    let before = load(state);
    let (now, too_often) = before.clone().started(slot, ended);
    if now != before {
        keep(state, &now);
    }
    too_often
}

/// Clears the stored counters of both slots.
pub(super) fn clear() {
    let state = Path::new(STATE);
    let before = load(state);
    let now = before.clone().cleared();
    if now != before {
        keep(state, &now);
    }
}

#[cfg(test)]
mod tests {
    use super::{CrashCounter, keep, load};
    use crate::slots::Slot::{self, A, B};

    /// Runs a list of starts, each with the reason of the previous end. Returns the reason for safe
    /// mode at each start.
    fn starts(list: &[(Slot, Option<&str>)]) -> (CrashCounter, Vec<Option<String>>) {
        let mut crashes = CrashCounter::default();
        let mut reasons = Vec::new();
        for (slot, ended) in list {
            let why;
            (crashes, why) = crashes.started(*slot, *ended);
            crashes = CrashCounter::parse(&crashes.text());
            reasons.push(why);
        }
        (crashes, reasons)
    }

    #[test]
    fn three_bad_ends_in_a_row_are_too_many() {
        let hang = Some("the supervisor hangs: the API stuck 61 s");
        let (crashes, reasons) = starts(&[(A, None), (A, hang), (A, hang), (A, hang), (A, None)]);
        let why = "it restarted itself 3 times in a row, the last time: the supervisor hangs: the \
                   API stuck 61 s";
        assert_eq!(reasons[..3], [None, None, None]);
        // A power cut in safe mode does not end safe mode, and keeps the reason.
        assert_eq!(reasons[3..], [Some(why.to_owned()), Some(why.to_owned())]);
        let (_, after) = crashes.cleared().started(A, None);
        assert_eq!(after, None, "who restarts it in order wants to see it work");
    }

    #[test]
    fn power_cuts_count_for_nothing() {
        let (_, reasons) = starts(&[(A, None); 20]);
        assert_eq!(reasons, vec![None; 20]);
    }

    #[test]
    fn the_other_slot_has_its_own_chances_and_they_end() {
        let bad = Some("kernel panic");
        let list =
            [(A, None), (A, bad), (A, bad), (B, bad), (B, bad), (B, bad), (A, bad), (B, None)];
        let (_, reasons) = starts(&list);
        let entered: Vec<bool> = reasons.iter().map(Option::is_some).collect();
        assert_eq!(entered, [false, false, false, false, false, false, true, true]);
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path()), CrashCounter::default());
        let (crashes, _) = CrashCounter::default().started(B, Some("two\nlines"));
        keep(folder.path(), &crashes);
        let read = load(folder.path());
        assert_eq!((read.b, read.ran, read.why.as_str()), (1, Some(B), "two lines"));
        std::fs::write(folder.path().join("falls"), b"\xff what").unwrap();
        assert_eq!(load(folder.path()), CrashCounter::default());
    }
}
