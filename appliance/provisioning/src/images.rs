//! Cache for files of other servers. The box downloads a file as soon as a workflow mentions the
//! file, and serves it to the machine. Files stay in the cache while they are needed or pinned.
//! Without `[images]`, machines download the files themselves.

mod containers;
pub(crate) mod destinations;
mod handlers;
mod mentions;
mod pins;
mod readers;
mod report;
mod routes;
mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::meta::ObjectKey;
use api::tinkerbell::{Workflow, WorkflowSpec};
use artifact_cache::eviction::CachedFile;
use artifact_cache::registry::Mirror;
use artifact_cache::{Cache, CacheAccess, Digest, HttpOrigin, RemoteFile, SystemVolume, shown};
use axum::Router;
use netboot::Observer;

use config::{Config, HTTP_PORT};
pub use handlers::router;
pub use mentions::reads_registry;

use crate::index::Index;
use crate::networks::nic;
use containers::Containers;
use destinations::Destinations;
pub use destinations::is_own;
use mentions::OwnNames;
use pins::{Pin, Pins};
use readers::MentionReaders;

/// Minimum number of hexadecimal digits of a digest to select a file.
const MIN_PREFIX: usize = 6;

/// Image cache of the box; `None` without `[images]`. Clones share the cache.
#[derive(Clone)]
pub struct Images(Option<Arc<Inner>>);

struct Inner {
    cache: Cache,
    containers: Containers,
    origin: Arc<dyn artifact_cache::Origin>,
    own: OwnNames,
    destinations: Destinations,
    pins: Mutex<Pins>,
    mentions: Mutex<BTreeMap<ObjectKey, Mention>>,
}

/// Files that one workflow mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mention {
    files: Vec<RemoteFile>,
    /// Hardware of the workflow. The agents of its tasks may run on other machines.
    machine: ObjectKey,
    agents: BTreeSet<String>,
    ended: bool,
}

impl Mention {
    fn of(own: &OwnNames, workflow: &Workflow) -> Self {
        let WorkflowSpec { hardware_ref, .. } = &workflow.spec;
        let agents = workflow.status.tasks.iter().map(|task| task.agent_id.clone());
        Self {
            files: mentions::of_workflow(own, &workflow.status),
            machine: ObjectKey::new(&workflow.metadata.namespace, hardware_ref),
            agents: agents.filter(|agent| !agent.is_empty()).collect(),
            ended: workflow.status.state.ended(),
        }
    }

    /// Creates the mention of a deleted workflow, which needs no files.
    fn gone() -> Self {
        let machine = ObjectKey::new("", "");
        Self { files: Vec::new(), machine, agents: BTreeSet::new(), ended: true }
    }

    /// Returns the files that the cache must offer for the workflow; none after its end.
    fn needed(&self) -> &[RemoteFile] {
        if self.ended { &[] } else { &self.files }
    }
}

/// Reason why an operation on an image failed.
#[derive(Debug)]
enum ImageError {
    /// The image does not exist.
    Missing(String),
    /// The image cannot be removed, or the pins cannot be stored.
    Conflict(String),
    /// The request is invalid, or selects several images.
    Invalid(String),
}

impl ImageError {
    fn why(self) -> String {
        let (Self::Missing(why) | Self::Conflict(why) | Self::Invalid(why)) = self;
        why
    }
}

impl Images {
    /// Opens the cache of the configuration and the pins in `STATE/image-pins`. The caller must run
    /// in a Tokio runtime.
    ///
    /// # Errors
    /// A folder or file of the cache or of the pins cannot be read or created.
    pub fn open(config: &Config, state: &Path) -> anyhow::Result<Self> {
        let Some(settings) = &config.images else { return Ok(Self(None)) };
        let destinations = Destinations::new(settings.networks.clone());
        let checked = destinations.clone();
        let check = Arc::new(move |address| checked.check(address));
        let connector = artifact_cache::connector::make(settings.authorities.as_deref(), check)?;
        let plain = settings.plain_registries.iter().cloned();
        let origin = HttpOrigin::new(connector)
            .with_plain_registries(plain)
            .with_credentials(settings.credentials.clone());
        let origin = Arc::new(origin);
        let (budget, volume) = (settings.budget_percent, Arc::new(SystemVolume));
        let cache = Cache::open(&settings.cache, origin.clone(), budget, volume)?;
        let open = settings.mirror.iter().cloned();
        let mirror = Mirror::new(cache.clone(), &settings.cache, origin.clone(), open)?;
        let containers = Containers::new(mirror);
        let with_ipv6 = config.networks.iter().filter(|network| network.ipv6);
        let ipv6 = with_ipv6.filter_map(|network| nic::ipv6(&network.interface).ok());
        let names = config.api_names().into_iter().chain(ipv6.map(|own| own.to_string()));
        let (pins, mentions) = (Mutex::new(Pins::open(state)?), Mutex::default());
        let own = OwnNames::new(names);
        let inner = Inner { cache, containers, origin, own, destinations, pins, mentions };
        let inner = Arc::new(inner);
        inner.keep_pins();
        Ok(Self(Some(inner)))
    }

    /// Returns access to the cache for machines whose workflows need its files; `None` if no cache.
    pub fn access(&self, index: &Index) -> Option<CacheAccess> {
        let inner = self.0.as_ref()?;
        let readers = MentionReaders::new(Arc::clone(inner), index.clone());
        Some(CacheAccess::new(inner.cache.clone(), Arc::new(readers)))
    }

    /// Returns the HTTP routes for files and container images. Without a cache, the registry routes
    /// return an error with an explanation.
    pub fn routes(&self, index: &Index, observer: &Arc<dyn Observer>) -> Router {
        let cached = |access| netboot::http::cached_router(access, observer.clone());
        let mirror = self.0.as_ref().map(|inner| inner.containers.mirror().clone());
        let registry = netboot::http::registry_router(mirror, observer.clone());
        self.access(index).map(cached).unwrap_or_default().merge(registry)
    }

    /// Returns all images for the status view; none without a cache. Reads folders and may block.
    pub fn report(&self) -> status::image::Images {
        let Some(inner) = &self.0 else { return status::image::Images::default() };
        inner.report()
    }

    /// Adds or updates a workflow, and downloads its new files in the background. The caller must
    /// run in a Tokio runtime.
    pub fn put_workflow(&self, workflow: &Workflow) {
        let Some(inner) = &self.0 else { return };
        inner.containers.put(workflow);
        inner.put(workflow.key(), Mention::of(&inner.own, workflow));
    }

    /// Removes a workflow. The cache no longer offers its files.
    pub fn remove_workflow(&self, key: &ObjectKey) {
        let Some(inner) = &self.0 else { return };
        inner.containers.remove(key);
        inner.put(key.clone(), Mention::gone());
    }

    /// Returns the environment of an action of `image` to send to its agent: URLs of other servers
    /// are replaced by URLs of the box at `server`. A URL with an IP address that the box must not
    /// download from stays unchanged, so that the machine downloads the file itself.
    pub fn with_cache_urls(
        &self,
        image: &str,
        environment: Vec<String>,
        server: Ipv4Addr,
    ) -> Vec<String> {
        let Some(inner) = &self.0 else { return environment };
        mentions::rewritten(&inner.own, image, &environment, |wanted| {
            let place = || format!("http://{server}:{HTTP_PORT}{}", wanted.path());
            inner.downloads(&wanted.url).then(place)
        })
    }

    /// Requests a file of another server without its content; `None` if the box does not download
    /// the file.
    pub async fn reach(&self, url: &str) -> Option<Result<(), String>> {
        let inner = self.0.as_ref().filter(|it| it.own.is_foreign(url) && it.downloads(url))?;
        Some(artifact_cache::reach(inner.origin.as_ref(), url).await)
    }
}

impl Inner {
    /// Returns true unless the URL has an IP address that the box must not download from.
    fn downloads(&self, url: &str) -> bool {
        mentions::address(url).is_none_or(|it| self.destinations.check(it).is_ok())
    }

    fn report(&self) -> status::image::Images {
        let pins = self.pins().list().to_vec();
        let mentions = self.mentions().clone();
        report::report(&self.cache, &mentions, &pins)
    }

    fn put(&self, key: ObjectKey, mention: Mention) {
        let mut mentions = self.mentions();
        let known = mentions.get(&key);
        if known.map_or(mention.files.is_empty(), |known| *known == mention) {
            return;
        }
        let is_new =
            |wanted: &&RemoteFile| !known.is_some_and(|known| known.files.contains(wanted));
        let new: Vec<RemoteFile> = mention.files.iter().filter(is_new).cloned().collect();
        let ended = mention.ended;
        self.cache.offer(mention.needed());
        self.cache.withdraw(known.map(Mention::needed).unwrap_or_default());
        if mention.files.is_empty() {
            mentions.remove(&key);
        } else {
            mentions.insert(key, mention);
        }
        drop(mentions);
        if ended || new.is_empty() {
            return;
        }
        let cache = self.cache.clone();
        tokio::task::spawn_blocking(move || {
            for wanted in new.iter().filter(|wanted| cache.digest(wanted).is_none()) {
                cache.blocking_fetch(wanted);
            }
        });
    }

    /// Pins an image, so that the cache never evicts it. A missing image is downloaded.
    fn pin(self: &Arc<Self>, text: &str) -> Result<String, ImageError> {
        let pin = match self.find(text)? {
            Some(held) => {
                let url = Some(held.origin).filter(|origin| !origin.is_empty());
                Pin { digest: Some(held.digest), url }
            }
            None if self.own.is_foreign(text) => Pin { digest: None, url: Some(text.to_owned()) },
            None => return Err(ImageError::Missing(format!("{text}: the image does not exist"))),
        };
        let here = pin.digest.is_some();
        self.pins().add(pin).map_err(|error| ImageError::Invalid(format!("{error:#}")))?;
        self.keep_pins();
        Ok(if here { "pinned" } else { "pinned, and being fetched" }.to_owned())
    }

    fn unpin(self: &Arc<Self>, text: &str) -> Result<String, ImageError> {
        let is_meant = |pin: &Pin| {
            pin.digest.is_some_and(|digest| is_named(digest, text))
                || pin.url.as_ref().is_some_and(|url| url == text || shown(url) == text)
        };
        match self.pins().drop_if(is_meant) {
            Ok(true) => {}
            Ok(false) => return Err(ImageError::Missing(format!("{text} is not pinned"))),
            Err(error) => return Err(ImageError::Conflict(format!("{error:#}"))),
        }
        self.keep_pins();
        Ok("no longer pinned".to_owned())
    }

    fn remove(&self, text: &str) -> Result<String, ImageError> {
        let missing = || ImageError::Missing(format!("{text}: the image does not exist"));
        let held = self.find(text)?.ok_or_else(missing)?;
        let kept = |why| ImageError::Conflict(format!("{text} cannot be removed: {why}"));
        self.cache.remove(held.digest).map_err(kept)?;
        Ok("removed".to_owned())
    }

    /// Returns the file in the cache that `text` (digest or URL) selects; `None` if no file
    /// matches. Several matches are an error.
    fn find(&self, text: &str) -> Result<Option<CachedFile>, ImageError> {
        let is_meant = |held: &CachedFile| {
            is_named(held.digest, text) || held.origin == text || shown(&held.origin) == text
        };
        let mut found = self.cache.list().into_iter().filter(is_meant);
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(_) => {
                Err(ImageError::Invalid(format!("{text} matches several images: use a digest")))
            }
        }
    }

    /// Passes the pinned digests to the cache, and downloads missing files. May block.
    fn keep_pins(self: &Arc<Self>) {
        let pins = self.pins().list().to_vec();
        let digests: BTreeSet<Digest> = pins.iter().filter_map(|pin| pin.digest).collect();
        self.cache.pin(digests);
        for wanted in pins.iter().filter_map(Pin::wanted) {
            if wanted.checksum.is_some() && self.cache.digest(&wanted).is_some() {
                continue;
            }
            let (inner, download) = (Arc::clone(self), self.cache.blocking_fetch(&wanted));
            tokio::spawn(async move {
                // A failure is already in the log and in the list. The blob is kept until the pin
                // has its digest.
                if let Ok(blob) = download.ended().await {
                    inner.learn(&wanted.url, blob.digest);
                }
            });
        }
    }

    fn learn(&self, url: &str, digest: Digest) {
        let mut pins = self.pins();
        if let Err(error) = pins.learn(url, digest) {
            tracing::warn!(error = format!("{error:#}"), "a pin will be lost at the next start");
        }
        self.cache.pin(pins.list().iter().filter_map(|pin| pin.digest).collect());
    }

    fn pins(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mentions(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Mention>> {
        self.mentions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if `text` is the digest or a prefix of at least [`MIN_PREFIX`] digits.
fn is_named(digest: Digest, text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    digits.len() >= MIN_PREFIX && digest.hex().starts_with(digits)
}

#[cfg(test)]
mod tests;
