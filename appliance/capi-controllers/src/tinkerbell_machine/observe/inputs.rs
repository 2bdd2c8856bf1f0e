//! Inputs of an installation: Secrets, images and Templates.

use std::collections::BTreeMap;

use api::core::{SECRET, Secret};
use api::meta::ObjectKey;
use api::os_image::{OS_IMAGE, OsImage};
use api::tinkerbell::{Hardware, TEMPLATE, Template};
use objects::{ObjectError, Objects, find, read};

use super::{Observed, TinkerbellMachineReconciler};
use machine_install::template;

/// Inputs of an installation.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Decoded values of the Secret with bootstrap data, or the key of the missing Secret.
    pub bootstrap: Option<Result<Values, ObjectKey>>,
    /// Decoded values of the Secret with user data, or the key of the missing Secret.
    pub user: Option<Result<Values, ObjectKey>>,
    /// OSImages in the namespace of the Hardware.
    pub images: Vec<OsImage>,
    /// Template that an annotation of the Hardware names.
    pub hardware_template: Option<(ObjectKey, Option<Template>)>,
    /// Template that `templateOverrideRef` of the TinkerbellCluster names.
    pub cluster_template: Option<(ObjectKey, Option<Template>)>,
    /// URL of the metadata service; `None` if the box serves no network.
    pub metadata_url: Option<String>,
}

/// Decoded values of a Secret by key. Not printed.
#[derive(Clone, Default)]
pub struct Values(pub BTreeMap<String, Vec<u8>>);

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl TinkerbellMachineReconciler {
    pub(super) async fn inputs(
        &self,
        observed: &Observed,
        host: &Hardware,
    ) -> Result<Inputs, ObjectError> {
        let objects = self.objects.as_ref();
        let namespace = &observed.machine.metadata.namespace;
        let bootstrap =
            observed.owner.as_ref().and_then(|it| it.spec.bootstrap.data_secret_name.as_deref());
        let user = observed.machine.spec.user_data_secret.as_ref().map(|secret| &*secret.name);
        let images = objects.list(OS_IMAGE, Some(&host.metadata.namespace)).await?;
        let images = images.into_iter().filter_map(|object| read::<OsImage>(object).ok());
        let infrastructure = observed.infrastructure.as_ref();
        let of_cluster = infrastructure.and_then(|it| {
            let reference = it.spec.template_override_ref.as_ref()?;
            let namespace = match reference.namespace.as_str() {
                "" => &it.metadata.namespace,
                namespace => namespace,
            };
            Some(ObjectKey::new(namespace, &reference.name))
        });
        Ok(Inputs {
            bootstrap: self.secret(namespace, bootstrap).await?,
            user: self.secret(namespace, user).await?,
            images: images.filter(|it| it.metadata.namespace == host.metadata.namespace).collect(),
            hardware_template: template_of(objects, template::hardware_override(host)).await?,
            cluster_template: template_of(objects, of_cluster).await?,
            metadata_url: self.metadata.metadata_url(host),
        })
    }

    async fn secret(
        &self,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<Option<Result<Values, ObjectKey>>, ObjectError> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
        let key = ObjectKey::new(namespace, name);
        let secret: Option<Secret> = find(self.view.objects.as_ref(), SECRET, &key).await?;
        Ok(Some(secret.map(|secret| Values(secret.bytes())).ok_or(key)))
    }
}

async fn template_of(
    objects: &dyn Objects,
    key: Option<ObjectKey>,
) -> Result<Option<(ObjectKey, Option<Template>)>, ObjectError> {
    let Some(key) = key else { return Ok(None) };
    let template = find(objects, TEMPLATE, &key).await?;
    Ok(Some((key, template)))
}
