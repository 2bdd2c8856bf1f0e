//! Plan of an installation: user data, Template and Workflow, from all inputs.

use api::infrastructure::TinkerbellClusterSpec;
use api::meta::ObjectKey;
use api::tinkerbell::{BootMode, BootOptions, Hardware, Template};

use super::observe::{Inputs, Observed, Values};
use machine_install::image::{self, ImageRequest};
use machine_install::template::{self, Installation, Overrides, TargetDisk};
use machine_install::user_data::{DataFormat, UserData, user_data};
use machine_install::workflow::{self, InstallObjects, InstallRequest};
use machine_install::{InstallError, ProviderId};

/// Objects and values that install a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// User data of the machine.
    pub user_data: String,
    /// Template and Workflow to create, in this order.
    pub objects: InstallObjects,
}

/// Returns the provider ID of the machine on `host`: the requested one, else the long form.
pub fn provider_id(observed: &Observed, host: &Hardware) -> String {
    match observed.machine.spec.provider_id.as_str() {
        "" => ProviderId::new(&host.key()).to_string(),
        requested => requested.to_owned(),
    }
}

/// Returns the plan for the machine on `host`.
///
/// # Errors
/// An input is missing or invalid.
pub fn plan(observed: &Observed, inputs: &Inputs, host: &Hardware) -> Result<Plan, InstallError> {
    let of_bootstrap = secret(inputs.bootstrap.as_ref(), "bootstrap data", UserData::of_bootstrap)?;
    let of_user = secret(inputs.user.as_ref(), "user data", UserData::of_user)?;
    let id = provider_id(observed, host);
    let data = user_data(of_bootstrap.as_ref(), of_user.as_ref(), &id)?;
    let text = template_text(observed, inputs, host, &data.format)?;
    let machine = &observed.request.machine;
    let request = InstallRequest {
        machine,
        cluster_uid: observed.request.cluster_uid.as_deref(),
        hardware: host,
        boot: &boot_options(observed, host),
    };
    let objects = workflow::objects(&request, &text)?;
    let user_data = String::from_utf8(data.bytes)
        .map_err(|_| InstallError::NotText { what: "user data", done: "stored in the Hardware" })?;
    Ok(Plan { user_data, objects })
}

fn secret(
    values: Option<&Result<Values, ObjectKey>>,
    what: &'static str,
    read: impl Fn(&std::collections::BTreeMap<String, Vec<u8>>) -> Result<UserData, InstallError>,
) -> Result<Option<UserData>, InstallError> {
    match values {
        None => Ok(None),
        Some(Ok(values)) => read(&values.0).map(Some),
        Some(Err(key)) => Err(InstallError::SecretNotFound { what, key: key.clone() }),
    }
}

/// Returns the boot options of the TinkerbellMachine. With a BMC, the default is `netboot`, which
/// switches the machine on.
pub fn boot_options(observed: &Observed, host: &Hardware) -> BootOptions {
    let own = &observed.machine.spec.boot_options;
    let default = host.spec.bmc_ref.as_ref().map(|_| BootMode::Netboot);
    BootOptions {
        toggle_allow_netboot: true,
        iso_url: own.iso_url.clone(),
        boot_mode: own.boot_mode.or(default),
        custom: own.custom.clone(),
    }
}

fn template_text(
    observed: &Observed,
    inputs: &Inputs,
    host: &Hardware,
    format: &DataFormat,
) -> Result<String, InstallError> {
    let cluster = observed.infrastructure.as_ref().map(|it| &it.spec);
    let inline = cluster.map_or("", |spec| &spec.template_override);
    let of_cluster = match referenced(inputs.cluster_template.as_ref())? {
        Some(text) => Some(text),
        None => Some(inline),
    };
    let overrides = Overrides {
        machine: Some(&observed.machine.spec.template_override),
        hardware: referenced(inputs.hardware_template.as_ref())?,
        cluster: of_cluster,
    };
    overrides.data_or(|| {
        let image = image::resolve(&image_request(observed, cluster, host), &inputs.images)?;
        let metadata_url = inputs.metadata_url.as_deref().ok_or(InstallError::NoNetwork)?;
        template::default_data(&Installation {
            name: &observed.request.machine.name,
            image: &image,
            disk: TargetDisk::Named(host.spec.disks.first().map_or("", |disk| &disk.device)),
            metadata_url,
            format,
        })
    })
}

fn referenced(
    template: Option<&(ObjectKey, Option<Template>)>,
) -> Result<Option<&str>, InstallError> {
    let Some((key, template)) = template else { return Ok(None) };
    template::referenced(key, template.as_ref()).map(Some)
}

fn image_request(
    observed: &Observed,
    cluster: Option<&TinkerbellClusterSpec>,
    host: &Hardware,
) -> ImageRequest {
    let dhcp = host.spec.interfaces.first().and_then(|it| it.dhcp.as_ref());
    let architecture = dhcp.map(|dhcp| dhcp.arch.clone()).filter(|arch| !arch.is_empty());
    let version = observed.owner.as_ref().and_then(|owner| owner.spec.version.as_deref());
    let request = crate::image_request::image_request(&observed.machine.spec, cluster, version);
    ImageRequest { architecture, ..request }
}
