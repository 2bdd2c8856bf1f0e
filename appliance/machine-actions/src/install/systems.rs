//! Systems that a form offers: Templates on the box, the built-in library, and OSImages.

use std::collections::BTreeMap;

use api::meta::ObjectKey;
use api::network::NetworkPlan;
use api::os_image::OsImage;
use api::tinkerbell::TEMPLATE;
use objects::Objects;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::fields::Checked;
use super::{SystemChoice, address};
use crate::error::{ActionError, FieldError};

/// Templates of the library that install no operating system, or need settings of a person.
const NOT_OFFERED: [&str; 2] = ["raw", "wipe"];
/// Reason why no machine can be installed.
const NO_NETWORK: &str = "the box serves machines on no network";
/// Template of the library whose system reads its users from Ignition instead of the metadata.
const FLATCAR: &str = "flatcar";

/// Beginning of the name of a system that is an OSImage, which the name of the OSImage follows.
pub(super) const IMAGE: &str = "image/";
/// Label of a Template that installs an OSImage, with the name of the OSImage.
pub(super) const IMAGE_LABEL: &str = "tinbox.dev/os-image";
/// Number of digits in the name of such a Template that tell its text from earlier ones.
const TEXT_DIGITS: usize = 8;

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
    /// Name of the OSImage that the Template installs; `None` for other Templates.
    pub image: Option<String>,
}

/// Returns the systems for a form; `stored` are the names of the Templates on the box. An OSImage
/// takes the place of the library's template of its distribution, unless the box has that Template.
pub(super) fn choices(stored: &[String], images: &[OsImage]) -> Vec<SystemChoice> {
    let library = || template_library::entries().filter(|it| !NOT_OFFERED.contains(&it.name));
    let about = |name: &str| {
        let entry = library().find(|entry| entry.name == name);
        entry.map_or("A template on this box.", |entry| entry.about()).to_owned()
    };
    let has_image = |name: &str| images.iter().any(|image| image.spec.os.distro == name);
    let is_missing = |name: &&str| !has_image(name) && !stored.iter().any(|it| it == name);
    let names = library().map(|it| it.name).filter(is_missing).map(str::to_owned);
    let own = stored.iter().filter(|name| !NOT_OFFERED.contains(&name.as_str())).cloned();
    let all = names.chain(own);
    let templates = all.map(|name| SystemChoice { about: about(&name), title: name.clone(), name });
    images.iter().map(of_image).chain(templates).collect()
}

fn of_image(image: &OsImage) -> SystemChoice {
    let title = image.metadata.name.clone();
    let url = &image.spec.url;
    let about = if url.starts_with(image_catalog::UPLOADED) {
        format!("OS image {}, on this box.", image.spec.os)
    } else {
        format!("OS image {} from {url}.", image.spec.os)
    };
    SystemChoice { name: format!("{IMAGE}{title}"), title, about }
}

/// Returns the system of an OSImage. The name of its Template has digits of the text, so that a
/// changed OSImage gets another Template. A Template that exists keeps its text.
///
/// # Errors
/// No OSImage has this name, the OSImage cannot be installed, or the box serves no network.
pub(super) async fn resolve_image(
    objects: &dyn Objects,
    (namespace, name): (&str, &str),
    images: &[OsImage],
    address: Option<String>,
) -> Result<System, ActionError> {
    let failed = |why: String| ActionError::Template { name: name.to_owned(), why };
    let image = images.iter().find(|image| image.metadata.name == name);
    let image = image.ok_or_else(|| unknown(name))?;
    let address = address.ok_or_else(|| failed(NO_NETWORK.to_owned()))?;
    let data = image_catalog::template_data(image, &address);
    let data = data.map_err(|error| failed(error.to_string()))?;
    let digits = stdx::hex(&Sha256::digest(&data)[..TEXT_DIGITS / 2]);
    let template = format!("{name}-{digits}");
    let key = ObjectKey::new(namespace, &template);
    let stored: Option<Value> = objects::find(objects, TEMPLATE, &key).await?;
    let own = stored.as_ref().and_then(|it| it["spec"]["data"].as_str()).map(str::to_owned);
    Ok(System {
        name: template,
        is_new: own.is_none(),
        data: own.unwrap_or(data),
        reads_ignition: image_catalog::reads_ignition(image),
        image: Some(name.to_owned()),
    })
}

fn unknown(name: &str) -> ActionError {
    let why = format!("This box has no template and no OS image {name:?}: choose another one.");
    ActionError::Fields(vec![FieldError { field: "system", why }])
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
        return Ok(System { name, data, is_new: false, reads_ignition, image: None });
    }
    if name.is_empty() {
        let why = "Choose an operating system.".to_owned();
        return Err(ActionError::Fields(vec![FieldError { field: "system", why }]));
    }
    let entry = template_library::entry(&name).map_err(|_| unknown(&name))?;
    let mut settings = BTreeMap::new();
    if entry.settings().contains_key(template_library::BOX) {
        let address = box_address(networks, checked).ok_or_else(|| ActionError::Template {
            name: name.clone(),
            why: NO_NETWORK.to_owned(),
        })?;
        settings.insert(template_library::BOX.to_owned(), address);
    }
    let data = entry
        .with(&settings)
        .map_err(|error| ActionError::Template { name: name.clone(), why: error.to_string() })?;
    Ok(System { name, data, is_new: true, reads_ignition, image: None })
}

/// Returns the address at which a machine reaches the box.
pub(super) fn box_address(networks: &[NetworkPlan], checked: &Checked) -> Option<String> {
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
            let mut template = json!({
                "apiVersion": TEMPLATE.api_version(),
                "kind": TEMPLATE.kind,
                "metadata": { "name": self.name, "namespace": namespace },
                "spec": { "data": self.data },
            });
            if let Some(image) = &self.image {
                template["metadata"]["labels"] = json!({ IMAGE_LABEL: image });
            }
            template
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
