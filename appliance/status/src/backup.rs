//! What is said of backups: `/backup` of the API.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::view::Text;

/// Who may open a backup that is to be made: the body of a POST there. One of the three.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Order {
    /// Who knows this.
    pub passphrase: Option<stdx::Secret>,
    /// Who has the secret key of one of these (`age1…`).
    pub recipients: Vec<String>,
    /// Everybody; secrets are left out.
    pub plain: bool,
}

/// The last backup that was made here: the answer to a GET; without a time there was none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Last {
    /// When.
    pub at: Option<Timestamp>,
    /// Its size.
    pub bytes: u64,
}

/// A backup that the box made itself: one of the answer to a GET of `/backup/kept`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kept {
    /// What it is asked for by.
    pub name: Text,
    /// When it was made.
    pub made: Timestamp,
    /// Its size.
    pub bytes: u64,
    /// Objects of the API in it.
    pub objects: u64,
    /// Those that are machines.
    pub hardware: u64,
}

/// What was found in a backup: the answer to a rehearsal and to a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// Of which box.
    pub name: Text,
    /// The release that made it.
    pub version: Text,
    /// When.
    pub made: Timestamp,
    /// The pin of that box.
    pub pin: Text,
    /// `passphrase`, `recipients` or `none`.
    pub encryption: Text,
    /// Objects of the API.
    pub objects: u64,
    /// Those that are machines.
    pub hardware: u64,
    /// Those that are Secrets.
    pub secrets: u64,
    /// Leases of DHCP.
    pub leases: u64,
    /// Keys, tokens and settings.
    pub files: u64,
    /// Whether `box.toml` is there.
    pub settings: bool,
    /// Whether the box is now about to restart as that one.
    pub restarts: bool,
}

impl Kept {
    /// `212 objects (12 machines), 210 KiB`.
    pub fn contents(&self) -> String {
        let (objects, machines) = (many(self.objects, "object"), many(self.hardware, "machine"));
        format!("{objects} ({machines}), {}", stdx::bytes(self.bytes))
    }
}

fn many(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

impl Report {
    /// `212 objects (12 machines, 3 secrets), 8 leases, 9 files and box.toml`.
    pub fn contents(&self) -> String {
        let mut line = format!(
            "{} ({}, {}), {}, {}",
            many(self.objects, "object"),
            many(self.hardware, "machine"),
            many(self.secrets, "secret"),
            many(self.leases, "lease"),
            many(self.files, "file"),
        );
        if self.settings {
            line.push_str(" and box.toml");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, Report};

    #[test]
    fn what_is_in_one() {
        let report =
            Report { objects: 212, hardware: 12, secrets: 1, files: 9, ..Report::default() };
        let line = "212 objects (12 machines, 1 secret), 0 leases, 9 files";
        assert_eq!(report.contents(), line);
        let report = Report { settings: true, ..report };
        assert_eq!(report.contents(), format!("{line} and box.toml"));
    }

    #[test]
    fn an_order_with_a_slip_is_none() {
        assert!(serde_json::from_str::<Order>(r#"{"passfrase":"x"}"#).is_err());
        let order: Order = serde_json::from_str(r#"{"passphrase":"correct horse"}"#).unwrap();
        assert!(order.passphrase.is_some() && !order.plain);
    }
}
