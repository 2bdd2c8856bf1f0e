//! `[images]`: cache for files that workflows download from other servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use artifact_cache::registry::Credentials;
use http::uri::Authority;
use ipnet::IpNet;
use serde::Deserialize;

use super::Disk;

/// Permitted values of `budget_percent`. At the maximum, the owner gets a notice.
const BUDGET_PERCENT: std::ops::RangeInclusive<u64> = 10..=artifact_cache::eviction::NOTICE_PERCENT;

/// Maximum number of entries in `networks`.
const MAX_NETWORKS: usize = 64;

/// Cache for files of other servers that workflows mention: the box downloads each file once, and
/// machines fetch it from the box.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// Absolute path of the cache folder, created if it is absent. Use a separate partition; every
    /// file in it may be lost at any time. Default on a flashed box: `/cache/images`. On Linux the
    /// key is required.
    #[serde(default)]
    pub cache: PathBuf,
    /// Percentage of the partition, used by any file, above which the least recently used files are
    /// evicted for new files. Pinned and needed files stay. 10 to 85. Default: 80.
    #[serde(default = "budget")]
    pub budget_percent: u64,
    /// PEM file with the certificate authorities that are trusted for `https` servers. Default: the
    /// authorities of the operating system.
    #[serde(default)]
    pub authorities: Option<PathBuf>,
    /// Networks from which files may be fetched, in addition to addresses that the default route
    /// reaches. At most 64. The box's own, loopback and link-local addresses are refused even
    /// inside these networks. Default: none.
    #[serde(default)]
    pub networks: Vec<IpNet>,
    /// Registries, as `host` or `host:port`, that are contacted over `http`. Default: none.
    #[serde(default)]
    pub plain_registries: Vec<String>,
    /// Registries, as `host` or `host:port`, whose images any client on the box's networks may
    /// fetch. Of other registries, clients may fetch only repositories that an unfinished workflow
    /// names. Default: none.
    #[serde(default)]
    pub mirror: Vec<String>,
    /// User and password for registries, by `host` or `host:port`. Registries without an entry are
    /// read anonymously.
    #[serde(default)]
    pub credentials: BTreeMap<String, Credentials>,
}

fn budget() -> u64 {
    artifact_cache::eviction::BUDGET_PERCENT
}

impl Images {
    /// Returns the path of the cache below `folder`.
    pub fn folder(folder: &Path) -> PathBuf {
        folder.join("images")
    }

    /// Returns a cache in `images/` below `folder`, with every default.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            cache: Self::folder(folder),
            budget_percent: budget(),
            authorities: None,
            networks: Vec::new(),
            plain_registries: Vec::new(),
            mirror: Vec::new(),
            credentials: BTreeMap::new(),
        }
    }

    /// Returns every mistake; each text begins with its key.
    pub(crate) fn problems(&self, disk: Disk) -> Vec<String> {
        let mut problems = Vec::new();
        let (folder, budget) = (&self.cache, self.budget_percent);
        let own = disk == Disk::Own;
        if !folder.is_absolute() || (own && folder.exists() && !folder.is_dir()) {
            problems.push(format!("images.cache: {} is not an absolute folder", folder.display()));
        }
        if !BUDGET_PERCENT.contains(&budget) {
            let (from, to) = (BUDGET_PERCENT.start(), BUDGET_PERCENT.end());
            problems.push(format!(
                "images.budget_percent: {budget} % is not between {from} % and {to} %"
            ));
        }
        let count = self.networks.len();
        if count > MAX_NETWORKS {
            problems.push(format!("images.networks: {count} entries, the limit is {MAX_NETWORKS}"));
        }
        if let Some(file) = self.authorities.as_ref().filter(|file| own && !file.is_file()) {
            problems.push(format!("images.authorities: {} is not a file", file.display()));
        }
        let hosts = self.plain_registries.iter().map(|host| ("plain_registries", host));
        let hosts = hosts.chain(self.mirror.iter().map(|host| ("mirror", host)));
        let hosts = hosts.chain(self.credentials.keys().map(|host| ("credentials", host)));
        for (key, host) in hosts.filter(|(_, host)| host.parse::<Authority>().is_err()) {
            problems.push(format!("images.{key}: {host:?} is not a valid host or host:port"));
        }
        problems
    }
}
