//! Owners: they apply workflows, cancel and retry some, and switch on the machines that the box may
//! not switch on.

use std::sync::Arc;
use std::time::Duration;

use api::state::queue;
use api::tinkerbell::{CANCEL_REQUEST, RETRY_FROM, RETRY_REQUEST, RetryFrom};
use serde_json::{Value, json};

use super::plan;
use super::world::{Wish, World};

/// Time within which all owners apply their workflows.
const APPLIED: Duration = Duration::from_secs(30);
/// Maximum time until an owner cancels.
const CANCELS: Duration = Duration::from_secs(300);
/// Interval between two checks of an owner.
const LOOKS: Duration = Duration::from_secs(20);
/// Maximum downtime of the box after a blackout.
const AWAY: Duration = Duration::from_secs(20);
/// Maximum time that a machine is without power after a blackout.
const DARK: Duration = Duration::from_secs(60);
/// Machines that a blackout affects, in percent.
const REACHED: f64 = 30.0;

impl World {
    /// Applies a workflow, perhaps cancels it, and perhaps retries it after that.
    pub async fn owns(self: Arc<Self>, index: usize) {
        let chance = self.chance.own(index as u64);
        tokio::time::sleep(chance.upto(APPLIED)).await;
        let workflow = self.plan.workflow(index);
        self.objects.put(plan::KIND, workflow);
        if !chance.of_hundred(self.settings.faults.cancelled) {
            return;
        }
        tokio::time::sleep(chance.upto(CANCELS)).await;
        if chance.coin() {
            self.cancel(index, Wish::Cancelled);
            return;
        }
        self.cancel(index, Wish::Retried);
        let from = if chance.coin() { RetryFrom::Start } else { RetryFrom::Failed };
        let is_cancelled = || {
            self.workflow(index).is_some_and(|workflow| {
                let status = workflow.status;
                status.state.ended() && !status.requests.cancel.is_empty()
            })
        };
        while !is_cancelled() {
            tokio::time::sleep(chance.upto(LOOKS)).await;
        }
        self.retry(index, from);
    }

    /// Requests the cancellation of a workflow.
    pub fn cancel(&self, index: usize, wish: Wish) {
        self.wishes().insert(index, wish);
        let annotations = json!({ CANCEL_REQUEST: "1" });
        self.annotate(index, &annotations);
    }

    /// Requests a retry of a workflow.
    pub fn retry(&self, index: usize, from: RetryFrom) {
        self.wishes().insert(index, Wish::Retried);
        let from = match from {
            RetryFrom::Start => "start",
            RetryFrom::Failed => "failed",
        };
        self.annotate(index, &json!({ RETRY_REQUEST: "1", RETRY_FROM: from }));
    }

    fn annotate(&self, index: usize, annotations: &Value) {
        let patch = json!({ "metadata": { "annotations": annotations } });
        self.objects.patch(plan::KIND, &plan::key(index), patch);
    }

    /// Switches the second machine of a workflow on whenever the workflow waits for the agent of
    /// this machine. The box may boot only the first machine, which the workflow's `hardwareRef`
    /// names.
    pub async fn tends(self: Arc<Self>, second: usize) {
        let Some(first) = self.plan.first(second) else { return };
        let (nuc, agent) = (&self.nucs[&second], plan::mac(second).to_string());
        loop {
            tokio::time::sleep(LOOKS).await;
            let Some(workflow) = self.workflow(first) else { continue };
            if self.is_over(first, &workflow) {
                return;
            }
            let is_awaited =
                !workflow.status.state.ended() && queue::needs(&workflow.status, &agent);
            if is_awaited && !nuc.is_at_work() {
                nuc.reset();
            }
        }
    }

    /// Times of blackouts. They are drawn at the start, so that one seed always has the same
    /// number.
    pub fn blackouts(&self) -> Vec<Duration> {
        self.chance.moments(self.settings.faults.blackout)
    }

    /// Cuts the power of the box and of some machines in the same instant.
    pub async fn has_blackout(self: Arc<Self>, moment: Duration) {
        let chance = self.chance.own(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX));
        tokio::time::sleep(moment).await;
        self.count(|summary| summary.blackouts += 1);
        self.kill_box(chance.upto(AWAY));
        for nuc in self.nucs.values() {
            let (dark, comes_back) = (chance.upto(DARK), chance.coin());
            if chance.of_hundred(REACHED) {
                nuc.has_power_cut(dark, comes_back);
            }
        }
    }
}
