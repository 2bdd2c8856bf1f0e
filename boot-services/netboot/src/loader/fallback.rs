//! Learns from boot events which loader works on a machine.
//!
//! No iPXE build supports every NIC: `ipxe.efi` has its own drivers, `snponly.efi` uses the
//! firmware's. If a loader does not work, it is fetched completely and no event follows until the
//! firmware sends a new request. This module detects that case and selects the next loader of the
//! list. A loader that worked is remembered.
//!
//! The module is pure: an event and its time go in, a decision comes out. The state that must
//! survive a restart is one short text ([`LoaderState`]'s `Display` and `FromStr`); the caller
//! stores it.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Loaders for UEFI firmware on x86-64, in order of trial.
pub const EFI: &[&str] = &["ipxe.efi", "snponly.efi"];
/// Loaders for a BIOS, in order of trial: with the NIC's own ROM, then with iPXE's drivers.
pub const BIOS: &[&str] = &["undionly.kpxe", "ipxe.pxe"];

/// Time within which iPXE sends its first request after a complete fetch. It covers iPXE's start (2
/// s of prompt, 4 s of NIC search with some builds) and four DISCOVERs with growing delays.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Consecutive failures after which a loader that worked before is replaced. A person who switches
/// the machine off may cause a single failure.
const PROVEN_FAILURES: u8 = 3;

/// Boot event of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The firmware requested a boot file by DHCP.
    Requested,
    /// The firmware fetched this file completely.
    Fetched(&'a str),
    /// iPXE runs: its DHCP user class or a script request was received.
    Ipxe,
}

/// Result of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// No change; the caller has nothing to do.
    Nothing,
    /// The current loader works on this machine; the caller stores the state.
    Works,
    /// The next loader is used from now on; the caller stores the state and reports the change.
    Next {
        /// Loader that was fetched without a later sign of iPXE.
        from: &'static str,
        /// Loader to try next.
        to: &'static str,
    },
}

/// State of one machine's loaders, for one kind of firmware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    learned: LoaderState,
    /// Time of the first complete fetch of the current loader without a later sign of iPXE.
    fetched: Option<Instant>,
}

/// Persistent state: `snponly.efi works`, `ipxe.efi trying`, `ipxe.efi failed 2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderState {
    row: &'static [&'static str],
    index: usize,
    proven: bool,
    failures: u8,
}

impl Fallback {
    /// Creates the state of an unknown machine. `row` is the list of loaders in order of trial; the
    /// first to try is `first` if `row` contains it, else the first of `row`.
    pub fn new(row: &'static [&'static str], first: &str) -> Self {
        let index = row.iter().position(|loader| *loader == first).unwrap_or(0);
        LoaderState { row, index, proven: false, failures: 0 }.into()
    }

    /// Returns the loader to send in DHCP answers.
    pub fn loader(&self) -> &'static str {
        self.learned.loader()
    }

    /// Returns the state to store.
    pub fn learned(&self) -> LoaderState {
        self.learned
    }

    /// Processes an event that happened at `now`.
    pub fn next(&mut self, event: Event<'_>, now: Instant) -> Decision {
        match event {
            // Other files, such as a loader that an operator named, are not evidence.
            Event::Fetched(file) if file != self.loader() => Decision::Nothing,
            Event::Fetched(_) => {
                // A second fetch keeps the first time: some firmware tries each NIC or protocol in
                // turn.
                self.fetched.get_or_insert(now);
                Decision::Nothing
            }
            Event::Ipxe => {
                self.fetched = None;
                let known = self.learned.proven && self.learned.failures == 0;
                (self.learned.proven, self.learned.failures) = (true, 0);
                if known { Decision::Nothing } else { Decision::Works }
            }
            Event::Requested => match self.fetched {
                Some(at) if now.saturating_duration_since(at) >= START_TIMEOUT => {
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
        // The first loader follows the last one: the cause may have been a cable.
        learned.index = (learned.index + 1) % learned.row.len().max(1);
        (learned.proven, learned.failures) = (false, 0);
        Decision::Next { from, to: learned.loader() }
    }
}

impl From<LoaderState> for Fallback {
    fn from(learned: LoaderState) -> Self {
        Self { learned, fetched: None }
    }
}

impl LoaderState {
    fn loader(&self) -> &'static str {
        self.row.get(self.index).copied().unwrap_or_default()
    }
}

impl fmt::Display for LoaderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loader = self.loader();
        match (self.proven, self.failures) {
            (false, _) => write!(f, "{loader} trying"),
            (true, 0) => write!(f, "{loader} works"),
            (true, failures) => write!(f, "{loader} failed {failures}"),
        }
    }
}

/// Error: the text is not the `Display` form of a [`LoaderState`]; the caller treats the machine as
/// unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a loader and its state such as \"snponly.efi works\"")]
pub struct InvalidLoaderState;

impl FromStr for LoaderState {
    type Err = InvalidLoaderState;

    fn from_str(text: &str) -> Result<Self, InvalidLoaderState> {
        let mut words = text.split_ascii_whitespace();
        let loader = words.next().ok_or(InvalidLoaderState)?;
        let place = |row: &'static [&'static str]| {
            row.iter().position(|known| *known == loader).map(|index| (row, index))
        };
        let (row, index) = place(EFI).or_else(|| place(BIOS)).ok_or(InvalidLoaderState)?;
        let (proven, failures) = match (words.next(), words.next()) {
            (Some("trying"), None) => (false, 0),
            (Some("works"), None) => (true, 0),
            (Some("failed"), Some(count)) => (true, count.parse().map_err(|_| InvalidLoaderState)?),
            _ => return Err(InvalidLoaderState),
        };
        if words.next().is_some() || failures >= PROVEN_FAILURES {
            return Err(InvalidLoaderState);
        }
        Ok(Self { row, index, proven, failures })
    }
}

#[cfg(test)]
mod tests;
