//! Record of the last update, and the decision at a start. This module does not use the host.

use std::io;
use std::path::Path;

use durable_file::replace_private;
use jiff::Timestamp;
use platform::slots::{Environment, Slot};
use serde::{Deserialize, Serialize};

/// File with the record, in the state folder, which both slots share.
const FILE: &str = "update.json";
/// Reason shown for a failed update without a recorded reason.
const SILENT: &str = "it was started twice, but did not pass its checks";

/// Stage of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// The release is in its slot, and has not passed its checks yet.
    OnTrial,
    /// The release has passed its checks.
    Good,
    /// The release failed. The previous release runs again.
    Undone,
}

/// Record of the last update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Version of the new release.
    pub version: String,
    /// Slot of the new release: `a` or `b`.
    pub slot: char,
    /// Stage that the update reached.
    pub stage: Stage,
    /// Reason of the failure, as a phrase; empty while no reason is known.
    #[serde(default)]
    pub reason: String,
    /// Time at which this stage began.
    pub since: Timestamp,
}

impl Record {
    /// Creates the record of a release that is about to be put on trial.
    pub fn on_trial(version: String, slot: Slot, now: Timestamp) -> Self {
        let (slot, reason) = (slot.letter(), String::new());
        Self { version, slot, stage: Stage::OnTrial, reason, since: now }
    }

    /// Reads the record. Returns `None` if the file is missing.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(folder: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(folder.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => Ok(Some(serde_json::from_slice(&read?)?)),
        }
    }

    /// Writes the record. The record is on disk when the function returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, folder: &Path) -> io::Result<()> {
        replace_private(folder, FILE, &serde_json::to_vec(self)?)
    }
}

/// Evaluates a start, and returns the record to store. `last_reason` is the recorded reason why the
/// last run ended. `held` is the release in the slot on trial.
pub fn judged(
    loader: &Environment,
    running: Slot,
    record: Option<Record>,
    (last_reason, held): (Option<String>, Option<String>),
    now: Timestamp,
) -> Option<Record> {
    let Some(trial) = loader.trial() else {
        let mut record = record?;
        if record.stage == Stage::OnTrial {
            // The update was given up for another update, or its last write came late.
            if record.slot != running.letter() {
                return None;
            }
            record.stage = Stage::Good;
        }
        return Some(record);
    };
    let known = record.filter(|it| it.slot == trial.letter());
    let mut record =
        known.unwrap_or_else(|| Record::on_trial(held.unwrap_or_default(), trial, now));
    if let Some(last_reason) = last_reason {
        record.reason = last_reason;
    }
    if trial != running {
        if record.reason.is_empty() {
            SILENT.clone_into(&mut record.reason);
        }
        if record.stage != Stage::Undone {
            (record.stage, record.since) = (Stage::Undone, now);
        }
    }
    Some(record)
}

/// Marks the running slot good after the running system has passed its checks.
pub fn prove(loader: &mut Environment, running: Slot) {
    loader.mark_good(running);
    if loader.trial() == Some(running) {
        loader.end_trial();
    }
}

/// Marks the other slot bad after its update has failed, and prefers the running slot.
pub fn undo(loader: &mut Environment, running: Slot) {
    loader.mark_bad(running.other());
    loader.prefer(running);
    loader.end_trial();
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use platform::slots::{Environment, Slot};

    use super::{Record, SILENT, Stage, judged};

    fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn loader(trial: Option<Slot>) -> Environment {
        let mut loader = Environment::default();
        if let Some(slot) = trial {
            loader.put_on_trial(slot);
        }
        loader
    }

    fn record(slot: Slot, stage: Stage, reason: &str) -> Record {
        let record = Record::on_trial("2.0.0".to_owned(), slot, now());
        Record { stage, reason: reason.to_owned(), ..record }
    }

    #[test]
    fn every_start_has_one_meaning() {
        use Slot::{A, B};
        use Stage::{Good, OnTrial, Undone};
        let panic = Some("kernel panic");
        let stuck = "the API stuck 61 s";
        // Trial slot, running slot, old record, reported reason, new record; `None`: no record.
        let cases = [
            (None, A, None, None, None),
            (None, A, None, panic, None),
            (None, B, Some((B, OnTrial, "")), None, Some((Good, ""))),
            (None, A, Some((B, OnTrial, "")), None, None),
            (None, A, Some((B, Undone, stuck)), panic, Some((Undone, stuck))),
            (None, B, Some((B, Good, "")), None, Some((Good, ""))),
            (Some(B), B, Some((B, OnTrial, "")), None, Some((OnTrial, ""))),
            (Some(B), B, Some((B, OnTrial, "")), panic, Some((OnTrial, "kernel panic"))),
            (Some(B), B, None, None, Some((OnTrial, ""))),
            (Some(B), A, Some((B, OnTrial, "")), None, Some((Undone, SILENT))),
            (Some(B), A, Some((B, OnTrial, stuck)), None, Some((Undone, stuck))),
            (Some(B), A, Some((B, OnTrial, stuck)), panic, Some((Undone, "kernel panic"))),
            // The power was cut after the record was written, before the loader's variables were.
            (Some(B), A, Some((B, Undone, stuck)), None, Some((Undone, stuck))),
            // Record of an older update.
            (Some(B), A, Some((A, Good, "")), None, Some((Undone, SILENT))),
        ];
        for (trial, running, kept, last_reason, expected) in cases {
            let kept = kept.map(|(slot, stage, reason)| record(slot, stage, reason));
            let inputs = (last_reason.map(str::to_owned), Some("2.0.0".to_owned()));
            let case = format!("{trial:?} {running:?} {kept:?} {last_reason:?}");
            let found = judged(&loader(trial), running, kept, inputs, now());
            let found = found.as_ref().map(|it| (it.stage, it.reason.as_str()));
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn a_record_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Record::load(folder.path()).unwrap(), None);
        let record = record(Slot::B, Stage::Undone, "it hangs");
        record.keep(folder.path()).unwrap();
        assert_eq!(Record::load(folder.path()).unwrap(), Some(record));
        std::fs::write(folder.path().join("update.json"), "{").unwrap();
        assert!(Record::load(folder.path()).is_err());
    }
}
