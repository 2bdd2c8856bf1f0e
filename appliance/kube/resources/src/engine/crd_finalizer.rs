//! Deletes the objects of a deleted definition before the definition itself is removed
//! (apiextensions-apiserver `pkg/controller/finalizer/crd_finalizer.go`).

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{
    DeleteOptions, Engine, InitialEvents, ListOptions, ObjectWatch, WatchOptions, WriteOptions,
};
use crate::crds::{FINALIZER, RESOURCE, status};
use crate::object::{finalizers, is_deleting, meta, metadata_mut};
use crate::status_error::{Reason, StatusError};

/// Number of objects per page of a list.
const PAGE: usize = 200;
/// Maximum concurrent deletes, which share commits of the store.
const AT_ONCE: usize = 16;
/// Delay before the next check of a definition whose objects still wait for finalizers.
const AGAIN: Duration = Duration::from_secs(1);

/// Deletes the objects of deleted definitions until the future is dropped. One task serves an
/// engine; after a restart, the task continues from the stored state.
pub async fn run(engine: Engine) {
    loop {
        if let Err(error) = follow(&engine).await {
            tracing::warn!(%error, "the cleanup of a deleted definition continues later");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Processes all definitions in deletion, and again after each write of such a definition; every
/// second while objects remain. Ends with an error.
async fn follow(engine: &Engine) -> Result<(), StatusError> {
    let mut watch = begin(engine).await?;
    loop {
        let waiting = sweep(engine).await?;
        let told = async {
            while !is_ending(&watch.next().await?.object) {}
            Ok::<(), StatusError>(())
        };
        if waiting {
            // This watch does not report when objects lose their finalizers, so the loop polls.
            tokio::time::timeout(AGAIN, told).await.unwrap_or(Ok(()))?;
        } else {
            told.await?;
        }
    }
}

/// Starts a watch of later writes of definitions; [`sweep`] reads the existing definitions.
async fn begin(engine: &Engine) -> Result<ObjectWatch, StatusError> {
    let options = WatchOptions { initial: InitialEvents::Skip, ..WatchOptions::default() };
    engine.watch(RESOURCE, None, options).await
}

/// Returns true if the definition is in deletion and still has the cleanup finalizer.
fn is_ending(crd: &Value) -> bool {
    is_deleting(crd) && finalizers(crd).any(|one| one == FINALIZER)
}

/// Processes every definition in deletion once. Returns true if objects of any of them remain.
async fn sweep(engine: &Engine) -> Result<bool, StatusError> {
    let mut waiting = false;
    for crd in engine.list(RESOURCE, None, ListOptions::default()).await?.items {
        if is_ending(&crd) {
            if empty(engine, &crd).await? {
                finish(engine, &crd).await?;
            } else {
                waiting = true;
            }
        }
    }
    Ok(waiting)
}

/// Deletes the objects of the definition's kind. Returns false if objects with finalizers remain.
async fn empty(engine: &Engine, crd: &Value) -> Result<bool, StatusError> {
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["plural"]));
    let resource = format!("{group}/{plural}");
    // A definition that was never served has no objects, and its name may belong to another kind.
    // Kubernetes' own kinds have no definition that could be deleted.
    let registry = engine.registry();
    let served = registry.by_id(&resource).filter(|kind| !kind.native);
    if !status::is(crd, "Established") || served.is_none() {
        return Ok(true);
    }
    let mut left = false;
    let mut token = None;
    loop {
        let page = ListOptions { limit: PAGE, continue_token: token, ..ListOptions::default() };
        let list = engine.list(&resource, None, page).await?;
        let deletes: Vec<_> = list
            .items
            .iter()
            .filter(|object| !is_deleting(object))
            .map(|object| delete(engine, &resource, object))
            .collect();
        let results: Vec<_> = stream::iter(deletes).buffer_unordered(AT_ONCE).collect().await;
        results.into_iter().collect::<Result<Vec<()>, _>>()?;
        left |= !list.items.is_empty();
        token = list.continue_token;
        if token.is_none() {
            break;
        }
    }
    if !left {
        return Ok(true);
    }
    let one = ListOptions { limit: 1, ..ListOptions::default() };
    Ok(engine.list(&resource, None, one).await?.items.is_empty())
}

async fn delete(engine: &Engine, resource: &str, object: &Value) -> Result<(), StatusError> {
    let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
    match engine.delete(resource, namespace, name, DeleteOptions::default()).await {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the finalizer, which completes the deletion of the definition.
async fn finish(engine: &Engine, crd: &Value) -> Result<(), StatusError> {
    let mut crd = crd.clone();
    let name = meta(&crd, "name").to_owned();
    let left: Vec<Value> =
        finalizers(&crd).filter(|one| *one != FINALIZER).map(|one| json!(one)).collect();
    metadata_mut(&mut crd).insert("finalizers".to_owned(), json!(left));
    match engine.update(RESOURCE, "", &name, crd, WriteOptions::default()).await {
        // Another client wrote the definition meanwhile: the watch reports the write, and the loop
        // checks it again.
        Err(error) if !matches!(error.reason, Reason::Conflict | Reason::NotFound) => Err(error),
        _ => Ok(()),
    }
}
