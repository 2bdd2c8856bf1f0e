//! Which loader works on a machine, learned from how its boots go on.
//!
//! No iPXE build drives every card: `ipxe.efi` brings drivers of its own, `snponly.efi` uses the
//! firmware's. A loader that does not work is fetched whole and then nothing
//! more is heard of it, until the firmware asks again. That is what is watched for; the next loader
//! of the row is named then, and the one that worked is remembered.
//!
//! Pure: what happened goes in with its time, a decision comes out. What must outlive a restart is
//! one short word ([`Learned`]'s `Display` and `FromStr`), kept wherever the caller likes.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The row for UEFI firmware on x86-64.
pub const EFI: &[&str] = &["ipxe.efi", "snponly.efi"];
/// The row for a BIOS: through the card's own ROM, then with drivers of iPXE's own.
pub const BIOS: &[&str] = &["undionly.kpxe", "ipxe.pxe"];

/// A loader that was fetched whole is heard of again within this: its own start (2 s of prompt, 4 s
/// of looking for cards with some builds) and four DISCOVERs with their growing waits.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Failures in a row after which a loader that once worked is left: one may be a person who
/// switched the machine off.
const PROVEN_FAILURES: u8 = 3;

/// What was seen of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Its firmware asked what to load.
    Asked,
    /// It fetched the whole of this file.
    Fetched(&'a str),
    /// iPXE spoke: by its DHCP user class, or by asking for a script.
    Ipxe,
}

/// What follows from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing new.
    Nothing,
    /// This loader works here: worth keeping.
    Works,
    /// Name the next loader from now on: worth keeping and telling.
    Next {
        /// What did not work.
        from: &'static str,
        /// What to try.
        to: &'static str,
    },
}

/// What is known of one machine's loaders, for one kind of firmware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    learned: Learned,
    /// When the current loader was fetched, if nothing was heard of it since.
    fetched: Option<Instant>,
}

/// What is worth keeping: `snponly.efi works`, `ipxe.efi trying`, `ipxe.efi failed 2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learned {
    row: &'static [&'static str],
    index: usize,
    proven: bool,
    failures: u8,
}

impl Fallback {
    /// A machine of which nothing is known yet. It begins with `first` where that is in the row.
    pub fn new(row: &'static [&'static str], first: &str) -> Self {
        let index = row.iter().position(|loader| *loader == first).unwrap_or(0);
        Learned { row, index, proven: false, failures: 0 }.into()
    }

    /// The loader to name.
    pub fn loader(&self) -> &'static str {
        self.learned.loader()
    }

    /// What to keep.
    pub fn learned(&self) -> Learned {
        self.learned
    }

    /// Something happened at `now`.
    pub fn next(&mut self, event: Event<'_>, now: Instant) -> Decision {
        match event {
            // A fetch of something else, a loader an operator named for instance, tells nothing.
            Event::Fetched(file) if file != self.loader() => Decision::Nothing,
            Event::Fetched(_) => {
                // Fetched again at once: a firmware that tries each card or protocol in turn.
                self.fetched.get_or_insert(now);
                Decision::Nothing
            }
            Event::Ipxe => {
                self.fetched = None;
                let known = self.learned.proven && self.learned.failures == 0;
                (self.learned.proven, self.learned.failures) = (true, 0);
                if known { Decision::Nothing } else { Decision::Works }
            }
            Event::Asked => match self.fetched {
                Some(at) if now.saturating_duration_since(at) >= PATIENCE => {
                    self.fetched = None;
                    self.failed()
                }
                _ => Decision::Nothing,
            },
        }
    }

    fn failed(&mut self) -> Decision {
        let learned = &mut self.learned;
        learned.failures = learned.failures.saturating_add(1);
        if learned.proven && learned.failures < PROVEN_FAILURES {
            return Decision::Nothing;
        }
        let from = learned.loader();
        // Behind the last comes the first: the reason may have been a cable.
        learned.index = (learned.index + 1) % learned.row.len().max(1);
        (learned.proven, learned.failures) = (false, 0);
        Decision::Next { from, to: learned.loader() }
    }
}

impl From<Learned> for Fallback {
    fn from(learned: Learned) -> Self {
        Self { learned, fetched: None }
    }
}

impl Learned {
    fn loader(&self) -> &'static str {
        self.row.get(self.index).copied().unwrap_or_default()
    }
}

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loader = self.loader();
        match (self.proven, self.failures) {
            (false, _) => write!(f, "{loader} trying"),
            (true, 0) => write!(f, "{loader} works"),
            (true, failures) => write!(f, "{loader} failed {failures}"),
        }
    }
}

/// Not something that a [`Learned`] prints as; then nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a loader and how it does, like \"snponly.efi works\"")]
pub struct NotLearned;

impl FromStr for Learned {
    type Err = NotLearned;

    fn from_str(text: &str) -> Result<Self, NotLearned> {
        let mut words = text.split_ascii_whitespace();
        let loader = words.next().ok_or(NotLearned)?;
        let place = |row: &'static [&'static str]| {
            row.iter().position(|known| *known == loader).map(|index| (row, index))
        };
        let (row, index) = place(EFI).or_else(|| place(BIOS)).ok_or(NotLearned)?;
        let (proven, failures) = match (words.next(), words.next()) {
            (Some("trying"), None) => (false, 0),
            (Some("works"), None) => (true, 0),
            (Some("failed"), Some(count)) => (true, count.parse().map_err(|_| NotLearned)?),
            _ => return Err(NotLearned),
        };
        if words.next().is_some() || failures >= PROVEN_FAILURES {
            return Err(NotLearned);
        }
        Ok(Self { row, index, proven, failures })
    }
}

#[cfg(test)]
mod tests;
