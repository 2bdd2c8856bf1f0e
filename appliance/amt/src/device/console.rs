//! Serial console: switches serial-over-LAN on and opens its session.

use std::sync::Arc;

use tokio::io::DuplexStream;

use super::{
    Amt, BOOT_CAPABILITIES, CAPABILITIES_KEY, CONSENT, REDIRECTION, REDIRECTION_OFF, malformed,
    restore_redirection, set_redirection,
};
use crate::identity::Consent;
use crate::line::Turn;
use crate::{Error, redirection};

/// Bit of `EnabledState` for serial-over-LAN, in addition to [`REDIRECTION_OFF`].
const SERIAL_OVER_LAN: u32 = 2;
/// Fields of a Put of AMT_RedirectionService, in the order of the schema.
const FIELDS: [&str; 7] = [
    "CreationClassName",
    "ElementName",
    "EnabledState",
    "ListenerEnabled",
    "Name",
    "SystemCreationClassName",
    "SystemName",
];

impl Amt {
    /// Opens the serial console. The firmware has one session of it. The stream ends with the
    /// session; a drop of the stream ends the session. Serial-over-LAN is switched on if it is off.
    ///
    /// # Errors
    /// The machine does not answer, refuses the login, has no serial-over-LAN, or another client
    /// has the session.
    pub async fn console(&self) -> Result<DuplexStream, Error> {
        let owned = Arc::new(());
        let prepared = async |turn: &mut Turn<'_>| {
            prepare(turn).await?;
            turn.state.console = Arc::downgrade(&owned);
            Ok(turn.pin())
        };
        let pin = self.line.turn(&self.endpoint, prepared).await?;
        match redirection::open(&self.endpoint, pin, owned).await {
            Err(error @ Error::Console(_)) => Err(self.explained(error).await),
            opened => opened,
        }
    }

    /// Replaces the error of a refused console if the firmware requires the consent of a user.
    async fn explained(&self, error: Error) -> Error {
        let read = async |turn: &mut Turn<'_>| turn.find(CONSENT, &[]).await;
        let consent = self.line.turn(&self.endpoint, read).await.ok().flatten();
        match consent.as_ref().and_then(Consent::read) {
            Some(consent) if consent.is_missing() => Error::Consent { source: Box::new(error) },
            _ => error,
        }
    }
}

/// Switches serial-over-LAN and its listener on. IDE-R stays as it is.
async fn prepare(turn: &mut Turn<'_>) -> Result<(), Error> {
    restore_redirection(turn).await;
    let missing = |reason| Error::Unsupported { what: "the serial console", reason };
    if let Some(capabilities) = turn.find(BOOT_CAPABILITIES, CAPABILITIES_KEY).await? {
        let flag = capabilities.flag("SOL");
        if flag.map_err(|source| malformed(BOOT_CAPABILITIES, source))? == Some(false) {
            return Err(missing("the firmware has no serial-over-LAN (AMT_BootCapabilities)"));
        }
    }
    let service = turn.find(REDIRECTION, &[]).await?;
    let service = service
        .ok_or_else(|| missing("the firmware does not have the class AMT_RedirectionService"))?;
    let unreadable = |source| malformed(REDIRECTION, source);
    let state = service.number::<u32>("EnabledState").map_err(unreadable)?;
    let state = state.unwrap_or(REDIRECTION_OFF) | REDIRECTION_OFF;
    if state & SERIAL_OVER_LAN == 0 {
        set_redirection(turn, state | SERIAL_OVER_LAN).await?;
    }
    if service.flag("ListenerEnabled").map_err(unreadable)? == Some(false) {
        let fields: Vec<(String, String)> = FIELDS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), service.child(name)?.text.clone())))
            .map(|(name, value)| match name.as_str() {
                "ListenerEnabled" => (name, "true".to_owned()),
                "EnabledState" => (name, (state | SERIAL_OVER_LAN).to_string()),
                _ => (name, value),
            })
            .collect();
        turn.put(REDIRECTION, &[], &fields).await?;
    }
    Ok(())
}
