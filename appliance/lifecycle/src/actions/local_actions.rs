//! Actions that people start at the box itself: at the panel or at the monitor's keyboard. The
//! actions need no password. The setting `panel.actions` lists the allowed actions.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::meta::ObjectKey;
use api::network::{Mode, NETWORK, Network};
use box_console::Actions;
use machine_actions::{ActionRequest, MachineActions, change};
use objects::{ObjectError, Objects, read};
use panel::model::{Action, MachineAction, MachineOrder, PanelOrder};
use serde_json::Value;
use status::source::{Filling, StatusSource};
use status::view::StatusView;
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
    /// The action is a permission, or the panel does it by itself.
    #[error("{0} is not an action on the box")]
    NotOfBox(&'static str),
    /// The BMC of the machine did not let the machine blink, as a sentence.
    #[error("{0}")]
    Identify(String),
    /// The request could not be stored.
    #[error(transparent)]
    Machine(#[from] machine_actions::ActionError),
    /// An object could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// BMCs of machines, which let a machine blink.
pub trait MachineLeds: Send + Sync + 'static {
    /// Lets the machine with this name blink.
    ///
    /// # Errors
    /// The machine has no BMC, or its BMC cannot do so now; the reason is a sentence.
    fn identify<'a>(
        &'a self,
        machine: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
}

/// Executor of the actions of panel and keyboard.
#[derive(Clone)]
pub struct LocalActions {
    /// Access to the objects that actions change.
    pub objects: Arc<dyn Objects>,
    /// LEDs of machines, for the identify action of a machine.
    pub machine_leds: Arc<dyn MachineLeds>,
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
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(self.carry_out_at(order, place))
    }
}

impl LocalActions {
    /// Runs an action. `where_at` is the place in the log, such as `panel`.
    async fn carry_out_at(&self, order: PanelOrder, where_at: &str) -> Result<(), String> {
        let leaving = match &order {
            PanelOrder::Box(action) => reset::meant(*action),
            PanelOrder::Machine(_) => None,
        };
        if let Some(leaving) = leaving {
            let (audit, at) = (self.audit.clone(), where_at.to_owned());
            let leave = move || reset::carry_out(leaving, &at, &audit);
            let left = tokio::task::spawn_blocking(leave).await;
            return left.unwrap_or_else(|error| Err(error.to_string()));
        }
        let (what, machine) = match &order {
            PanelOrder::Box(action) => (action.setting(), ""),
            PanelOrder::Machine(order) => (order.action.word(), order.machine.as_str()),
        };
        tracing::info!(what, machine, "requested at the {where_at}");
        let done = self.do_it(&order).await;
        // Showing the PIN changes nothing, so it is not audited.
        if order != PanelOrder::Box(Action::ShowPin) {
            self.audit.local(where_at, what, machine, done.is_ok());
        }
        done.map_err(|error| {
            let reason = stdx::chain(&error);
            tracing::warn!(what, machine, error = reason, "not done");
            reason
        })
    }

    async fn do_it(&self, order: &PanelOrder) -> Result<(), ActionError> {
        match order {
            PanelOrder::Box(Action::Identify) => self.identify_state.begin(),
            PanelOrder::Box(Action::Rescan) => self.rescan().await?,
            // The panel shows the PIN itself.
            PanelOrder::Box(Action::ShowPin) => {}
            PanelOrder::Box(action) => return Err(ActionError::NotOfBox(action.setting())),
            PanelOrder::Machine(order) => self.act_on_machine(order).await?,
        }
        Ok(())
    }

    async fn act_on_machine(&self, order: &MachineOrder) -> Result<(), ActionError> {
        let MachineOrder { action, machine, workflow } = order;
        match action {
            MachineAction::Identify => {
                self.machine_leds.identify(machine).await.map_err(ActionError::Identify)
            }
            MachineAction::Table(action) => {
                let actions = MachineActions { objects: Arc::clone(&self.objects) };
                Ok(actions.request(&ActionRequest::new(*action, machine, workflow)).await?)
            }
        }
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
}

#[cfg(test)]
mod tests;
