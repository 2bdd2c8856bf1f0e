//! What the box does when somebody asks at its own front: at the panel or at the monitor's
//! keyboard. Whoever stands there needs no password; `panel.actions` says what may be asked for.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::bmc::JOB;
use api::meta::{ObjectKey, Resource};
use api::network::{Mode, NETWORK, Network};
use api::tinkerbell::{Hardware, RETRY_REQUEST, WORKFLOW};
use console::Actions;
use objects::{ObjectError, Objects, read};
use panel::model::{Action, PanelOrder};
use provisioning::index::Index;
use serde_json::{Value, json};
use status::source::{Filling, StatusSource};
use status::view::{Power, StatusView};
use stdx::Clock;
use thiserror::Error;

use crate::audit::Audit;
use crate::reset;

/// How long the box blinks for whoever looks for it (LE-3).
const IDENTIFY_FOR: Duration = Duration::from_secs(60);
/// Times that a change is tried again because somebody else changed the same in between.
const TRIES_MAX: usize = 4;

/// Whether somebody looks for this box among others; clones share it.
#[derive(Clone, Default)]
pub struct IdentifyState(Arc<Mutex<Option<Instant>>>);

impl IdentifyState {
    /// How long it blinks.
    pub const SECONDS: u64 = IDENTIFY_FOR.as_secs();

    /// Somebody looks for it from now on.
    pub fn begin(&self) {
        self.since(Instant::now());
    }

    fn since(&self, began: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
    }

    /// Somebody still does.
    pub fn still(&self) -> bool {
        let began = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        began.is_some_and(|began| began.elapsed() < IDENTIFY_FOR)
    }
}

impl StatusSource for IdentifyState {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        view.identifying = self.still();
        Box::pin(std::future::ready(()))
    }
}

/// Why something was not done.
#[derive(Debug, Error)]
pub enum ActionError {
    /// Nobody of that name.
    #[error("there is no machine {0} here any more")]
    NoMachine(String),
    /// It has no workflow.
    #[error("{0} has no workflow to try again")]
    NoWorkflow(String),
    /// Nothing switches it.
    #[error("{0} has no BMC; name its BMC Machine in the Hardware's spec.bmcRef")]
    NoBmc(String),
    /// Nobody knows what to switch it to.
    #[error("whether {0} is on is not known: its BMC does not answer")]
    PowerUnknown(String),
    /// Not one of [`config::panel::DOES`].
    #[error("this version cannot do it")]
    Unable,
    /// An object could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Who does it.
#[derive(Clone)]
pub struct LocalActions {
    /// Objects to change.
    pub objects: Arc<dyn Objects>,
    /// Machines by name.
    pub index: Index,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who blinks.
    pub identify_state: IdentifyState,
    /// The audit log.
    pub audit: Audit,
}

impl Actions for LocalActions {
    fn carry_out<'a>(
        &'a self,
        order: PanelOrder,
        place: &'a str,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.carry_out_at(order, place))
    }
}

impl LocalActions {
    /// Does what somebody asked for; `where_at` is how the log names the place.
    async fn carry_out_at(&self, order: PanelOrder, where_at: &str) {
        let PanelOrder { action, machine } = order;
        if let Some(leaving) = reset::meant(action) {
            let (audit, at) = (self.audit.clone(), where_at.to_owned());
            // Why the box goes on is in its log.
            let leave = move || reset::carry_out(leaving, &at, &audit);
            let _ = tokio::task::spawn_blocking(leave).await;
            return;
        }
        let what = action.setting();
        tracing::info!(what, machine, "asked for at the {where_at}");
        let detail = machine.clone().unwrap_or_default();
        let done = self.do_it(action, machine).await;
        // A code that is shown changes nothing.
        if action != Action::ShowPin {
            self.audit.local(where_at, what, &detail, done.is_ok());
        }
        if let Err(error) = done {
            tracing::warn!(what, error = %stdx::chain(&error), "not done");
        }
    }

    async fn do_it(&self, action: Action, machine: Option<String>) -> Result<(), ActionError> {
        match (action, machine) {
            (Action::Identify, _) => self.identify_state.begin(),
            (Action::Rescan, _) => self.rescan().await?,
            (Action::Retry, Some(machine)) => self.retry(&machine).await?,
            (Action::MachinePower, Some(machine)) => self.switch(&machine).await?,
            // Nothing of it leaves the panel.
            (Action::ShowPin, _) => {}
            _ => return Err(ActionError::Unable),
        }
        Ok(())
    }

    /// Has every network that is served looked through for other DHCP servers. One that stopped
    /// because of another serves again once that is gone: it is a person who asks.
    async fn rescan(&self) -> Result<(), ActionError> {
        let now = self.clock.now().to_string();
        for object in self.objects.list(NETWORK, None).await? {
            let network: Network = read(object)?;
            if network.spec.mode == Mode::Off {
                continue;
            }
            let key = ObjectKey::new("", &network.metadata.name);
            let rearm = |object: &mut Value| object["spec"]["rearm"] = now.as_str().into();
            self.change(NETWORK, &key, rearm).await?;
        }
        Ok(())
    }

    /// Another try of the machine's last workflow.
    async fn retry(&self, machine: &str) -> Result<(), ActionError> {
        let mut last = self.named(machine)?.into_iter().filter_map(|hardware| {
            let (key, _) = self.index.runs.latest(&hardware.key())?;
            let ended = self.index.course(&key).is_some_and(|course| course.work.state.ended());
            Some((ended, key))
        });
        // Of two machines of one name, the one that can be tried again.
        let first = last.next().ok_or_else(|| ActionError::NoWorkflow(machine.to_owned()))?;
        let key = if first.0 { first } else { last.find(|it| it.0).unwrap_or(first) }.1;
        let request = stdx::random_hex(8);
        let annotate = |object: &mut Value| {
            object["metadata"]["annotations"][RETRY_REQUEST] = request.as_str().into();
        };
        self.change(WORKFLOW, &key, annotate).await?;
        Ok(())
    }

    /// The machine on if it is off, and off if it is on.
    async fn switch(&self, machine: &str) -> Result<(), ActionError> {
        let hardware = self.named(machine)?;
        let reached = hardware.iter().find_map(|hardware| {
            let reference = hardware.spec.bmc_ref.as_ref()?;
            Some(ObjectKey::new(&hardware.metadata.namespace, &reference.name))
        });
        let bmc = reached.ok_or_else(|| ActionError::NoBmc(machine.to_owned()))?;
        let word = match self.index.power(&bmc) {
            Power::On => "off",
            Power::Off => "on",
            Power::Unknown => return Err(ActionError::PowerUnknown(machine.to_owned())),
        };
        let job = json!({
            "apiVersion": JOB.api_version(),
            "kind": JOB.kind,
            "metadata": {
                "generateName": format!("{}-power-{word}-", bmc.name),
                "namespace": bmc.namespace,
            },
            "spec": {
                "machineRef": { "name": bmc.name, "namespace": bmc.namespace },
                "tasks": [{ "powerAction": word }],
            },
        });
        self.objects.create(JOB, job).await?;
        Ok(())
    }

    /// Machines of that name: one, but for those of several namespaces.
    fn named(&self, machine: &str) -> Result<Vec<Arc<Hardware>>, ActionError> {
        let mut all = self.index.machines();
        all.retain(|hardware| hardware.metadata.name == machine);
        if all.is_empty() { Err(ActionError::NoMachine(machine.to_owned())) } else { Ok(all) }
    }

    async fn change(
        &self,
        resource: Resource,
        key: &ObjectKey,
        edit: impl Fn(&mut Value),
    ) -> Result<(), ObjectError> {
        let mut tries = 1;
        loop {
            let mut object = self.objects.get(resource, key).await?;
            edit(&mut object);
            match self.objects.update(resource, object).await {
                Err(ObjectError::Conflict(_)) if tries < TRIES_MAX => tries += 1,
                done => return done.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests;
