//! Stored result of a watch for the next start of the program: one line of text.
//!
//! ```text
//! clean boot=8e4d… index=3 carrier-changes=2 at=1792394041
//! stopped server=192.0.2.1 mac=02:00:00:00:00:01 offered=192.0.2.77 at=1792394041
//! ```
//!
//! `mac` and `offered` may be missing. Times are Unix seconds (UTC). A line of another form is
//! ignored, which is safe: the network is then probed before it is served.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use super::carrier::Link;
use super::state::Foreign;

/// Maximum age of a clean probe with which a restarted program serves at once.
const RECENT: Duration = Duration::from_secs(600);
/// Maximum bytes of a record that are read.
const LENGTH_MAX: u64 = 512;

/// Boot and link at a clean probe. While both are unchanged, the cable was not unplugged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Situation {
    /// Boot id of the kernel, from `/proc/sys/kernel/random/boot_id`.
    boot_id: String,
    index: u32,
    carrier_changes: u32,
}

impl Situation {
    pub fn of(boot_id: &str, link: Link) -> Self {
        Self { boot_id: boot_id.to_owned(), index: link.index, carrier_changes: link.changes }
    }
}

/// Stored result of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// A probe found no server, and leases are being given.
    Clean { situation: Situation, at: SystemTime },
    /// Another server stopped the leases, and no person has resumed them since. The interface is
    /// not stored, because each interface has its own record.
    Stopped(Foreign),
}

impl Record {
    /// Returns true if a probe at this time is still valid; a future time (clock set back) is not.
    pub fn is_recent(at: SystemTime, now: SystemTime) -> bool {
        now.duration_since(at).is_ok_and(|age| age < RECENT)
    }

    /// Reads a record; `None` if the file is missing or malformed.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        let mut text = String::new();
        let read =
            |file: File| io::Read::read_to_string(&mut io::Read::take(file, LENGTH_MAX), &mut text);
        match File::open(path).and_then(read) {
            Ok(_) => Ok(text.parse().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces or removes the file durably: after a power cut either the old or the new content
    /// exists. If a record cannot be written, the old one is removed, so that the next start probes
    /// the network. An old `stopped` record stays if the new one is `stopped` too.
    pub fn store(record: Option<&Self>, path: &Path) -> io::Result<()> {
        Self::store_by(Self::replace, record, path)
    }

    fn store_by(
        replace: impl Fn(Option<&Self>, &Path) -> io::Result<()>,
        record: Option<&Self>,
        path: &Path,
    ) -> io::Result<()> {
        let stored = replace(record, path);
        let is_stopped = |record: Option<&Self>| matches!(record, Some(Self::Stopped(_)));
        if stored.is_err() {
            let old = Self::load(path).ok().flatten();
            // Any one of several servers is a sufficient reason for the stop, so the old record
            // stays.
            if !(is_stopped(record) && is_stopped(old.as_ref())) {
                // Removal needs no disk space. If it fails too, no other measure is left.
                let _ = fs::remove_file(path);
            }
        }
        stored
    }

    fn replace(record: Option<&Self>, path: &Path) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        match record {
            Some(record) => {
                let mut file = tempfile::NamedTempFile::new_in(folder)?;
                writeln!(file, "{record}")?;
                file.as_file().sync_all()?;
                file.persist(path).map_err(|error| error.error)?;
            }
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
        File::open(folder)?.sync_all()
    }
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean { situation, at } => {
                let Situation { boot_id, index, carrier_changes } = situation;
                write!(f, "clean boot={boot_id} index={index} carrier-changes={carrier_changes}")?;
                write!(f, " at={}", seconds(*at))
            }
            Self::Stopped(foreign) => {
                write!(f, "stopped server={}", foreign.server)?;
                if let Some(mac) = foreign.mac {
                    write!(f, " mac={mac}")?;
                }
                if let Some(offered) = foreign.offered {
                    write!(f, " offered={offered}")?;
                }
                write!(f, " at={}", seconds(foreign.when))
            }
        }
    }
}

/// Error of a malformed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl FromStr for Record {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let mut words = text.split_whitespace();
        let kind = words.next().ok_or(Unreadable)?;
        let fields: Vec<_> = words.filter_map(|word| word.split_once('=')).collect();
        let find = |name| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let needed = |name| find(name).ok_or(Unreadable);
        let unread = |_| Unreadable;
        let since = needed("at")?.parse().map_err(|_| Unreadable)?;
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since));
        let at = at.ok_or(Unreadable)?;
        match kind {
            "clean" => {
                let boot_id = needed("boot")?.to_owned();
                let index = needed("index")?.parse().map_err(unread)?;
                let carrier_changes = needed("carrier-changes")?.parse().map_err(unread)?;
                Ok(Self::Clean { situation: Situation { boot_id, index, carrier_changes }, at })
            }
            "stopped" => {
                let server = needed("server")?.parse().map_err(|_| Unreadable)?;
                let mac = find("mac").and_then(|mac| mac.parse().ok());
                let offered = find("offered").and_then(|address| address.parse().ok());
                Ok(Self::Stopped(Foreign {
                    server,
                    mac,
                    interface: String::new(),
                    offered,
                    when: at,
                }))
            }
            _ => Err(Unreadable),
        }
    }
}

#[cfg(test)]
mod tests;
