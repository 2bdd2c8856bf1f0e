//! Serial consoles of the Hardware with a BMC: which are recorded, their sessions, and their keys.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::bmc::{MACHINE, Machine, Provider};
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware};
use objects::{ObjectError, Objects, fetch, read};
use serial_console::{Machines, OpenError, Pending, RecordMode, Recorded};
use tokio::io::DuplexStream;

use crate::machine::{Drivers, connect};

/// Annotation of a Machine: `always` (default), `on-request` or `off`. Only the drivers of IPMI and
/// Intel AMT have a console.
pub const ANNOTATION: &str = "tinbox.dev/console";

/// Consoles of the Hardware with a `bmcRef`. A console has the name of its Hardware; Hardware of
/// the same name in several namespaces has no console: the name would select several machines.
pub struct HardwareConsoles {
    /// Access to Hardware, Machines and Secrets.
    pub objects: Arc<dyn Objects>,
    /// Drivers for the management controllers, shared with the controller of Machines, which
    /// repeats no refused login.
    pub drivers: Arc<dyn Drivers>,
    /// Returns the SSH keys of the users who may use every console.
    pub user_keys: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Machine of each console in the last list, so that an open reads no list.
    pub listed: Mutex<HashMap<String, ObjectKey>>,
}

impl Machines for HardwareConsoles {
    fn list(&self) -> Pending<'_, Option<Vec<Recorded>>> {
        Box::pin(async {
            match self.consoles().await {
                Ok(consoles) => {
                    let machine = |it: &Console| (it.hardware.name.clone(), it.machine.clone());
                    *self.listed() = consoles.iter().map(machine).collect();
                    let recorded = |it: Console| Recorded { name: it.hardware.name, mode: it.mode };
                    Some(consoles.into_iter().map(recorded).collect())
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot list the machines with a serial console");
                    None
                }
            }
        })
    }

    fn open<'a>(&'a self, name: &'a str) -> Pending<'a, Result<DuplexStream, OpenError>> {
        Box::pin(async move {
            let missing = || refused(format!("hardware {name:?} has no BMC with a console"), true);
            let key = self.listed().get(name).cloned().ok_or_else(missing)?;
            let machine: Machine = fetch(self.objects.as_ref(), MACHINE, &key)
                .await
                .map_err(|error| refused(error.to_string(), true))?;
            let connection = &machine.spec.connection;
            let driver = connect(self.objects.as_ref(), self.drivers.as_ref(), connection, &key)
                .await
                .map_err(|error| refused(error, true))?;
            let opened = driver.console().await;
            opened.map_err(|error| refused(error.sentence(), error.is_transient()))
        })
    }

    fn keys<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<String>> {
        Box::pin(async move {
            let hardware = self.hardware().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read the SSH keys of the Hardware");
                Vec::new()
            });
            let mut named = hardware.into_iter().filter(|it| it.metadata.name == name);
            let (Some(only), None) = (named.next(), named.next()) else { return Vec::new() };
            let instance = only.spec.metadata.and_then(|metadata| metadata.instance);
            let mut keys = instance.map(|instance| instance.ssh_keys).unwrap_or_default();
            keys.extend((self.user_keys)());
            keys
        })
    }
}

/// Hardware with a console, and its Machine.
struct Console {
    hardware: ObjectKey,
    machine: ObjectKey,
    mode: RecordMode,
}

fn refused(message: String, is_transient: bool) -> OpenError {
    OpenError { message, is_transient }
}

impl HardwareConsoles {
    fn listed(&self) -> MutexGuard<'_, HashMap<String, ObjectKey>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn hardware(&self) -> Result<Vec<Hardware>, ObjectError> {
        let found = self.objects.list(HARDWARE, None).await?;
        Ok(found.into_iter().filter_map(|object| read(object).ok()).collect())
    }

    /// Reads the Machines one by one: a list needs memory for all of them at once, every 30 s.
    async fn consoles(&self) -> Result<Vec<Console>, ObjectError> {
        let mut consoles: Vec<Console> = Vec::new();
        let mut names: HashMap<String, usize> = HashMap::new();
        for hardware in self.hardware().await? {
            *names.entry(hardware.metadata.name.clone()).or_default() += 1;
            let Some(bmc) = &hardware.spec.bmc_ref else { continue };
            let machine = ObjectKey::new(&hardware.metadata.namespace, &bmc.name);
            let found: Result<Machine, _> = fetch(self.objects.as_ref(), MACHINE, &machine).await;
            let mode = match found {
                Ok(found) => mode(&found),
                Err(ObjectError::NotFound(_) | ObjectError::Unreadable { .. }) => None,
                Err(error) => return Err(error),
            };
            if let Some(mode) = mode {
                consoles.push(Console { hardware: key(&hardware.metadata), machine, mode });
            }
        }
        consoles.retain(|console| names.get(&console.hardware.name) == Some(&1));
        Ok(consoles)
    }
}

fn key(metadata: &api::meta::ObjectMeta) -> ObjectKey {
    ObjectKey::new(&metadata.namespace, &metadata.name)
}

/// Returns when the console of a Machine is recorded; `None` for no console.
fn mode(machine: &Machine) -> Option<RecordMode> {
    let provider = machine.spec.connection.provider().ok()?;
    let standard = match provider {
        Provider::Ipmi | Provider::IntelAmt => RecordMode::Always,
        // The drivers of these have no console.
        _ => return None,
    };
    match machine.metadata.annotations.get(ANNOTATION).map(String::as_str) {
        Some("off") => None,
        Some("on-request") => Some(RecordMode::OnRequest),
        Some("always") => Some(RecordMode::Always),
        _ => Some(standard),
    }
}

#[cfg(test)]
mod tests {
    use api::bmc::Machine;
    use serde_json::json;
    use serial_console::RecordMode;

    use super::mode;

    #[test]
    fn a_console_is_recorded_unless_the_owner_says_otherwise() {
        let machine = |annotation: &str, options: serde_json::Value| -> Machine {
            serde_json::from_value(json!({
                "metadata": { "name": "bmc", "annotations": { "tinbox.dev/console": annotation } },
                "spec": { "connection": { "host": "192.0.2.1", "providerOptions": options } },
            }))
            .unwrap()
        };
        let ipmi = json!({ "ipmitool": { "port": 623 } });
        assert_eq!(mode(&machine("", ipmi.clone())), Some(RecordMode::Always));
        assert_eq!(mode(&machine("on-request", ipmi.clone())), Some(RecordMode::OnRequest));
        assert_eq!(mode(&machine("always", ipmi.clone())), Some(RecordMode::Always));
        assert_eq!(mode(&machine("off", ipmi)), None);
        let amt = json!({ "intelAMT": { "port": 16993 } });
        assert_eq!(mode(&machine("", amt)), Some(RecordMode::Always));
        assert_eq!(mode(&machine("always", json!({ "wakeOnLAN": {} }))), None);
    }
}
