//! Boot device of the next boot: capabilities, then settings, then the source.

use super::{Amt, BOOT_CAPABILITIES, CAPABILITIES_KEY, explained, malformed, restore_redirection};
use crate::boot::https::{self, Availability, HttpsUrl, RootCertificate};
use crate::boot::{BootTarget, https_settings, next, settings};
use crate::envelope::{Class, Parameter, Selectors};
use crate::line::{Security, Turn};
use crate::{Error, ReturnTable, ReturnValue};

const BOOT_SETTINGS: Class = Class("AMT_BootSettingData");
const BOOT_CONFIGURATION: Class = Class("CIM_BootConfigSetting");
const BOOT_SERVICE: Class = Class("CIM_BootService");
const BOOT_SOURCE: Class = Class("CIM_BootSourceSetting");
const CERTIFICATE: Class = Class("AMT_PublicKeyCertificate");
const KEYS: Class = Class("AMT_PublicKeyManagementService");
/// Return value for a certificate that is stored already (AMT status code).
const DUPLICATE: u32 = 2058;

/// Key of the only instance of this class. AMT 10 answers a `Get` with the key only.
const SETTINGS_KEY: Selectors<'static> = &[("InstanceID", "Intel(r) AMT:BootSettingData 0")];
/// Keys of the only boot configuration.
const CONFIGURATION: Selectors<'static> = &[("InstanceID", "Intel(r) AMT: Boot Configuration 0")];
/// Role of a boot configuration that the next boot uses up (CIM_BootService).
const NEXT_SINGLE_USE: &str = "1";

impl Amt {
    /// Sets the boot device of the next boot, and switches off all other options of that boot.
    /// For [`BootTarget::Https`], see [`Amt::set_https_boot`].
    ///
    /// # Errors
    /// The machine does not answer, cannot boot from the device, or refuses a request.
    pub async fn set_boot(&self, target: BootTarget) -> Result<(), Error> {
        self.change_boot(target, async |turn| {
            if let Some(capabilities) = turn.find(BOOT_CAPABILITIES, CAPABILITIES_KEY).await? {
                let checked = target.check(&capabilities);
                checked.map_err(|source| malformed(BOOT_CAPABILITIES, source))??;
            }
            let read = turn.find(BOOT_SETTINGS, SETTINGS_KEY).await?.ok_or_else(missing)?;
            let shows_screen = turn.state.console.strong_count() > 0;
            Ok(settings(target, &read, shows_screen))
        })
        .await
    }

    /// Sets the URL of the program that the next boot loads, by UEFI HTTPS boot. The firmware must
    /// trust the certificate of the server: the root certificate of the endpoint is stored in AMT.
    ///
    /// # Errors
    /// The URL is not valid, the connection has no TLS, the firmware or its setup does not permit
    /// UEFI HTTPS boot, or the machine does not answer or refuses a request.
    pub async fn set_https_boot(&self, url: &str) -> Result<(), Error> {
        let url = HttpsUrl::new(url)?;
        self.check_security().map_err(https::unavailable)?;
        self.change_boot(BootTarget::Https, async |turn| {
            let capabilities = turn.find(BOOT_CAPABILITIES, CAPABILITIES_KEY).await?;
            let read = turn.find(BOOT_SETTINGS, SETTINGS_KEY).await?;
            let found = https::availability(capabilities.as_ref(), read.as_ref());
            let found = found.map_err(|source| malformed(BOOT_SETTINGS, source))?;
            self.line.learn_https_boot(found);
            found.map_err(https::unavailable)?;
            if let Some(root) = &self.endpoint.boot_root {
                trust(turn, root).await?;
            }
            Ok(https_settings(&url, &read.ok_or_else(missing)?))
        })
        .await
    }

    /// Returns whether the machine can boot by UEFI HTTPS, as the firmware last reported; the
    /// error is the reason, as a clause. `None` before the first answer of the machine.
    pub fn https_boot(&self) -> Option<Availability> {
        match self.check_security() {
            Err(reason) => Some(Err(reason)),
            Ok(()) => self.line.https_boot(),
        }
    }

    /// Checks the protection of the connection, without a request to the machine.
    fn check_security(&self) -> Availability {
        match self.endpoint.security {
            Security::Plain => Err(https::NEEDS_TLS),
            Security::Tls(_) => Ok(()),
        }
    }

    /// Reads at intervals whether the machine can boot by UEFI HTTPS. An error changes nothing: a
    /// request for such a boot reports it.
    pub(super) async fn learn_https_boot(&self) {
        if self.check_security().is_err() || self.line.has_learned() {
            return;
        }
        let read = async |turn: &mut Turn<'_>| {
            let capabilities = turn.find(BOOT_CAPABILITIES, CAPABILITIES_KEY).await?;
            let settings = turn.find(BOOT_SETTINGS, SETTINGS_KEY).await?;
            let found = https::availability(capabilities.as_ref(), settings.as_ref());
            found.map_err(|source| malformed(BOOT_SETTINGS, source))
        };
        match self.line.turn(&self.endpoint, read).await {
            Ok(found) => self.line.learn_https_boot(found),
            Err(error) => {
                tracing::debug!(error = %stdx::chain(&error), "AMT boot options not read");
            }
        }
    }

    /// Reads the boot device of the next boot. AMT reports only the firmware setup; other devices
    /// are those that this process has set.
    ///
    /// # Errors
    /// The machine does not answer, or sends an invalid answer.
    pub async fn boot(&self) -> Result<Option<BootTarget>, Error> {
        let read = async |turn: &mut Turn<'_>| {
            let Some(settings) = turn.find(BOOT_SETTINGS, SETTINGS_KEY).await? else {
                return Ok(None);
            };
            let next = next(turn.state.boot, &settings);
            next.map_err(|source| malformed(BOOT_SETTINGS, source))
        };
        self.line.turn(&self.endpoint, read).await
    }

    /// Sets the boot device of the next boot. `prepare` checks the device, and returns the fields
    /// of AMT_BootSettingData.
    async fn change_boot(
        &self,
        target: BootTarget,
        prepare: impl AsyncFnOnce(&mut Turn<'_>) -> Result<Vec<(String, String)>, Error>,
    ) -> Result<(), Error> {
        let change = async |turn: &mut Turn<'_>| {
            restore_redirection(turn).await;
            turn.state.boot = None;
            let fields = prepare(turn).await?;
            let done = write(turn, target, &fields).await;
            let cleared = match &done {
                // Half of the options must not be in force at the next boot.
                Err(Error::Refused { .. } | Error::Fault { .. } | Error::Consent { .. }) => {
                    change_boot_order(turn, None).await
                }
                _ => Ok(()),
            };
            if let Err(error) = cleared {
                tracing::warn!(error = %stdx::chain(&error), "AMT boot options not cleared");
            }
            done?;
            turn.state.boot = Some(target);
            Ok(())
        };
        self.line.turn(&self.endpoint, change).await
    }
}

/// Stores a root certificate in AMT, unless it is there.
async fn trust(turn: &mut Turn<'_>, root: &RootCertificate) -> Result<(), Error> {
    if turn.list(CERTIFICATE).await?.iter().any(|stored| root.is_stored_as(stored)) {
        return Ok(());
    }
    let (method, blob) = ("AddTrustedRootCertificate", root.blob());
    let parameters = [Parameter::Text("CertificateBlob", &blob)];
    match turn.query(KEYS, method, &parameters).await? {
        (_, 0 | DUPLICATE) => Ok(()),
        (_, value) => {
            let value = ReturnValue { value, table: ReturnTable::State };
            Err(Error::Refused { step: format!("{KEYS}.{method}"), value })
        }
    }
}

fn missing() -> Error {
    Error::Unsupported {
        what: "a boot device",
        reason: "the firmware does not have the class AMT_BootSettingData",
    }
}

async fn write(
    turn: &mut Turn<'_>,
    target: BootTarget,
    fields: &[(String, String)],
) -> Result<(), Error> {
    // Some firmware refuses BIOSSetup while a source is set, and keeps an unused source.
    change_boot_order(turn, None).await?;
    turn.put(BOOT_SETTINGS, &[], fields).await?;
    let parameters = [
        Parameter::Reference("BootConfigSetting", BOOT_CONFIGURATION, CONFIGURATION),
        Parameter::Text("Role", NEXT_SINGLE_USE),
    ];
    let done = turn.invoke(BOOT_SERVICE, "SetBootConfigRole", &parameters, ReturnTable::Boot).await;
    explained(turn, done).await?;
    match target.source() {
        Some(source) => change_boot_order(turn, Some(source)).await,
        None => Ok(()),
    }
}

/// Sets the source of the next boot; `None` removes it. An empty `Source` is against the schema.
async fn change_boot_order(turn: &mut Turn<'_>, source: Option<&str>) -> Result<(), Error> {
    let keys = source.map(|source| [("InstanceID", source)]);
    let parameters: Vec<Parameter<'_>> =
        keys.iter().map(|keys| Parameter::Reference("Source", BOOT_SOURCE, keys)).collect();
    let method = "ChangeBootOrder";
    let done = turn.invoke(BOOT_CONFIGURATION, method, &parameters, ReturnTable::Boot).await;
    explained(turn, done).await
}
