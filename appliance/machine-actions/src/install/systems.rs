//! Systems that a form offers: Templates on the box, and the built-in library.

use std::collections::BTreeMap;

use api::network::NetworkPlan;
use api::tinkerbell::TEMPLATE;
use serde_json::{Value, json};

use super::fields::Checked;
use super::{SystemChoice, address};
use crate::error::{ActionError, FieldError};

/// Templates of the library that install no operating system, or need settings of a person.
const NOT_OFFERED: [&str; 2] = ["raw", "wipe"];
/// Template of the library whose system reads its users from Ignition instead of the metadata.
const FLATCAR: &str = "flatcar";

/// Template of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct System {
    pub name: String,
    /// Text of the Template.
    pub data: String,
    /// True for a template of the library, which the installation must create.
    pub is_new: bool,
    /// True if the system reads Ignition instead of cloud-init's user data.
    pub reads_ignition: bool,
}

/// Returns the systems for a form; `stored` are the names of the Templates on the box.
pub(super) fn choices(stored: &[String]) -> Vec<SystemChoice> {
    let library = || template_library::entries().filter(|it| !NOT_OFFERED.contains(&it.name));
    let about = |name: &str| {
        let entry = library().find(|entry| entry.name == name);
        entry.map_or("A template on this box.", |entry| entry.about()).to_owned()
    };
    let missing = library().map(|it| it.name).filter(|name| !stored.iter().any(|it| it == name));
    let names = missing.map(str::to_owned);
    let own = stored.iter().filter(|name| !NOT_OFFERED.contains(&name.as_str())).cloned();
    let all = names.chain(own);
    all.map(|name| SystemChoice { about: about(&name), name }).collect()
}

/// Returns the system `name`: the Template `stored`, else the template of the library.
///
/// # Errors
/// The system is unknown, or the box serves no network.
pub(super) fn resolve(
    name: &str,
    stored: Option<Value>,
    networks: &[NetworkPlan],
    checked: &Checked,
) -> Result<System, ActionError> {
    let reads_ignition = name == FLATCAR;
    let name = name.to_owned();
    if let Some(template) = stored {
        let data = template["spec"]["data"].as_str().unwrap_or_default().to_owned();
        return Ok(System { name, data, is_new: false, reads_ignition });
    }
    let entry = template_library::entry(&name).map_err(|_| {
        let why = if name.is_empty() {
            "Choose an operating system.".to_owned()
        } else {
            format!("This box has no template {name:?}: choose another one.")
        };
        ActionError::Fields(vec![FieldError { field: "system", why }])
    })?;
    let mut settings = BTreeMap::new();
    if entry.settings().contains_key(template_library::BOX) {
        let address = box_address(networks, checked).ok_or_else(|| ActionError::Template {
            name: name.clone(),
            why: "the box serves machines on no network".to_owned(),
        })?;
        settings.insert(template_library::BOX.to_owned(), address);
    }
    let data = entry
        .with(&settings)
        .map_err(|error| ActionError::Template { name: name.clone(), why: error.to_string() })?;
    Ok(System { name, data, is_new: true, reads_ignition })
}

/// Returns the address at which a machine reaches the box.
fn box_address(networks: &[NetworkPlan], checked: &Checked) -> Option<String> {
    let reserved = checked.reservation.as_ref().map(|it| it.address);
    let contains = |network: &&NetworkPlan| {
        reserved.is_some_and(|address| network.subnets.iter().any(|it| it.contains(address)))
    };
    let network = networks.iter().find(contains).or_else(|| address::serving(networks))?;
    Some(network.address.to_string())
}

impl System {
    /// Returns the Template object to create; `None` if the box has it already.
    pub fn template(&self, namespace: &str) -> Option<Value> {
        self.is_new.then(|| {
            json!({
                "apiVersion": TEMPLATE.api_version(),
                "kind": TEMPLATE.kind,
                "metadata": { "name": self.name, "namespace": namespace },
                "spec": { "data": self.data },
            })
        })
    }

    /// Returns the user data of the machine: that of the form, else the keys as Ignition for a
    /// system that reads no keys from the metadata.
    pub fn user_data(&self, checked: &Checked) -> Option<String> {
        let keys = &checked.ssh_keys;
        match &checked.user_data {
            Some(own) => Some(own.clone()),
            None if self.reads_ignition && !keys.is_empty() => Some(ignition(keys)),
            None => None,
        }
    }
}

/// Returns an Ignition configuration (spec 3.3.0) with the keys of Flatcar's user `core`.
fn ignition(keys: &[String]) -> String {
    json!({
        "ignition": { "version": "3.3.0" },
        "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": keys }] },
    })
    .to_string()
}
