//! Mirror of registries: serves manifests and blobs of the offered repositories, which are fetched
//! on request and stored.
//!
//! A manifest by tag is requested again after [`FRESH`]. While its registry is unreachable, the
//! last known manifest is served.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::manifest_store::{ManifestStore, media_type};
use super::{BLOB_SCHEME, Document, Manifest, Manifests, Reference};
use crate::Error;
use crate::{Cache, Checksum, Digest, Download, Refusal, RemoteFile, blocking};

/// Time for which the result for a tag is reused, even if the result is that its registry is
/// unreachable.
const FRESH: Duration = Duration::from_secs(30);
/// Maximum tags whose request time is remembered.
const MAX_FRESH: usize = 4096;
/// Maximum concurrent requests for manifests; further ones wait.
const MAX_REQUESTS: usize = 8;

/// Mirror of registries. Cheap to clone.
#[derive(Clone)]
pub struct Mirror(Arc<Inner>);

struct Inner {
    cache: Cache,
    manifests: Arc<dyn Manifests>,
    store: ManifestStore,
    /// Registries of which all repositories are offered.
    open: BTreeSet<String>,
    /// Registries and repositories that workflows need.
    offered: Mutex<BTreeSet<(String, String)>>,
    fresh: Mutex<HashMap<String, Instant>>,
    requests: Semaphore,
}

impl Mirror {
    /// Creates a mirror in the cache's folder `root`. All repositories of the registries in `open`
    /// are offered.
    ///
    /// # Errors
    /// The folder of manifests cannot be created ([`Error::Artifact`]).
    pub fn new(
        cache: Cache,
        root: &Path,
        manifests: Arc<dyn Manifests>,
        open: impl IntoIterator<Item = String>,
    ) -> Result<Self, Error> {
        let store = ManifestStore::open(root.join("manifests"))?;
        let (offered, fresh, open) =
            (Mutex::default(), Mutex::default(), open.into_iter().collect());
        let requests = Semaphore::new(MAX_REQUESTS);
        Ok(Self(Arc::new(Inner { cache, manifests, store, open, offered, fresh, requests })))
    }

    /// Replaces the set of repositories that are offered because a workflow needs them.
    pub fn offer(&self, images: impl IntoIterator<Item = Reference>) {
        let pairs = images.into_iter().map(|it| (it.registry, it.repository)).collect();
        *self.0.offered.lock().unwrap_or_else(PoisonError::into_inner) = pairs;
    }

    /// Returns true if the reference's repository is offered.
    pub fn offers(&self, reference: &Reference) -> bool {
        let key = (reference.registry.clone(), reference.repository.clone());
        self.0.open.contains(&reference.registry)
            || self.0.offered.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    /// Starts the download of the blob with this digest in the reference's repository, unless the
    /// cache has it.
    pub async fn blob(&self, reference: &Reference, digest: Digest) -> (RemoteFile, Download) {
        let url = format!("{BLOB_SCHEME}{}", reference.by_digest(digest));
        let remote = RemoteFile { url, checksum: Some(Checksum::Sha256(digest)) };
        let download = self.0.cache.fetch(&remote).await;
        (remote, download)
    }

    /// Returns the manifest at a reference.
    ///
    /// # Errors
    /// The manifest is not available; the refusal has the reason.
    pub async fn manifest(&self, reference: &Reference) -> Result<Document, Refusal> {
        if let Some(document) = self.fresh_manifest(reference).await? {
            return Ok(document);
        }
        // The semaphore is never closed.
        let _permit = self.0.requests.acquire().await.ok();
        // Another request may have fetched the manifest meanwhile.
        if let Some(document) = self.fresh_manifest(reference).await? {
            return Ok(document);
        }
        match self.0.manifests.manifest(reference).await {
            Ok(document) => {
                let media_type = media_type(&document.media_type);
                let document = Document { media_type, ..document };
                self.store(reference, &document).await?;
                Ok(document)
            }
            Err(Refusal::Later(reason)) => {
                let Some(last) = self.stored(reference).await? else {
                    return Err(Refusal::Later(reason));
                };
                tracing::warn!(image = %reference, reason, "serving the last manifest of the tag");
                self.remember(reference);
                Ok(last)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Returns the stored manifest; `None` if the manifest must be requested again.
    async fn fresh_manifest(&self, reference: &Reference) -> Result<Option<Document>, Refusal> {
        let is_fresh = match reference.manifest {
            Manifest::Digest(_) => true,
            Manifest::Tag(_) => {
                let fresh = self.0.fresh.lock().unwrap_or_else(PoisonError::into_inner);
                fresh.get(&reference.to_string()).is_some_and(|at| at.elapsed() < FRESH)
            }
        };
        if is_fresh { self.stored(reference).await } else { Ok(None) }
    }

    async fn stored(&self, reference: &Reference) -> Result<Option<Document>, Refusal> {
        let (own, reference) = (self.clone(), reference.clone());
        blocking(move || own.0.store.get(&reference)).await.map_err(later)
    }

    async fn store(&self, reference: &Reference, document: &Document) -> Result<(), Refusal> {
        let by_digest = reference.by_digest(document.digest());
        let names = [reference.clone(), by_digest];
        let (own, document) = (self.clone(), document.clone());
        let put = move || {
            for name in &names {
                if let Err(error) = own.0.store.put(name, &document) {
                    // The manifest is requested again next time.
                    tracing::warn!(image = %name, error = %stdx::chain(&error), "not stored");
                }
            }
        };
        blocking(put).await.map_err(later)?;
        self.remember(reference);
        Ok(())
    }

    fn remember(&self, reference: &Reference) {
        if matches!(reference.manifest, Manifest::Digest(_)) {
            return;
        }
        let mut fresh = self.0.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        if fresh.len() >= MAX_FRESH {
            fresh.retain(|_, at| at.elapsed() < FRESH);
        }
        if fresh.len() < MAX_FRESH {
            fresh.insert(reference.to_string(), Instant::now());
        }
    }
}

fn later(error: Error) -> Refusal {
    Refusal::Later(stdx::chain(&error))
}
