//! `[images]`: where files of other servers are kept, and how much of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use artifact_cache::registry::Credentials;
use http::uri::Authority;
use ipnet::IpNet;
use serde::Deserialize;

use super::Disk;

/// What the cache may be told to take of its partition, in percent: below the line from which on
/// the owner is warned.
const BUDGET_PERCENT: std::ops::RangeInclusive<u64> = 10..=artifact_cache::room::NOTICE_PERCENT;

/// The most networks that may be named.
const MAX_NETWORKS: usize = 64;

/// Files of other servers that workflows mention are fetched by the box, and by machines from it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// The folder, made when it is absent; best on a partition of its own. Whatever is in it may be
    /// lost at any time. On a box of its own it may be left out.
    #[serde(default)]
    pub cache: PathBuf,
    /// What the partition may be filled to, in percent, before files go for new ones.
    #[serde(default = "budget")]
    pub budget_percent: u64,
    /// Certificates (PEM) of the authorities whose word is taken for `https` servers; else those of
    /// the operating system.
    #[serde(default)]
    pub authorities: Option<PathBuf>,
    /// Networks that files are fetched from, beside those that the default route leads to. The
    /// box's own, loopback and link-local addresses are refused even if they are in one of these.
    #[serde(default)]
    pub networks: Vec<IpNet>,
    /// Registries, `host` or `host:port`, that are asked over `http`.
    #[serde(default)]
    pub plain_registries: Vec<String>,
    /// Registries of which anybody on the box's networks gets any image, not only machines those
    /// that a workflow names.
    #[serde(default)]
    pub mirror: Vec<String>,
    /// Who the box is to registries that want a user, by `host` or `host:port`.
    #[serde(default)]
    pub credentials: BTreeMap<String, Credentials>,
}

fn budget() -> u64 {
    artifact_cache::room::BUDGET_PERCENT
}

impl Images {
    /// The cache's place in a folder of the box.
    pub fn folder(folder: &Path) -> PathBuf {
        folder.join("images")
    }

    /// A cache with every default, in `images/` of this folder.
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

    /// Every mistake, by key and unit.
    pub(crate) fn problems(&self, disk: Disk) -> Vec<String> {
        let mut problems = Vec::new();
        let (folder, budget) = (&self.cache, self.budget_percent);
        let own = disk == Disk::Own;
        if !folder.is_absolute() || (own && folder.exists() && !folder.is_dir()) {
            problems.push(format!("images.cache: {} is no absolute folder", folder.display()));
        }
        if !BUDGET_PERCENT.contains(&budget) {
            let (from, to) = (BUDGET_PERCENT.start(), BUDGET_PERCENT.end());
            problems.push(format!(
                "images.budget_percent: {budget} % is not between {from} % and {to} %"
            ));
        }
        let count = self.networks.len();
        if count > MAX_NETWORKS {
            problems.push(format!("images.networks: {count} are more than {MAX_NETWORKS}"));
        }
        if let Some(file) = self.authorities.as_ref().filter(|file| own && !file.is_file()) {
            problems.push(format!("images.authorities: {} is no file", file.display()));
        }
        let hosts = self.plain_registries.iter().map(|host| ("plain_registries", host));
        let hosts = hosts.chain(self.mirror.iter().map(|host| ("mirror", host)));
        let hosts = hosts.chain(self.credentials.keys().map(|host| ("credentials", host)));
        for (key, host) in hosts.filter(|(_, host)| host.parse::<Authority>().is_err()) {
            problems.push(format!("images.{key}: {host:?} is no host or host:port"));
        }
        problems
    }
}
