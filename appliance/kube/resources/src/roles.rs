//! Creation of the built-in roles, and computation of the aggregated roles, in the store.

use std::time::Duration;

use rbac::{RBAC_GROUP, aggregated, bootstrap};
use serde_json::Value;

use crate::engine::{Engine, ListOptions, WatchOptions, WriteOptions};
use crate::status_error::{Reason, StatusError};

/// Delay before the roles are processed again after an error.
const RETRY: Duration = Duration::from_secs(5);
/// Maximum rounds of aggregation: aggregated roles may include other aggregated roles.
const MAX_ROUNDS: usize = 8;

fn resource(plural: &str) -> String {
    format!("{RBAC_GROUP}/{plural}")
}

/// Creates missing built-in roles and bindings, adds missing rules of this release to the stored
/// roles and bindings, and computes aggregated roles. Call at start, before serving.
///
/// # Errors
/// Returns an error if the store cannot be read or written.
pub async fn ensure(engine: &Engine) -> Result<(), StatusError> {
    let shipped = [
        (resource("clusterroles"), bootstrap::cluster_roles()),
        (resource("clusterrolebindings"), bootstrap::cluster_role_bindings()),
    ];
    for (resource, objects) in shipped {
        for object in objects {
            ensure_one(engine, &resource, object).await?;
        }
    }
    gather(engine).await
}

async fn ensure_one(engine: &Engine, resource: &str, object: Value) -> Result<(), StatusError> {
    let options = WriteOptions::default;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match engine.create(resource, "", object.clone(), options()).await {
        Err(error) if error.reason == Reason::AlreadyExists => {}
        other => return other.map(drop),
    }
    let stored = engine.get(resource, "", &name).await?;
    if let Some(grown) = bootstrap::reconciled(&stored, &object) {
        tracing::info!(name, "a shipped role or binding was updated");
        engine.update(resource, "", &name, grown, options()).await?;
    }
    Ok(())
}

/// Updates the rules of ClusterRoles with an `aggregationRule` after each change of their source
/// roles. Never returns.
pub async fn keep_gathered(engine: Engine) {
    loop {
        if let Err(error) = follow(&engine).await {
            tracing::debug!(%error, "reading the roles again");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn follow(engine: &Engine) -> Result<(), StatusError> {
    let all = engine.list(&resource("clusterroles"), None, ListOptions::default()).await?;
    let options = WatchOptions { after: Some(all.revision), ..WatchOptions::default() };
    let mut watch = engine.watch(&resource("clusterroles"), None, options).await?;
    loop {
        gather(engine).await?;
        watch.next().await?;
    }
}

async fn gather(engine: &Engine) -> Result<(), StatusError> {
    let resource = resource("clusterroles");
    for _ in 0..MAX_ROUNDS {
        let all = engine.list(&resource, None, ListOptions::default()).await?.items;
        let mut done = true;
        for role in &all {
            let Some(rules) = aggregated(role, &all) else { continue };
            let mut role = role.clone();
            role["rules"] = rules;
            let name = role["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            // The update names the revision that was read; the watch reports a concurrent change,
            // which starts another round.
            match engine.update(&resource, "", &name, role, WriteOptions::default()).await {
                Err(error) if matches!(error.reason, Reason::Conflict | Reason::NotFound) => {}
                other => drop(other?),
            }
            done = false;
        }
        if done {
            return Ok(());
        }
    }
    Ok(())
}
