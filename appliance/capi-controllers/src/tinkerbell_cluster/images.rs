//! Images of the machines and templates of a cluster, and whether the box can reach them.
//!
//! The images are those that new machines will install. An image whose name a template leaves
//! open, such as one with the Kubernetes version of a Machine, is checked as soon as a Machine
//! exists. The result changes nothing but a condition: a machine may reach a server that the box
//! cannot reach.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::infrastructure::cluster_api::{CLUSTER_NAME, Machine};
use api::infrastructure::{
    TINKERBELL_MACHINE, TINKERBELL_MACHINE_TEMPLATE, TinkerbellMachine, TinkerbellMachineSpec,
    TinkerbellMachineTemplate,
};
use api::meta::{Condition, ObjectKey, ObjectMeta};
use api::os_image::{OS_IMAGE, OsImage};
use jiff::{SignedDuration, Timestamp};
use machine_install::image::{ImageLocation, resolve};
use objects::{ObjectError, find};

use super::TinkerbellClusterReconciler;
use super::observe::Observed;
use super::provided::all;
use crate::conditions::{Finding, IMAGES_REACHABLE};
use crate::image_request::image_request;

/// Maximum number of images of one cluster that are checked.
const IMAGES_MAX: usize = 8;
/// Maximum number of images whose last result is remembered.
const RESULTS_MAX: usize = 256;
/// Minimum time between two checks of an image.
const CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(4);

/// Result of a check: an error as a clause without secrets, or `None` if the box must not connect
/// to the server.
pub type Reached = Option<Result<(), String>>;
/// Future of [`ImageServers::reach`]; boxed, so that [`ImageServers`] can be a trait object.
pub type Reaching<'a> = Pin<Box<dyn Future<Output = Vec<Reached>> + Send + 'a>>;

/// Servers of images, as the box reaches them.
pub trait ImageServers: Send + Sync + 'static {
    /// Requests all images by their URLs (`http`, `https` or `oci`) at once, and reads none of
    /// them. Takes a few seconds at most. Returns the results in the same order.
    fn reach<'a>(&'a self, urls: &'a [String]) -> Reaching<'a>;
}

/// Last results of the checks.
#[derive(Debug, Default)]
pub struct ImageChecks {
    /// Last result of each image by its URL, with the time of the check.
    results: Mutex<BTreeMap<String, (Timestamp, Reached)>>,
}

impl ImageChecks {
    /// Returns the last result of an image.
    fn result(&self, url: &str) -> Reached {
        self.lock().get(url).and_then(|(_, result)| result.clone())
    }

    /// Returns the images without a result of the last [`CHECK_INTERVAL`].
    fn due(&self, urls: &BTreeSet<String>, now: Timestamp) -> Vec<String> {
        let mut results = self.lock();
        let is_fresh = |at: Timestamp| now.duration_since(at).abs() < CHECK_INTERVAL;
        if results.len() + urls.len() > RESULTS_MAX {
            results.retain(|_, (at, _)| is_fresh(*at));
        }
        let room = RESULTS_MAX.saturating_sub(results.len());
        let due = urls.iter().filter(|it| !results.get(*it).is_some_and(|(at, _)| is_fresh(*at)));
        due.take(room).cloned().collect()
    }

    /// Stores the results. Returns true if one differs from the last.
    fn put(&self, urls: Vec<String>, results: Vec<Reached>, now: Timestamp) -> bool {
        let mut stored = self.lock();
        let mut is_news = false;
        for (url, result) in urls.into_iter().zip(results) {
            let old = stored.insert(url, (now, result.clone()));
            is_news |= old.and_then(|(_, old)| old) != result;
        }
        is_news
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (Timestamp, Reached)>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TinkerbellClusterReconciler {
    /// Returns the URLs of the images of the cluster with their last results.
    pub(super) async fn images(
        &self,
        observed: &Observed,
    ) -> Result<BTreeMap<String, Reached>, ObjectError> {
        let spec = &observed.cluster.spec;
        let Some(owner) = &observed.owner else { return Ok(BTreeMap::new()) };
        let has_override =
            !spec.template_override.is_empty() || spec.template_override_ref.is_some();
        if has_override || self.image_servers.is_none() {
            return Ok(BTreeMap::new());
        }
        let (objects, name) = (self.view.watched.as_ref(), &owner.metadata.name);
        let namespace = Some(observed.cluster.metadata.namespace.as_str());
        let templates: Vec<TinkerbellMachineTemplate> =
            all(objects, TINKERBELL_MACHINE_TEMPLATE, namespace).await?;
        let templates = templates.iter().filter(|it| is_of(&it.metadata, name));
        let mut specs: Vec<(&TinkerbellMachineSpec, Option<String>)> =
            templates.map(|it| (&it.spec.template.spec, None)).collect();
        let machines: Vec<TinkerbellMachine> = all(objects, TINKERBELL_MACHINE, namespace).await?;
        for machine in machines.iter().filter(|it| is_of(&it.metadata, name) && is_new(it)) {
            specs.push((&machine.spec, self.version(&machine.metadata).await?));
        }
        specs.retain(|(spec, _)| spec.template_override.is_empty());
        let images: Vec<OsImage> = all(self.hardware.as_ref(), OS_IMAGE, None).await?;
        let places: BTreeSet<&str> =
            observed.hosts.iter().map(|host| host.metadata.namespace.as_str()).collect();
        let mut urls = BTreeSet::new();
        for place in places {
            let images: Vec<OsImage> =
                images.iter().filter(|it| it.metadata.namespace == place).cloned().collect();
            for (machine, version) in &specs {
                let request = image_request(machine, Some(spec), version.as_deref());
                // A machine with a request that fails reports the reason.
                let Ok(image) = resolve(&request, &images) else { continue };
                urls.insert(match image.location {
                    ImageLocation::Url(url) => url,
                    ImageLocation::Registry(reference) => format!("oci://{reference}"),
                });
            }
        }
        let urls = urls.into_iter().take(IMAGES_MAX);
        Ok(urls.map(|url| (url.clone(), self.image_checks.result(&url))).collect())
    }

    /// Checks the images that are due. Returns true if a result is new.
    pub(super) async fn check_images(&self, observed: &Observed) -> bool {
        let Some(servers) = &self.image_servers else { return false };
        let urls = observed.images.keys().cloned().collect();
        let due = self.image_checks.due(&urls, self.clock.now());
        if due.is_empty() {
            return false;
        }
        let results = servers.reach(&due).await;
        self.image_checks.put(due, results, self.clock.now())
    }

    /// Returns the Kubernetes version of the Machine that owns a TinkerbellMachine.
    async fn version(&self, metadata: &ObjectMeta) -> Result<Option<String>, ObjectError> {
        let resource = self.view.contract.machine();
        let Some(owner) = metadata.owner_references.iter().find(|it| it.kind == resource.kind)
        else {
            return Ok(None);
        };
        let key = ObjectKey::new(&metadata.namespace, &owner.name);
        let machine: Option<Machine> = find(self.view.watched.as_ref(), resource, &key).await?;
        Ok(machine.and_then(|machine| machine.spec.version))
    }
}

/// Returns true for an object that belongs to the Cluster of this name.
fn is_of(metadata: &ObjectMeta, cluster: &str) -> bool {
    let mut owners = metadata.owner_references.iter();
    metadata.labels.get(CLUSTER_NAME).is_some_and(|name| name == cluster)
        || owners.any(|owner| owner.kind == "Cluster" && owner.name == cluster)
}

fn is_new(machine: &TinkerbellMachine) -> bool {
    !machine.status.is_provisioned() && machine.metadata.deletion_timestamp.is_none()
}

/// Returns the state of the condition [`IMAGES_REACHABLE`]; `None` before the first result, and
/// while the condition is that of another box.
pub fn finding(
    images: &BTreeMap<String, Reached>,
    old: Option<&Condition>,
    box_name: &str,
) -> Option<Finding> {
    let of_box = format!(" (box {box_name})");
    // A box has one text, which ends with its name.
    if old.is_some_and(|it| it.status != "True" && !it.message.ends_with(&of_box)) {
        return None;
    }
    let finding = |is_true, reason, message| {
        Some(Finding { kind: IMAGES_REACHABLE, is_true, reason, message })
    };
    let errors: Vec<String> = images
        .iter()
        .filter_map(|(url, result)| Some((url, result.as_ref()?.as_ref().err()?)))
        .map(|(url, error)| format!("{}: {}", shown(url), status::plain(error)))
        .collect();
    if !errors.is_empty() {
        let message = format!(
            "images cannot be reached: {}; check the URLs and the servers{of_box}",
            errors.join("; ")
        );
        return finding(false, "ImageUnreachable", message);
    }
    let count = images.values().filter(|result| **result == Some(Ok(()))).count();
    // An image that failed may be needed no longer.
    let is_over = images.is_empty() && old.is_some_and(|it| it.status != "True");
    if count == 0 && !is_over {
        return None;
    }
    finding(true, "ImagesReachable", format!("the box reaches the images of the cluster ({count})"))
}

/// Returns a URL without query and fragment, which may contain a token.
fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}
