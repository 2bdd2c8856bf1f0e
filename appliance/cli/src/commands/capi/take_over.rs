//! `capi take-over`: this device replaces another device of the same box.

use std::time::Duration;

use api::management_cluster::{MANAGEMENT_CLUSTER, ManagementCluster};
use serde_json::json;

use super::Context;
use crate::error::Error;

/// Maximum looks at the result: another device must be silent for a minute.
const LOOKS_MAX: u32 = 40;
/// Interval of looks at the status, which the box writes every five seconds at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);

pub async fn run(context: &Context, name: &str) -> Result<(), Error> {
    let path = context.path(MANAGEMENT_CLUSTER, name);
    let object = context.find(MANAGEMENT_CLUSTER, name).await?;
    let mut cluster = read(&object);
    let Some(other) = &cluster.status.active_device else {
        return result(context, name, &cluster);
    };
    let mut changed = object.clone();
    changed["spec"]["takeOverFrom"] = json!(other);
    let stored = context.client.replace(&path, &changed).await?;
    context.printer.done(&stored, "changed")?;
    context.printer.note(&format!(
        "this device takes over as soon as {other} is silent for a minute; switch that device off"
    ));
    for _ in 0..LOOKS_MAX {
        tokio::time::sleep(LOOK_INTERVAL).await;
        cluster = read(&context.client.get(&path).await?);
        if is_active(&cluster) {
            break;
        }
    }
    result(context, name, &cluster)
}

fn read(object: &serde_json::Value) -> ManagementCluster {
    serde_json::from_value(object.clone()).unwrap_or_default()
}

fn is_active(cluster: &ManagementCluster) -> bool {
    let active = cluster.status.active();
    active.is_some_and(|it| {
        it.status == "True" && it.observed_generation == cluster.metadata.generation
    })
}

/// Prints the state, which is an error unless this device serves the management cluster.
fn result(context: &Context, name: &str, cluster: &ManagementCluster) -> Result<(), Error> {
    if is_active(cluster) {
        context.printer.note("this device serves the management cluster");
        return Ok(());
    }
    let condition = cluster.status.active().or_else(|| cluster.status.connected());
    Err(Error::Unable {
        what: format!("take over the management cluster {name}"),
        why: condition.map_or("the box has not reported its state", |it| &it.message).to_owned(),
        hint: "the order stays: repeat the command to see the state",
    })
}
