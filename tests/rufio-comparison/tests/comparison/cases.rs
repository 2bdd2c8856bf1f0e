//! Jobs of the comparison, and their ends.

use std::fmt;
use std::time::{Duration, Instant};

use api::bmc::{JOB, MACHINE, TASK};
use api::core::SECRET;
use api::meta::ObjectKey;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use bmc::Power;
use objects::Objects;
use serde_json::{Value, json};
use stdx::testing::Wait;

use crate::api::Api;

/// Namespace of all objects.
pub const NAMESPACE: &str = "default";
/// Name of the Machine.
pub const NODE: &str = "node";

/// Maximum time of a Job; Rufio reads the power state every 3 s.
const JOB_LIMIT: Duration = Duration::from_secs(60);

/// Job of the comparison.
pub struct Case {
    /// Name of the case, for people and for the Job.
    pub name: &'static str,
    /// Power state of the machine before the Job.
    pub before: Power,
    /// Actions of the Job.
    pub tasks: Value,
    /// Reason of a difference between Rufio and the box; empty if there is none.
    pub difference: &'static str,
}

/// Creates a case without a difference.
pub fn case(name: &'static str, before: Power, tasks: Value) -> Case {
    Case { name, before, tasks, difference: "" }
}

/// End of a Job and of its Tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    job: &'static str,
    /// Ends of the Tasks that exist, in order.
    tasks: Vec<&'static str>,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.job, self.tasks.join(", "))
    }
}

/// Returns `Completed` or `Failed`; `None` before the end.
fn end(object: &Value) -> Option<&'static str> {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find_map(|condition| {
        let is_true = condition["status"] == "True";
        let named = |name: &str| is_true && condition["type"] == name;
        ["Completed", "Failed"].into_iter().find(|name| named(name))
    })
}

/// Creates a Secret with these keys and texts.
pub async fn secret(objects: &dyn Objects, name: &str, texts: &[(&str, &str)]) {
    let data = texts.iter().map(|(key, text)| ((*key).to_owned(), BASE64.encode(text).into()));
    let data: serde_json::Map<String, Value> = data.collect();
    let metadata = json!({ "name": name, "namespace": NAMESPACE });
    let object =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data });
    objects.create(SECRET, object).await.unwrap();
}

/// Creates the Machine with this connection.
pub async fn machine(objects: &dyn Objects, connection: Value) {
    let object = json!({
        "apiVersion": MACHINE.api_version(),
        "kind": "Machine",
        "metadata": { "name": NODE, "namespace": NAMESPACE },
        "spec": { "connection": connection },
    });
    objects.create(MACHINE, object).await.unwrap();
}

/// Creates the Job of a case, and waits for its end.
pub async fn run(api: &Api, case: &Case) -> Ending {
    let objects = api.objects.as_ref();
    let name = case.name.replace([' ', ',', '(', ')'], "-").to_lowercase();
    let name = format!("{}-job", name.trim_matches('-'));
    let job = json!({
        "apiVersion": JOB.api_version(),
        "kind": "Job",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "machineRef": { "name": NODE, "namespace": NAMESPACE },
            "tasks": case.tasks,
        },
    });
    objects.create(JOB, job).await.unwrap();
    let key = ObjectKey::new(NAMESPACE, &name);
    let (wait, begin) = (Wait::new("the end of the Job"), Instant::now());
    let job = loop {
        if let Some(end) = end(&objects.get(JOB, &key).await.unwrap()) {
            break end;
        }
        assert!(begin.elapsed() < JOB_LIMIT, "{}: the Job does not end\n{}", case.name, api.log());
        tokio::time::sleep(wait.pause()).await;
    };
    let mut tasks = Vec::new();
    for at in 0..case.tasks.as_array().map_or(0, Vec::len) {
        let key = ObjectKey::new(NAMESPACE, format!("{name}-task-{at}"));
        if let Ok(task) = objects.get(TASK, &key).await {
            tasks.push(end(&task).unwrap_or("running"));
        }
    }
    Ending { job, tasks }
}
