//! Drivers by HTTP requests: converts each action to the requests of the crate `webhook`.

use std::sync::Arc;

use tokio::sync::Mutex;
use webhook::{Error as WebhookError, HomeAssistant, Plug, Rpc};

use crate::{
    BootControl, BootOverride, Capabilities, Driver, Endpoint, Error, Pending, Power, PowerAction,
    Protocol,
};

/// Lock of the requests to one server: plugs serve one connection at a time.
pub(crate) type WebhookLine = Mutex<()>;

/// Power actions of an outlet. It has no shutdown and no reset without a loss of power.
const OUTLET_POWER: &[PowerAction] = &[PowerAction::On, PowerAction::Off, PowerAction::Cycle];

/// Driver of one machine by HTTP requests.
#[derive(Debug)]
pub(crate) struct WebhookDriver {
    line: Arc<WebhookLine>,
    endpoint: Endpoint,
}

/// Client of one server.
enum Client {
    Rpc(Box<Rpc>),
    HomeAssistant(Box<HomeAssistant>),
    Plug { plug: Box<Plug>, off_below_watts: f64 },
}

/// Checks the options of a webhook, Home Assistant or a plug. Sends nothing.
pub(super) fn check(endpoint: &Endpoint) -> Result<(), Error> {
    Client::of(endpoint).map(drop).map_err(|source| failed(endpoint, source))
}

fn failed(endpoint: &Endpoint, source: WebhookError) -> Error {
    Error::Webhook { address: endpoint.address.clone(), source: Box::new(source) }
}

impl Client {
    /// Returns the client; `None` for another protocol.
    fn of(endpoint: &Endpoint) -> Result<Option<Self>, WebhookError> {
        let login = &endpoint.credentials;
        let host = &endpoint.address.host;
        Ok(Some(match &endpoint.protocol {
            Protocol::Rpc(options, tls) => {
                Self::Rpc(Box::new(Rpc::new((**options).clone(), host, *tls)?))
            }
            Protocol::HomeAssistant { entity, delay, tls } => {
                let token = login.password.clone();
                Self::HomeAssistant(Box::new(HomeAssistant::new(
                    host, entity, token, *delay, *tls,
                )?))
            }
            Protocol::Plug(plug) => {
                let has_login = !login.password.expose().is_empty();
                let login = has_login.then(|| (login.username.clone(), login.password.clone()));
                let off_below_watts = plug.off_below_watts.into();
                let (preset, address) = (plug.preset.clone(), plug.address.clone());
                let plug = Box::new(Plug::new(preset, address, login, plug.tls)?);
                Self::Plug { plug, off_below_watts }
            }
            Protocol::Ipmi { .. }
            | Protocol::Amt(_)
            | Protocol::Redfish(_)
            | Protocol::Poe(_)
            | Protocol::WakeOnLan(_) => return Ok(None),
        }))
    }

    async fn power(&self) -> Result<Power, WebhookError> {
        let power = match self {
            Self::Rpc(rpc) => rpc.power().await?,
            Self::HomeAssistant(switch) => switch.power().await?,
            Self::Plug { plug, off_below_watts } => plug.outlet().await?.power(*off_below_watts),
        };
        Ok(match power {
            webhook::Power::On => Power::On,
            webhook::Power::Off => Power::Off,
            webhook::Power::Unknown => Power::Unknown,
        })
    }

    async fn set_power(&self, action: PowerAction) -> Result<(), WebhookError> {
        match (self, action) {
            (Self::Rpc(rpc), action) => rpc.set_power(action.word()).await,
            (Self::HomeAssistant(switch), PowerAction::On) => switch.set(true).await,
            (Self::HomeAssistant(switch), PowerAction::Off) => switch.set(false).await,
            (Self::HomeAssistant(switch), PowerAction::Cycle) => {
                switch.set(false).await?;
                tokio::time::sleep(webhook::plug::PAUSE).await;
                switch.set(true).await
            }
            (Self::Plug { plug, off_below_watts }, PowerAction::On) => {
                let outlet = plug.outlet().await?;
                match (outlet.power(*off_below_watts), outlet.is_on) {
                    (webhook::Power::On, _) => Ok(()),
                    // The machine is off although its outlet is on: only the return of the power
                    // starts it.
                    (_, Some(true)) => plug.cycle().await,
                    _ => plug.set(true).await,
                }
            }
            (Self::Plug { plug, .. }, PowerAction::Off) => plug.set(false).await,
            (Self::Plug { plug, .. }, PowerAction::Cycle) => plug.cycle().await,
            (
                Self::HomeAssistant(_) | Self::Plug { .. },
                PowerAction::Soft | PowerAction::Reset,
            ) => Err(WebhookError::Unsupported {
                driver: "a switch of the outlet".to_owned(),
                what: if action == PowerAction::Soft { "shut down" } else { "reset" },
            }),
        }
    }
}

impl WebhookDriver {
    pub fn new(line: Arc<WebhookLine>, endpoint: Endpoint) -> Self {
        Self { line, endpoint }
    }

    fn failed(&self, source: WebhookError) -> Error {
        failed(&self.endpoint, source)
    }

    /// Returns the client. The registry opens this driver for its own protocols only.
    fn client(&self) -> Result<Client, Error> {
        let client = Client::of(&self.endpoint).map_err(|source| self.failed(source))?;
        client.ok_or_else(|| {
            let (driver, what) = (self.name().to_owned(), "use this protocol");
            self.failed(WebhookError::Unsupported { driver, what })
        })
    }

    async fn change_power(&self, action: PowerAction) -> Result<(), Error> {
        let client = self.client()?;
        let _turn = self.line.lock().await;
        let is_final = matches!(action, PowerAction::Cycle | PowerAction::Reset);
        client.set_power(action).await.map_err(|source| {
            // The server may have received the request.
            let is_lost = source.is_transient();
            let error = self.failed(source);
            if !(is_final && is_lost) {
                return error;
            }
            let (address, source) = (self.endpoint.address.clone(), Box::new(error));
            Error::Unanswered { address, action, source }
        })
    }

    async fn change_boot_device(&self, boot: BootOverride) -> Result<(), Error> {
        let BootOverride { device, persistent, efi } = boot;
        let Client::Rpc(rpc) = self.client()? else {
            let reason = "the switch of an outlet has no boot device";
            return Err(Error::BootDevice { driver: self.name(), device, reason });
        };
        let _turn = self.line.lock().await;
        let set = rpc.set_boot_device(&device.to_string(), persistent, efi).await;
        set.map_err(|source| self.failed(source))
    }
}

impl Driver for WebhookDriver {
    fn name(&self) -> &'static str {
        match self.endpoint.protocol {
            Protocol::HomeAssistant { .. } => "home assistant",
            Protocol::Plug(_) => "plug",
            _ => "webhook",
        }
    }

    fn capabilities(&self) -> Capabilities {
        let (power, boot) = match self.endpoint.protocol {
            Protocol::HomeAssistant { .. } | Protocol::Plug(_) => (OUTLET_POWER, BootControl::None),
            // The webhook of the owner decides what it supports.
            _ => (Capabilities::ALL_POWER, BootControl::Always),
        };
        Capabilities { power, boot, features: Vec::new(), missing: Vec::new(), weakness: None }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(async move {
            let client = self.client()?;
            let _turn = self.line.lock().await;
            client.power().await.map_err(|source| self.failed(source))
        })
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        Box::pin(self.change_power(action))
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        Box::pin(self.change_boot_device(boot))
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        // No server reports the boot device.
        Box::pin(std::future::ready(Ok(None)))
    }
}
