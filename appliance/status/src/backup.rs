//! Backups, as `/backup` of the API reports them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::text::Text;

/// Protection of a new backup: the body of a POST. Exactly one of the three fields must be set.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BackupRequest {
    /// Passphrase that encrypts the backup (age).
    pub passphrase: Option<stdx::Secret>,
    /// Public keys of age (`age1…`) that the backup is encrypted for.
    pub recipients: Vec<String>,
    /// True for a backup without encryption; secrets are left out.
    pub plain: bool,
}

/// Last backup that was downloaded completely: the response to a GET of `/backup`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LastBackup {
    /// Time at which the backup was made.
    pub at: Option<Timestamp>,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Backup that the box made itself: an entry of the response to a GET of `/backup/kept`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredBackup {
    /// Name of the backup in requests.
    pub name: Text,
    /// Time at which the backup was made.
    pub made: Timestamp,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of API objects in the backup.
    pub objects: u64,
    /// Number of Hardware objects.
    pub hardware: u64,
}

/// Content of a backup: the response to a verification and to a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupSummary {
    /// Name of the box that made the backup.
    pub name: Text,
    /// Release that made the backup.
    pub version: Text,
    /// Time at which the backup was made.
    pub made: Timestamp,
    /// Certificate pin of the box that made the backup.
    pub pin: Text,
    /// `passphrase`, `recipients` or `none`.
    pub encryption: Text,
    /// Number of API objects.
    pub objects: u64,
    /// Number of Hardware objects.
    pub hardware: u64,
    /// Number of Secrets among the objects.
    pub secrets: u64,
    /// Number of DHCP leases.
    pub leases: u64,
    /// Number of files: keys, tokens and settings.
    pub files: u64,
    /// True if `box.toml` is included.
    pub settings: bool,
    /// True if the box restarts now with the restored data; false after a verification.
    pub restarts: bool,
}

impl StoredBackup {
    /// Summarizes the backup: `212 objects (12 machines), 210 KiB`.
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

impl BackupSummary {
    /// Formats `212 objects (12 machines, 3 secrets), 8 leases, 9 files and box.toml`.
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
    use super::{BackupRequest, BackupSummary};

    #[test]
    fn what_is_in_one() {
        let report = BackupSummary {
            objects: 212,
            hardware: 12,
            secrets: 1,
            files: 9,
            ..BackupSummary::default()
        };
        let line = "212 objects (12 machines, 1 secret), 0 leases, 9 files";
        assert_eq!(report.contents(), line);
        let report = BackupSummary { settings: true, ..report };
        assert_eq!(report.contents(), format!("{line} and box.toml"));
    }

    #[test]
    fn an_order_with_a_slip_is_none() {
        assert!(serde_json::from_str::<BackupRequest>(r#"{"passfrase":"x"}"#).is_err());
        let order: BackupRequest =
            serde_json::from_str(r#"{"passphrase":"correct horse"}"#).unwrap();
        assert!(order.passphrase.is_some() && !order.plain);
    }
}
