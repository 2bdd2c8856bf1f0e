//! Backups that this box has stored in the folder, and the time of the next one.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Maximum number of stored backups that the box remembers.
pub const SENT_MAX: usize = 400;
/// Interval of backups without a time of day.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Backup that the server has stored, as the box remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentBackup {
    /// File name in the folder.
    pub name: String,
    /// Time at which the backup was made.
    pub at: Timestamp,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Backups that this box has stored in one folder, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SentBackups {
    /// URL of the folder.
    pub folder: String,
    /// Stored backups, oldest first.
    pub sent: Vec<SentBackup>,
}

impl SentBackups {
    /// Reads the list for a folder. A list of another folder, or a damaged list, counts as empty.
    pub fn read(bytes: &[u8], folder: &str) -> Self {
        let list: Self = serde_json::from_slice(bytes).unwrap_or_default();
        if list.folder == folder {
            return list;
        }
        Self { folder: folder.to_owned(), sent: Vec::new() }
    }

    /// Returns the list as the content of its file.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the newest backup.
    pub fn newest(&self) -> Option<&SentBackup> {
        self.sent.last()
    }

    /// Adds a backup that was stored. The oldest beyond [`SENT_MAX`] are forgotten, not deleted.
    pub fn add(&mut self, backup: SentBackup) {
        self.sent.retain(|it| it.name != backup.name);
        self.sent.push(backup);
        let over = self.sent.len().saturating_sub(SENT_MAX);
        self.sent.drain(..over);
    }

    /// Returns the names of the backups beyond the newest `keep`, oldest first.
    pub fn surplus(&self, keep: usize) -> Vec<String> {
        let over = self.sent.len().saturating_sub(keep.max(1));
        self.sent.iter().take(over).map(|it| it.name.clone()).collect()
    }

    /// Removes a backup that was deleted in the folder.
    pub fn forget(&mut self, name: &str) {
        self.sent.retain(|it| it.name != name);
    }
}

/// Returns true if the next backup is due at `now`: a day after `newest`, or at the time of day
/// `at` in `zone`. The first one is due at once.
pub fn is_due(
    newest: Option<Timestamp>,
    now: Timestamp,
    at: Option<Time>,
    zone: &TimeZone,
) -> bool {
    // A backup from the future was made with a wrong clock, and must not delay the next.
    let Some(newest) = newest.filter(|newest| *newest <= now) else { return true };
    let Some(at) = at else { return now.duration_since(newest) >= DAY };
    let today = now.to_zoned(zone.clone()).date().to_datetime(at);
    let Ok(today) = zone.to_ambiguous_zoned(today).compatible() else { return false };
    let due = match today.timestamp() {
        due if due <= now => due,
        due => due - DAY,
    };
    newest < due
}
