//! Creation of a driver from the connection settings of a Machine.

use std::sync::Arc;

use api::bmc::{Connection, Provider};
use api::core::{SECRET, Secret};
use api::meta::ObjectKey;
use bmc::{Address, Credentials, Driver, Endpoint, Protocol, Security};

use objects::{Objects, fetch};

/// Factory of BMC drivers; tests use a fake.
pub trait Drivers: Send + Sync + 'static {
    /// Returns the driver of one BMC.
    fn open(&self, endpoint: Endpoint) -> Arc<dyn Driver>;
}

/// Factory that creates the drivers of the crate `bmc`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BmcDrivers;

impl Drivers for BmcDrivers {
    fn open(&self, endpoint: Endpoint) -> Arc<dyn Driver> {
        Arc::from(bmc::registry::open(endpoint))
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
pub(super) async fn login(
    objects: &dyn Objects,
    connection: &Connection,
    owner: &ObjectKey,
) -> Result<Endpoint, String> {
    connection.provider()?;
    let secret_ref = &connection.auth_secret_ref;
    let namespace = match secret_ref.namespace.as_str() {
        "" => &owner.namespace,
        other => other,
    };
    let key = ObjectKey::new(namespace, &secret_ref.name);
    let secret: Secret = fetch(objects, SECRET, &key)
        .await
        .map_err(|error| format!("cannot read the BMC credentials: {error}"))?;
    let text = |name: &str| {
        secret.text(name).ok_or_else(|| format!("secret {key} has no readable key {name:?}"))
    };
    let credentials = Credentials {
        username: text("username")?.expose().to_owned(),
        password: text("password")?,
    };
    endpoint(connection, credentials)
}

fn endpoint(connection: &Connection, credentials: Credentials) -> Result<Endpoint, String> {
    let host = connection.host.clone();
    let options = connection.provider_options.clone().unwrap_or_default();
    let first =
        |ports: [u16; 2], standard| ports.into_iter().find(|port| *port != 0).unwrap_or(standard);
    match connection.provider()? {
        Provider::Ipmi => {
            let options = options.ipmitool.unwrap_or_default();
            let port = first([options.port, connection.port], Address::IPMI_PORT);
            let cipher_suite = match options.cipher_suite.as_str() {
                "" => None,
                text => Some(text.parse().map_err(|error: bmc::Error| stdx::chain(&error))?),
            };
            let (address, protocol) = (Address { host, port }, Protocol::Ipmi { cipher_suite });
            Ok(Endpoint { address, credentials, protocol })
        }
        Provider::IntelAmt => {
            let options = options.intel_amt.unwrap_or_default();
            // Plain HTTP needs the explicit word of the Machine.
            let (security, standard) = match options.host_scheme.as_str() {
                "http" => (Security::Plain, Security::PLAIN_PORT),
                "https" | "" => (Security::Tls { pin: None }, Security::TLS_PORT),
                other => {
                    return Err(format!(
                        "expected http or https in connection.providerOptions.intelAMT.hostScheme, \
                         found {other:?}"
                    ));
                }
            };
            // The port of the connection is the one of IPMI.
            let address = Address { host, port: first([options.port, 0], standard) };
            Ok(Endpoint { address, credentials, protocol: Protocol::Amt(security) })
        }
    }
}

#[cfg(test)]
mod tests {
    use api::bmc::{Connection, IntelAmtOptions, IpmiOptions, ProviderOptions};
    use bmc::{CipherSuite, Credentials, Protocol, Security};

    use super::endpoint;

    fn credentials() -> Credentials {
        Credentials { username: "admin".into(), password: "x".into() }
    }

    #[test]
    fn provider_options_come_first() {
        let ipmi = IpmiOptions { port: 6230, cipher_suite: "3".into() };
        let options = ProviderOptions { ipmitool: Some(ipmi), ..Default::default() };
        let mut connection =
            Connection { host: "10.0.0.9".into(), port: 623, ..Default::default() };
        connection.provider_options = Some(options);
        let endpoint = endpoint(&connection, credentials()).unwrap();
        assert_eq!(endpoint.address.to_string(), "10.0.0.9:6230");
        assert_eq!(endpoint.cipher_suite(), Some(CipherSuite::Three));
    }

    #[test]
    fn unset_means_the_standard_port_and_the_best_suite() {
        let endpoint = endpoint(&Connection::default(), credentials()).unwrap();
        assert_eq!((endpoint.address.port, endpoint.cipher_suite()), (623, None));
    }

    #[test]
    fn intel_amt_has_its_own_ports_and_needs_a_word_for_plain_http() {
        for (scheme, port, expected, security) in [
            ("http", 0, "10.0.0.9:16992", Security::Plain),
            ("https", 0, "10.0.0.9:16993", Security::Tls { pin: None }),
            ("", 0, "10.0.0.9:16993", Security::Tls { pin: None }),
            ("http", 8080, "10.0.0.9:8080", Security::Plain),
        ] {
            let amt = IntelAmtOptions { port, host_scheme: scheme.into() };
            let options = ProviderOptions { intel_amt: Some(amt), ..Default::default() };
            let mut connection =
                Connection { host: "10.0.0.9".into(), port: 623, ..Default::default() };
            connection.provider_options = Some(options);
            let endpoint = endpoint(&connection, credentials()).unwrap();
            assert_eq!(endpoint.address.to_string(), expected, "{scheme}");
            assert_eq!(endpoint.protocol, Protocol::Amt(security), "{scheme}");
        }
    }

    #[test]
    fn a_suite_nobody_has_is_refused() {
        let ipmi = IpmiOptions { port: 0, cipher_suite: "99".into() };
        let options = ProviderOptions { ipmitool: Some(ipmi), ..Default::default() };
        let connection = Connection { provider_options: Some(options), ..Default::default() };
        assert!(endpoint(&connection, credentials()).is_err());
    }
}
