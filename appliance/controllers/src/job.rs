//! Controller for Jobs of `bmc.tinkerbell.org`, which runs the actions as Tasks one after another.

mod decide;

use std::sync::Arc;

use api::bmc::{JOB, Job, MACHINE, Machine, RunStatus, TASK, Task};
use api::meta::{ObjectKey, ObjectMeta};
use api::tinkerbell::{WORKFLOW, Workflow};
use serde_json::json;
use stdx::Clock;

use crate::ages::Ages;
use crate::runtime::{Reconciled, Reconciler};
use crate::task::task_name;
use crate::workflow::is_post_job;
use decide::{Observed, Step};
use objects::{ObjectError, Objects, fetch, find, gone_is_fine, write_status};

/// Reconciler that runs Jobs until they end.
pub struct JobReconciler {
    /// Access to Jobs, Tasks and Machines.
    pub objects: Arc<dyn Objects>,
    /// Clock for start and completion times.
    pub clock: Arc<dyn Clock>,
    /// Time since the end of each Job.
    pub ages: Ages,
}

impl Reconciler for JobReconciler {
    fn name(&self) -> &'static str {
        "job"
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let observed = self.observe(key).await?;
            let decision = decide::decide(&observed, self.clock.now());
            for step in decision.steps {
                self.apply(&observed, step).await?;
            }
            Ok(decision.requeue)
        })
    }
}

impl JobReconciler {
    async fn observe(&self, key: &ObjectKey) -> Result<Observed, ObjectError> {
        let objects = self.objects.as_ref();
        let found: Result<Job, _> = fetch(objects, JOB, key).await;
        let job = found.inspect_err(|_| self.ages.forget(key))?;
        let machine_ref = &job.spec.machine_ref;
        let namespace = match machine_ref.namespace.as_str() {
            "" => &key.namespace,
            other => other,
        };
        let machine_key = ObjectKey::new(namespace, &machine_ref.name);
        let machine: Option<Machine> = find(objects, MACHINE, &machine_key).await?;
        let mut tasks = Vec::with_capacity(job.spec.tasks.len());
        for at in 0..job.spec.tasks.len() {
            let name = ObjectKey::new(&key.namespace, task_name(&key.name, at));
            tasks.push(find::<Task>(objects, TASK, &name).await?);
        }
        let owner = job.metadata.owner_references.iter().find(|owner| owner.kind == WORKFLOW.kind);
        let wanted = match owner {
            Some(owner) => {
                let key = ObjectKey::new(&key.namespace, &owner.name);
                let workflow: Option<Workflow> = find(objects, WORKFLOW, &key).await?;
                workflow.is_some_and(|it| {
                    let after = is_post_job(&it, &job.metadata.name);
                    it.metadata.uid == owner.uid && (after || !it.status.state.ended())
                })
            }
            None => true,
        };
        let end = job.status.completion_time;
        let moments = self.ages.look(key, end, self.clock.as_ref());
        let ended_for = end.map(|end| moments.since(moments.at(end))).unwrap_or_default();
        Ok(Observed { job, machine, tasks, wanted, ended_for })
    }

    async fn apply(&self, observed: &Observed, step: Step) -> Result<(), ObjectError> {
        let objects = self.objects.as_ref();
        let job = &observed.job;
        match step {
            Step::Status(status) => self.write(job, &status).await,
            Step::Hold(hold) => self.hold(job, hold).await,
            Step::DeleteJob => gone_is_fine(objects.delete(JOB, &job.key()).await),
            Step::DeleteTask(name) => {
                let key = ObjectKey::new(&job.metadata.namespace, name);
                gone_is_fine(objects.delete(TASK, &key).await)
            }
            Step::CreateTask { at, spec } => {
                let metadata = ObjectMeta {
                    name: task_name(&job.metadata.name, at),
                    namespace: job.metadata.namespace.clone(),
                    labels: [("owner-name".to_owned(), job.metadata.name.clone())].into(),
                    owner_references: vec![job.controller_reference(JOB)],
                    ..ObjectMeta::default()
                };
                let task = json!({
                    "apiVersion": TASK.api_version(),
                    "kind": TASK.kind,
                    "metadata": metadata,
                    "spec": spec,
                });
                match objects.create(TASK, task).await {
                    Ok(_) | Err(ObjectError::AlreadyExists(_)) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Adds (`hold` is true) or removes the finalizer [`decide::POWER_ON`].
    async fn hold(&self, job: &Job, hold: bool) -> Result<(), ObjectError> {
        let mut finalizers = job.metadata.finalizers.clone();
        finalizers.retain(|it| it != decide::POWER_ON);
        if hold {
            finalizers.push(decide::POWER_ON.to_owned());
        }
        let mut object = self.objects.get(JOB, &job.key()).await?;
        object["metadata"]["finalizers"] = json!(finalizers);
        // The observed version is required, so that a finalizer of another writer is not lost.
        object["metadata"]["resourceVersion"] = json!(job.metadata.resource_version);
        self.objects.update(JOB, object).await.map(drop)
    }

    async fn write(&self, job: &Job, status: &RunStatus) -> Result<(), ObjectError> {
        write_status(self.objects.as_ref(), JOB, &job.metadata, status).await
    }
}
