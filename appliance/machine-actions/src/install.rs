//! Installation of an operating system: the choices of its form, and the objects that it writes.

mod address;
mod fields;
mod plan;
mod systems;

use std::sync::Arc;

use api::meta::ObjectKey;
use api::network::{Mode, NETWORK, Network, NetworkPlan};
use api::os_image::OsImage;
use api::tinkerbell::{AUTO_DISCOVERED, HARDWARE, TEMPLATE, WORKFLOW};
use image_catalog::ImageCatalog;
use objects::{ObjectError, read};
use serde_json::Value;

use crate::control::MachineActions;
use crate::error::{ActionError, FieldError};
use crate::lookup;
use fields::Checked;
use plan::{InstallPlan, Target};

/// Namespace of the Hardware of a machine that the box does not know yet.
const NAMESPACE: &str = "default";
/// Maximum length of user data in bytes.
pub(crate) const USER_DATA_BYTES_MAX: usize = 32 << 10;

/// Operating system or template that a person can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemChoice {
    /// Value of [`InstallForm::system`], which tells OSImages from Templates.
    pub name: String,
    /// Name of the Template on the box, of the template in the library, or of the OSImage.
    pub title: String,
    /// Purpose as a sentence; a Template on the box says so.
    pub about: String,
}

/// Disk that a person can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskChoice {
    /// Device path of the disk, such as `/dev/nvme0n1`.
    pub device: String,
    /// Model, size and serial number, as far as they are known.
    pub about: String,
}

/// Choices for the form of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallChoices {
    /// False for a machine without Hardware, which gets one.
    pub is_known: bool,
    /// True if the name of the Hardware can still be chosen.
    pub may_rename: bool,
    /// Name that the form proposes; empty if there is none yet.
    pub name: String,
    /// Maker and product, as the agent reported them; may be empty.
    pub model: String,
    /// Systems: first OSImages, then templates of the library that the box does not have yet, then
    /// its Templates.
    pub systems: Vec<SystemChoice>,
    /// Disks of the machine; empty if no agent has reported any and the Hardware has none.
    pub disks: Vec<DiskChoice>,
    /// Address of a new machine; empty if the pool of the network assigns one.
    pub address: String,
    /// Public keys that the Hardware has already, one per line.
    pub ssh_keys: String,
    /// True if the box can switch the machine on.
    pub has_bmc: bool,
}

/// Form of an installation, as a person filled it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallForm {
    /// Name of the machine in the view: of its Hardware, or the MAC address of a new one.
    pub machine: String,
    /// Name of a Template on the box or in the library; `image/` and the name of an OSImage.
    pub system: String,
    /// Name for the Hardware and the host.
    pub name: String,
    /// Device path of the disk to erase.
    pub disk: String,
    /// IPv4 address of a new machine; empty for an address of the pool.
    pub address: String,
    /// Public keys of SSH, one per line.
    pub ssh_keys: String,
    /// User data for cloud-init or Ignition; may be empty.
    pub user_data: String,
    /// Id of the request, as in [`crate::ActionRequest`].
    pub id: String,
}

/// Objects of a requested installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Name of the machine's Hardware.
    pub machine: String,
    /// Name of the workflow.
    pub workflow: String,
}

impl MachineActions {
    /// Returns the choices for a machine, by its name or, without Hardware, by its MAC address.
    ///
    /// # Errors
    /// The machine is unknown, or objects cannot be read.
    pub async fn choices(&self, machine: &str) -> Result<InstallChoices, ActionError> {
        let target = self.target(machine).await?;
        let mut choices = target.choices();
        let templates = self.names(&target.namespace()).await?;
        choices.systems = systems::choices(&templates, &self.images().await?);
        if !choices.is_known {
            let all = self.objects.list(HARDWARE, None).await?;
            choices.address = address::propose(&self.networks().await?, &all).unwrap_or_default();
        }
        Ok(choices)
    }

    /// Creates the Hardware of a new machine, so that it boots the agent and nothing else.
    ///
    /// # Errors
    /// Fields are not valid, or the API refuses the Hardware.
    pub async fn add(&self, form: &InstallForm) -> Result<String, ActionError> {
        let target = self.target(&form.machine).await?;
        let networks = self.networks().await?;
        let checked = Checked::new(form, &target, &networks, false)?;
        let Target::New { mac } = target else {
            let name = target.name().unwrap_or_default().to_owned();
            return Ok(name);
        };
        self.check_name(&target, &checked.name).await?;
        self.objects.create(HARDWARE, plan::new_hardware(mac, &checked)).await?;
        tracing::info!(machine = checked.name, "a machine was added");
        Ok(checked.name)
    }

    /// Returns the workflow that [`Self::install`] would run, as text for a person.
    ///
    /// # Errors
    /// As [`Self::install`].
    pub async fn preview(&self, form: &InstallForm) -> Result<String, ActionError> {
        Ok(self.plan(form).await?.1.rendered)
    }

    /// Writes the Hardware, the Template and the Workflow of an installation. A repeated request
    /// has one effect.
    ///
    /// # Errors
    /// Fields are not valid, the template cannot be rendered, or the API refuses an object. The
    /// Workflow is written last, so no disk is written after an error.
    pub async fn install(&self, form: &InstallForm) -> Result<Installed, ActionError> {
        let mut tries = 1;
        loop {
            match self.write_once(form).await {
                // The agent of the machine reported at the same time.
                Err(ActionError::Object(ObjectError::Conflict(_))) if tries < lookup::TRIES_MAX => {
                    tries += 1;
                }
                done => return done,
            }
        }
    }

    async fn write_once(&self, form: &InstallForm) -> Result<Installed, ActionError> {
        let (target, plan) = self.plan(form).await?;
        let objects = &*self.objects;
        if let Some(template) = plan.template {
            lookup::create_once(objects, TEMPLATE, template).await?;
        }
        match &target {
            Target::New { .. } => {
                objects.create(HARDWARE, plan.hardware).await?;
            }
            Target::Known(old) if lookup::key(old).name != plan.machine => {
                self.rename(old, plan.hardware).await?;
            }
            Target::Known(_) => {
                objects.update(HARDWARE, plan.hardware).await?;
            }
        }
        lookup::create_once(objects, WORKFLOW, plan.workflow).await?;
        let (machine, workflow) = (plan.machine, plan.workflow_name);
        tracing::info!(machine, workflow, "an installation was requested");
        Ok(Installed { machine, workflow })
    }

    /// Replaces a discovered Hardware by one with another name. The API permits each MAC address
    /// once, so the old Hardware goes first. After a power cut in between, the machine is
    /// discovered again.
    async fn rename(&self, old: &Value, new: Value) -> Result<(), ActionError> {
        self.objects.delete(HARDWARE, &lookup::key(old)).await?;
        self.objects.create(HARDWARE, new).await?;
        Ok(())
    }

    async fn plan(&self, form: &InstallForm) -> Result<(Target, InstallPlan), ActionError> {
        let target = self.target(&form.machine).await?;
        if let Some(owner) = target.owner() {
            let (machine, owner) = (form.machine.clone(), owner.to_owned());
            return Err(ActionError::Owned { machine, owner });
        }
        let networks = self.networks().await?;
        let checked = Checked::new(form, &target, &networks, true)?;
        self.check_name(&target, &checked.name).await?;
        let namespace = target.namespace();
        let system = match form.system.strip_prefix(systems::IMAGE) {
            Some(image) => {
                let address = systems::box_address(&networks, &checked);
                let named = (namespace.as_str(), image);
                let images = self.images().await?;
                systems::resolve_image(&*self.objects, named, &images, address).await?
            }
            None => {
                let key = ObjectKey::new(namespace, &form.system);
                let stored: Option<Value> = objects::find(&*self.objects, TEMPLATE, &key).await?;
                systems::resolve(&form.system, stored, &networks, &checked)?
            }
        };
        let plan = InstallPlan::new(&target, &checked, &system, &form.id)?;
        Ok((target, plan))
    }

    /// Checks that no other Hardware has the new name of the machine.
    async fn check_name(&self, target: &Target, name: &str) -> Result<(), ActionError> {
        if target.name() == Some(name) {
            return Ok(());
        }
        let key = ObjectKey::new(target.namespace(), name);
        match objects::find::<Value>(&*self.objects, HARDWARE, &key).await? {
            None => Ok(()),
            Some(_) => Err(ActionError::Fields(vec![FieldError {
                field: "name",
                why: format!("Another machine is called {name}. Choose another name."),
            }])),
        }
    }

    async fn target(&self, machine: &str) -> Result<Target, ActionError> {
        if let Some(hardware) = lookup::hardware(&*self.objects, machine).await? {
            return Ok(Target::Known(hardware));
        }
        let no_machine = |_| ActionError::NoMachine(machine.to_owned());
        let mac = machine.parse().map_err(no_machine)?;
        // The form of a machine that became Hardware meanwhile is for that Hardware.
        let all = self.objects.list(HARDWARE, None).await?;
        let mut same = all.into_iter().filter(|it| plan::has_mac(it, mac));
        Ok(same.next().map_or(Target::New { mac }, Target::Known))
    }

    /// Returns the address at which machines reach the box; `None` if it serves no network.
    ///
    /// # Errors
    /// Networks cannot be read.
    pub async fn box_address(&self) -> Result<Option<String>, ActionError> {
        let networks = self.networks().await?;
        Ok(address::serving(&networks).map(|network| network.address.to_string()))
    }

    /// Returns the networks on which the box serves machines.
    async fn networks(&self) -> Result<Vec<NetworkPlan>, ActionError> {
        let mut plans = Vec::new();
        for object in self.objects.list(NETWORK, None).await? {
            let network: Network = read(object)?;
            plans.extend(network.spec.plan().ok().filter(|it| it.mode != Mode::Off));
        }
        Ok(plans)
    }

    /// Returns the names of the Templates of a namespace, without those that install an OSImage.
    async fn names(&self, namespace: &str) -> Result<Vec<String>, ActionError> {
        let templates = self.objects.list(TEMPLATE, Some(namespace)).await?;
        let is_own = |it: &&Value| it["metadata"]["labels"][systems::IMAGE_LABEL].is_null();
        Ok(templates.iter().filter(is_own).map(|it| lookup::key(it).name).collect())
    }

    async fn images(&self) -> Result<Vec<OsImage>, ActionError> {
        Ok(ImageCatalog::new(Arc::clone(&self.objects)).images().await?)
    }
}

/// Returns true for Hardware that the box made itself, so that a person has not named it.
pub(crate) fn is_discovered(hardware: &Value) -> bool {
    !hardware["metadata"]["labels"][AUTO_DISCOVERED].is_null()
}

#[cfg(test)]
mod tests;
