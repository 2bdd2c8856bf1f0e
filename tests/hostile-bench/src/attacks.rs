//! The attacks: name, start, and expected effect of each.

mod api;
mod bmc;
mod strangers;

use std::any::Any;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::Value;

use crate::client::Client;

pub const HARDWARE: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware";

/// Resources of an attack, which ends when they are dropped.
pub type Running = Vec<Box<dyn Any + Send>>;

/// An attack. An ID such as E2 is a finding of `docs/reviews.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    Nothing,
    UnreadLists,
    UnreadWatches,
    HeavyApplies,
    UnfinishedBodies,
    IdleConnections,
    StrangersOfTheApi,
    StrangersBodies,
    NotFoundByTftp,
    /// Finding E2: each TFTP request for the unified image took memory.
    UnifiedImage,
    /// Finding D10: a name server that does not answer stopped DHCP and boot files.
    SilentNameServer,
    /// Finding D11: BMCs that do not answer delayed the jobs of other BMCs.
    DeadBmcs,
    /// Finding D13: enrollments were lost when many machines enrolled at once.
    Burst,
}

impl Attack {
    /// All attacks, with the run without an attack first.
    pub const ALL: [Self; 13] = [
        Self::Nothing,
        Self::UnreadLists,
        Self::UnreadWatches,
        Self::HeavyApplies,
        Self::UnfinishedBodies,
        Self::IdleConnections,
        Self::StrangersOfTheApi,
        Self::StrangersBodies,
        Self::NotFoundByTftp,
        Self::UnifiedImage,
        Self::SilentNameServer,
        Self::DeadBmcs,
        Self::Burst,
    ];

    /// Name in the output and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::UnreadLists => "200 lists of 19 MB that a viewer does not read",
            Self::UnreadWatches => "500 watches unread, 40 writes of 0.9 MB",
            Self::HeavyApplies => "24 applies of 19,000 keys, over and over",
            Self::UnfinishedBodies => "90 bodies of 1.5 MB that do not end",
            Self::IdleConnections => "512 idle connections to each port",
            Self::StrangersOfTheApi => "four addresses with 560 idle API connections",
            Self::StrangersBodies => "80 connections, 50 bodies of 256 kB, at 42113",
            Self::NotFoundByTftp => "TFTP requests for files not there, one by one",
            Self::UnifiedImage => "60 TFTP requests for the unified image, silent",
            Self::SilentNameServer => "60 BMCs by name, a name server that is silent",
            Self::DeadBmcs => "150 BMCs that do not answer, a Job for each",
            Self::Burst => "one machine says hello as 300 others",
        }
    }

    /// Begins the attack on the attackers' machine, and returns when it is in progress.
    ///
    /// # Errors
    /// The box cannot be reached, or refuses a request that it must accept.
    pub async fn begin(self, admin: &Client) -> Result<Running> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::UnreadLists => api::unread(admin, (HARDWARE, 200)).await,
            Self::UnreadWatches => api::unread_watches(admin).await,
            Self::HeavyApplies => api::heavy(admin).await,
            Self::UnfinishedBodies => api::bodies(admin).await,
            Self::IdleConnections => strangers::idle(&[6443, 7080, 42113, 50061], 512, 1..2).await,
            Self::StrangersOfTheApi => strangers::idle(&[6443], 560, 2..6).await,
            Self::StrangersBodies => strangers::bodies().await,
            Self::NotFoundByTftp => strangers::not_found().await,
            Self::UnifiedImage => strangers::unified_image().await,
            Self::SilentNameServer => bmc::by_name(admin).await,
            Self::DeadBmcs => bmc::dead(admin).await,
            Self::Burst => strangers::burst().await,
        }
    }

    /// Checks the expected effect, and deletes the objects that the attack left.
    ///
    /// # Errors
    /// The effect did not occur.
    pub async fn end(self, admin: &Client) -> Result<()> {
        match self {
            Self::SilentNameServer | Self::DeadBmcs => bmc::clear(admin).await,
            Self::Burst => none_enrolled(admin).await,
            _ => Ok(()),
        }
    }
}

/// Checks that no machine of the burst has become Hardware: the network shows one NIC behind all of
/// them.
async fn none_enrolled(admin: &Client) -> Result<()> {
    let connection = admin.connect().await?;
    let path = format!("{HARDWARE}?labelSelector=tinkerbell.org/auto-discovered");
    let list = admin.send(&connection, (Method::GET, &path), &Value::Null).await?;
    let count = list["items"].as_array().map_or(0, Vec::len);
    ensure!(count == 0, "{count} machines that do not exist were enrolled");
    Ok(())
}
