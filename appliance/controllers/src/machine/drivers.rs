//! Creation of a driver from the connection settings of a Machine.

mod http;
mod http_options;
mod redfish;
pub(super) mod sighted;
mod wake_on_lan;

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use api::bmc::{Connection, POE, Provider, SecretRef};
use api::core::{SECRET, Secret};
use api::meta::ObjectKey;
use bmc::{
    Address, AmtOptions, Credentials, Driver, Endpoint, Fingerprint, PoeSettings, Protocol,
    Security, Trust,
};

use objects::{Objects, fetch};

pub use sighted::connect_machine;

use crate::power::Sightings;

/// Optional key of a Secret: SHA-256 of the TLS certificate that the BMC must have.
const FINGERPRINT: &str = "certificateFingerprint";

/// Optional key of a Secret: root certificate in PEM that Intel AMT must trust for a boot by HTTPS.
const BOOT_ROOT: &str = "bootRootCertificate";

/// Factory of BMC drivers; tests use a fake.
pub trait Drivers: Send + Sync + 'static {
    /// Returns the driver of one BMC.
    fn open(&self, endpoint: Endpoint) -> Arc<dyn Driver>;

    /// Returns the requests that the box received from machines; `None` if it records none.
    fn sightings(&self) -> Option<Arc<dyn Sightings>> {
        None
    }
}

/// Factory that creates the drivers of the crate `bmc`.
#[derive(Clone, Default)]
pub struct BmcDrivers {
    /// Requests that the box received from machines.
    pub sightings: Option<Arc<dyn Sightings>>,
}

impl Drivers for BmcDrivers {
    fn open(&self, endpoint: Endpoint) -> Arc<dyn Driver> {
        Arc::from(bmc::registry::open(endpoint))
    }

    fn sightings(&self) -> Option<Arc<dyn Sightings>> {
        self.sightings.clone()
    }
}

/// Returns the driver for a connection, with the credentials from its Secret.
///
/// # Errors
/// The connection has no driver, its Secret is missing or incomplete, or an option is invalid.
pub async fn connect(
    objects: &dyn Objects,
    drivers: &dyn Drivers,
    connection: &Connection,
    owner: &ObjectKey,
) -> Result<Arc<dyn Driver>, String> {
    Ok(drivers.open(login(objects, connection, owner).await?))
}

/// Returns address and credentials for a connection. A Secret reference without namespace refers to
/// the namespace of `owner`.
///
/// # Errors
/// The connection has no driver, its Secret or a key of the Secret is missing, or an option is
/// invalid.
async fn login(
    objects: &dyn Objects,
    connection: &Connection,
    owner: &ObjectKey,
) -> Result<Endpoint, String> {
    let provider = connection.provider()?;
    let secrets = Secrets { objects, owner };
    let credentials = match (provider, connection.auth_secret_ref.name.as_str()) {
        // A webhook and a switch have their own keys, and magic packets and some plugs no login.
        (Provider::Rpc | Provider::Poe | Provider::WakeOnLan, _) | (Provider::Plug, "") => {
            Credentials::default()
        }
        _ => secrets.credentials(&connection.auth_secret_ref).await?,
    };
    let (address, protocol) = match provider {
        Provider::Ipmi => ipmi(connection)?,
        Provider::IntelAmt => intel_amt(connection, &secrets).await?,
        Provider::Redfish => {
            let pin = secrets.optional(&connection.auth_secret_ref, FINGERPRINT).await?;
            redfish::redfish(connection, pin)?
        }
        Provider::Rpc => http::rpc(connection, &secrets).await?,
        Provider::HomeAssistant => http::home_assistant(connection)?,
        Provider::Plug => http::plug(connection)?,
        Provider::Poe => poe(connection, &secrets).await?,
        Provider::WakeOnLan => wake_on_lan::wake_on_lan(connection, &secrets).await?,
    };
    let endpoint = Endpoint { address, credentials, protocol };
    bmc::check(&endpoint).map_err(|error| error.sentence())?;
    Ok(endpoint)
}

/// Secrets that the connection of a Machine refers to.
struct Secrets<'a> {
    objects: &'a dyn Objects,
    /// Object whose namespace a reference without a namespace means.
    owner: &'a ObjectKey,
}

impl Secrets<'_> {
    async fn get(&self, reference: &SecretRef) -> Result<(ObjectKey, Secret), String> {
        let namespace = match reference.namespace.as_str() {
            "" => &self.owner.namespace,
            other => other,
        };
        let key = ObjectKey::new(namespace, &reference.name);
        let secret = fetch(self.objects, SECRET, &key).await;
        let secret = secret.map_err(|error| format!("cannot read the BMC credentials: {error}"))?;
        Ok((key, secret))
    }

    /// Returns the value of one key of a Secret.
    async fn value(&self, reference: &SecretRef, name: &str) -> Result<stdx::Secret, String> {
        let (key, secret) = self.get(reference).await?;
        text(&key, &secret, name)
    }

    /// Returns the value of a key that may be absent or empty.
    async fn optional<T>(&self, reference: &SecretRef, name: &str) -> Result<Option<T>, String>
    where
        T: FromStr<Err: Display>,
    {
        let (key, secret) = self.get(reference).await?;
        let text = secret.text(name).filter(|text| !text.expose().trim().is_empty());
        let parsed = text.map(|text| text.expose().trim().parse::<T>());
        parsed.transpose().map_err(|error| format!("secret {key}, {name}: {error}"))
    }

    async fn credentials(&self, reference: &SecretRef) -> Result<Credentials, String> {
        let (key, secret) = self.get(reference).await?;
        Ok(Credentials {
            username: text(&key, &secret, "username")?.expose().to_owned(),
            password: text(&key, &secret, "password")?,
        })
    }
}

fn text(key: &ObjectKey, secret: &Secret, name: &str) -> Result<stdx::Secret, String> {
    secret.text(name).ok_or_else(|| format!("secret {key} has no readable key {name:?}"))
}

/// Address and protocol of a BMC, or the mistake in the options as a sentence.
type Target = Result<(Address, Protocol), String>;

/// Returns the first port that is set.
fn first_port(ports: [u16; 2], standard: u16) -> u16 {
    ports.into_iter().find(|port| *port != 0).unwrap_or(standard)
}

/// Returns the trust in a BMC's certificate; `None` for plain HTTP, which the Machine must state.
/// The pin of the Secret precedes `insecureTLS`.
fn trust(
    connection: &Connection,
    pin: Option<Fingerprint>,
    scheme: &str,
    [provider, field]: [&str; 2],
) -> Result<Option<Trust>, String> {
    let options = format!("connection.providerOptions.{provider}");
    match (scheme, pin) {
        ("http", Some(_)) => {
            Err(format!("the Secret has {FINGERPRINT}, which needs {field} https in {options}"))
        }
        ("http", None) => Ok(None),
        ("https" | "", Some(pin)) => Ok(Some(Trust::Pinned(pin))),
        ("https" | "", None) if connection.insecure_tls => Ok(Some(Trust::Any)),
        ("https" | "", None) => Ok(Some(Trust::FirstUse)),
        (other, _) => Err(format!("expected http or https in {options}.{field}, found {other:?}")),
    }
}

fn ipmi(connection: &Connection) -> Target {
    let options = connection.provider_options.as_ref().and_then(|it| it.ipmitool.clone());
    let options = options.unwrap_or_default();
    let port = first_port([options.port, connection.port], Address::IPMI_PORT);
    let cipher_suite = match options.cipher_suite.as_str() {
        "" => None,
        text => Some(text.parse::<bmc::CipherSuite>().map_err(|error| stdx::chain(&error))?),
    };
    Ok((Address { host: connection.host.clone(), port }, Protocol::Ipmi { cipher_suite }))
}

async fn poe(connection: &Connection, secrets: &Secrets<'_>) -> Target {
    let settings: PoeSettings = http::options(connection, POE)?;
    let (key, secret) = secrets.get(&connection.auth_secret_ref).await?;
    let options = settings.options(&connection.host, |name| secret.text(name));
    let options = options.map_err(|error| format!("provider poe, secret {key}: {error}"))?;
    let address = Address { host: options.host.clone(), port: options.udp_port };
    Ok((address, Protocol::Poe(Box::new(options))))
}

async fn intel_amt(connection: &Connection, secrets: &Secrets<'_>) -> Target {
    let reference = &connection.auth_secret_ref;
    let pin = secrets.optional(reference, FINGERPRINT).await?;
    let boot_root = secrets.optional(reference, BOOT_ROOT).await?;
    let options = connection.provider_options.as_ref().and_then(|it| it.intel_amt.clone());
    let options = options.unwrap_or_default();
    let place = ["intelAMT", "hostScheme"];
    let (security, standard) = match trust(connection, pin, &options.host_scheme, place)? {
        Some(trust) => (Security::Tls(trust), Security::TLS_PORT),
        None => (Security::Plain, Security::PLAIN_PORT),
    };
    // The port of the connection is the one of IPMI.
    let address =
        Address { host: connection.host.clone(), port: first_port([options.port, 0], standard) };
    Ok((address, Protocol::Amt(AmtOptions { security, boot_root })))
}

#[cfg(test)]
mod tests;
