//! Actions that people start at the box itself: at the panel or at the monitor's keyboard. The
//! actions need no password. The setting `panel.actions` lists the allowed actions.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::meta::ObjectKey;
use api::network::{Mode, NETWORK, Network};
use api::tinkerbell::Hardware;
use box_console::Actions;
use machine_actions::{ActionRequest, MachineActions, change};
use objects::{ObjectError, Objects, read};
use panel::model::{Action, PanelOrder};
use provisioning::index::Index;
use serde_json::Value;
use status::source::{Filling, StatusSource};
use status::view::{Power, StatusView};
use stdx::Clock;
use thiserror::Error;

use crate::actions::reset;
use crate::audit::Audit;

/// Duration of blinking after an identify action (LE-3): one minute.
const IDENTIFY_FOR: Duration = Duration::from_secs(60);

/// State of the identify action, which makes the box blink for a minute. Clones share the state.
#[derive(Clone, Default)]
pub struct IdentifyState(Arc<Mutex<Option<Instant>>>);

impl IdentifyState {
    /// Duration of blinking in seconds.
    pub const SECONDS: u64 = IDENTIFY_FOR.as_secs();

    /// Starts blinking, or restarts its duration.
    pub fn begin(&self) {
        self.since(Instant::now());
    }

    fn since(&self, began: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
    }

    /// True if the box still blinks.
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

/// Reason why an action failed.
#[derive(Debug, Error)]
pub enum ActionError {
    /// No Hardware has this name.
    #[error("machine {0} no longer exists")]
    NoMachine(String),
    /// The machine has no workflow to try again.
    #[error("{0} has no workflow to try again")]
    NoWorkflow(String),
    /// The Hardware names no BMC.
    #[error("{0} has no BMC; set spec.bmcRef of its Hardware to its BMC Machine")]
    NoBmc(String),
    /// The power state is unknown, so the opposite state is also unknown.
    #[error("the power state of {0} is unknown: its BMC does not respond")]
    PowerUnknown(String),
    /// The action is not one of [`config::panel::DOES`].
    #[error("this version does not support the action")]
    Unable,
    /// The request could not be stored.
    #[error(transparent)]
    Machine(#[from] machine_actions::ActionError),
    /// An object could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Executor of the actions of panel and keyboard.
#[derive(Clone)]
pub struct LocalActions {
    /// Access to the objects that actions change.
    pub objects: Arc<dyn Objects>,
    /// Index of machines and workflows.
    pub index: Index,
    /// Clock for the time that a rescan writes to a network's field `spec.rearm`.
    pub clock: Arc<dyn Clock>,
    /// State of the identify action.
    pub identify_state: IdentifyState,
    /// Audit log, which records the actions.
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
    /// Runs an action. `where_at` is the place in the log, such as `panel`.
    async fn carry_out_at(&self, order: PanelOrder, where_at: &str) {
        let PanelOrder { action, machine } = order;
        if let Some(leaving) = reset::meant(action) {
            let (audit, at) = (self.audit.clone(), where_at.to_owned());
            // The log holds the reason why the box could not be restarted or switched off.
            let leave = move || reset::carry_out(leaving, &at, &audit);
            let _ = tokio::task::spawn_blocking(leave).await;
            return;
        }
        let what = action.setting();
        tracing::info!(what, machine, "requested at the {where_at}");
        let detail = machine.clone().unwrap_or_default();
        let done = self.do_it(action, machine).await;
        // Showing the PIN changes nothing, so it is not audited.
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
            // The panel shows the PIN itself.
            (Action::ShowPin, _) => {}
            _ => return Err(ActionError::Unable),
        }
        Ok(())
    }

    /// Requests a scan for other DHCP servers on every network whose mode is not `Off`. A network
    /// that stopped because of another DHCP server may serve again if that server is gone.
    ///
    /// # Errors
    /// A network cannot be read or written.
    pub async fn rescan(&self) -> Result<(), ActionError> {
        let now = self.clock.now().to_string();
        for object in self.objects.list(NETWORK, None).await? {
            let network: Network = read(object)?;
            if network.spec.mode == Mode::Off {
                continue;
            }
            let key = ObjectKey::new("", &network.metadata.name);
            let rearm = |object: &mut Value| object["spec"]["rearm"] = now.as_str().into();
            change(&*self.objects, NETWORK, &key, rearm).await?;
        }
        Ok(())
    }

    /// Requests a retry of the machine's last workflow.
    async fn retry(&self, machine: &str) -> Result<(), ActionError> {
        let mut last = self.named(machine)?.into_iter().filter_map(|hardware| {
            let (key, _) = self.index.runs.latest(&hardware.key())?;
            let ended = self.index.course(&key).is_some_and(|course| course.work.state.ended());
            Some((ended, key))
        });
        // Several machines may share one name: the first one whose workflow has ended is chosen.
        let first = last.next().ok_or_else(|| ActionError::NoWorkflow(machine.to_owned()))?;
        let key = if first.0 { first } else { last.find(|it| it.0).unwrap_or(first) }.1;
        let retry = machine_actions::Action::Retry;
        self.request(ActionRequest::new(retry, machine, &key.name)).await
    }

    /// Switches the machine on if it is off, and off if it is on.
    async fn switch(&self, machine: &str) -> Result<(), ActionError> {
        let hardware = self.named(machine)?;
        let reached = hardware.iter().find_map(|hardware| {
            let reference = hardware.spec.bmc_ref.as_ref()?;
            Some(ObjectKey::new(&hardware.metadata.namespace, &reference.name))
        });
        let bmc = reached.ok_or_else(|| ActionError::NoBmc(machine.to_owned()))?;
        let action = match self.index.power(&bmc) {
            Power::On => machine_actions::Action::PowerOff,
            Power::Off => machine_actions::Action::PowerOn,
            Power::Unknown => return Err(ActionError::PowerUnknown(machine.to_owned())),
        };
        self.request(ActionRequest::new(action, machine, "")).await
    }

    async fn request(&self, request: ActionRequest) -> Result<(), ActionError> {
        let actions = MachineActions { objects: Arc::clone(&self.objects) };
        Ok(actions.request(&request).await?)
    }

    /// Returns the machines named `machine`, which may exist in several namespaces.
    fn named(&self, machine: &str) -> Result<Vec<Arc<Hardware>>, ActionError> {
        let mut all = self.index.machines();
        all.retain(|hardware| hardware.metadata.name == machine);
        if all.is_empty() { Err(ActionError::NoMachine(machine.to_owned())) } else { Ok(all) }
    }
}

#[cfg(test)]
mod tests;
