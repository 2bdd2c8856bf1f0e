//! Memory of a box for each paired management cluster.

use std::time::Duration;

use anyhow::{Result, bail};
use api_bench::rss_mib;
use capi::Repository;
use figures::{Goal, Table};
use peers::cluster_api::{ManagerPlan, Series};
use peers::{Cluster, ClusterConfig, Tinboxd};

use crate::latency::pair;
use crate::management::apply;

/// Management clusters that are paired.
const CLUSTERS: usize = 4;
/// Interval between two samples of the memory.
const SAMPLE: Duration = Duration::from_millis(500);
/// Samples in a row that must agree.
const SAMPLES: usize = 10;
/// Maximum number of samples until they agree: two minutes.
const SAMPLES_MAX: usize = 240;
/// Maximum difference of samples that agree, in MiB.
const NOISE_MIB: f64 = 0.25;

/// Pairs a box with one cluster after the other, and compares the growth for each with the memory
/// of CAPT, which a management cluster needs once.
///
/// # Errors
/// A program does not start, or a cluster cannot be paired.
pub async fn compare(capt_mib: f64, table: &mut Table) -> Result<()> {
    let tinboxd = tokio::task::spawn_blocking(Tinboxd::start).await??;
    let mut clusters = Vec::new();
    for _ in 0..CLUSTERS {
        clusters.push(tokio::task::spawn_blocking(cluster).await??);
    }
    // The first one also starts what all clusters share.
    pair(&tinboxd, &clusters[0], "cluster-0")?;
    let first = settled(&tinboxd).await?;
    for (number, cluster) in clusters.iter().enumerate().skip(1) {
        pair(&tinboxd, cluster, &format!("cluster-{number}"))?;
    }
    let last = settled(&tinboxd).await?;
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let each = (last - first) / (CLUSTERS - 1) as f64;
    let what = "memory for a paired cluster, MiB";
    table.add(what, each, ("CAPT, RSS", capt_mib), Goal::AtMost(0.1));
    Ok(())
}

/// Starts an API server with the kinds of Cluster API and of the provider, without managers: no
/// object exists.
fn cluster() -> Result<Cluster> {
    let cluster = Cluster::start(&ClusterConfig::default())?;
    let kubectl = cluster.kubectl()?;
    for (_, list) in ManagerPlan::new(&cluster, Series::V1_13)?.manifests() {
        apply(&kubectl, &list.to_string())?;
    }
    apply(&kubectl, Repository::new("0.1.0").components())?;
    Ok(cluster)
}

/// Returns the memory of the box in MiB as soon as it no longer changes.
async fn settled(tinboxd: &Tinboxd) -> Result<f64> {
    let mut samples: Vec<f64> = Vec::new();
    while samples.len() < SAMPLES_MAX {
        samples.push(rss_mib(&[tinboxd.id()])?);
        let last = &samples[samples.len().saturating_sub(SAMPLES)..];
        let most = last.iter().copied().fold(f64::MIN, f64::max);
        let least = last.iter().copied().fold(f64::MAX, f64::min);
        if last.len() == SAMPLES && most - least <= NOISE_MIB {
            return Ok(most);
        }
        tokio::time::sleep(SAMPLE).await;
    }
    bail!("the memory of the box still changes after {SAMPLES_MAX} samples")
}
