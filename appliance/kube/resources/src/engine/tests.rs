//! Tables of the engine's rules, tested on a real store.

mod applying;
mod collecting;
mod heavy;
mod kinds;
mod native;
mod reading;
mod room;
mod unique;
mod words;
mod writing;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use stdx::TestClock;
use stdx::testing::PATIENCE;
use store::{Options, Store};
use tempfile::TempDir;

use super::{Engine, ObjectWatch, Patch, WatchEvent, WriteOptions};
use crate::definition::ResourceDefinition;
use crate::status_error::{Reason, StatusError};
use crate::{Registry, builtin};

const HARDWARE: &str = "tinkerbell.org/hardware";
const SECRETS: &str = "/secrets";
const TEMPLATES: &str = "tinkerbell.org/templates";
const EVENTS: &str = "/events";
const NAMESPACES: &str = "/namespaces";
/// Resource of a kind like a compiled-in kind, with a limit of three objects per namespace.
const RECORDS: &str = "example.org/records";

struct Bench {
    engine: Engine,
    clock: TestClock,
    _folder: TempDir,
}

async fn bench_with(options: Options) -> Bench {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("objects.redb"), options).unwrap();
    let clock = TestClock::at("2026-11-20T10:00:00.123Z".parse::<Timestamp>().unwrap());
    let mut definitions: Vec<ResourceDefinition> =
        builtin::registry().unwrap().all().iter().map(|one| one.as_ref().clone()).collect();
    let event = definitions.iter().find(|one| one.kind == "Event").unwrap().clone();
    definitions.push(ResourceDefinition {
        group: "example.org".to_owned(),
        kind: "Record".to_owned(),
        plural: "records".to_owned(),
        list_kind: "RecordList".to_owned(),
        keep_newest: Some(3),
        validate: None,
        ..event
    });
    let registry = Registry::new(definitions).unwrap();
    let engine = Engine::new(store, registry, Arc::new(clock.clone()));
    engine.ensure_permanent().await.unwrap();
    Bench { engine, clock, _folder: folder }
}

async fn bench() -> Bench {
    bench_with(Options::default()).await
}

impl Bench {
    async fn create(&self, resource: &str, object: Value) -> Result<Value, StatusError> {
        self.engine.create(resource, "default", object, WriteOptions::default()).await
    }

    async fn hardware(&self, name: &str, labels: Value) -> Value {
        let object = json!({ "metadata": { "name": name, "labels": labels }, "spec": {} });
        self.create(HARDWARE, object).await.unwrap()
    }

    async fn get(&self, name: &str) -> Result<Value, StatusError> {
        self.engine.get(HARDWARE, "default", name).await
    }

    async fn update(&self, object: &Value, options: WriteOptions) -> Result<Value, StatusError> {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.engine.update(HARDWARE, "default", name, object.clone(), options).await
    }

    async fn merge(&self, name: &str, patch: Value) -> Result<Value, StatusError> {
        let patch = Patch::merge(patch).unwrap();
        self.engine.patch(HARDWARE, "default", name, patch, WriteOptions::default()).await
    }
}

fn reason<T: std::fmt::Debug>(result: Result<T, StatusError>) -> Reason {
    result.unwrap_err().reason
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

async fn next(watch: &mut ObjectWatch) -> Result<WatchEvent, StatusError> {
    tokio::time::timeout(PATIENCE, watch.next()).await.expect("an event in time")
}
