//! The box as a registry in front of others: manifests and blobs of those repositories that it
//! offers, fetched when they are asked for and kept.
//!
//! What a tag means is asked again after [`FRESH`]; while its registry is away, what it last meant
//! is told.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::shelf::{Shelf, media_type};
use super::{BLOB_SCHEME, Document, Manifest, Manifests, Reference};
use crate::Error;
use crate::{Cache, Checksum, Digest, Download, Refusal, Wanted, blocking};

/// How long an answer about a tag is believed, also that its registry is away.
const FRESH: Duration = Duration::from_secs(30);
/// Tags of which it is remembered when they were asked for.
const MAX_FRESH: usize = 4096;
/// Manifests asked for at once; further ones wait.
const MAX_ASKING: usize = 8;

/// A registry and what lies behind it. Cheap to clone.
#[derive(Clone)]
pub struct Mirror(Arc<Inner>);

struct Inner {
    cache: Cache,
    manifests: Arc<dyn Manifests>,
    shelf: Shelf,
    /// Registries all of which is offered.
    open: BTreeSet<String>,
    /// Registries and repositories that workflows need.
    offered: Mutex<BTreeSet<(String, String)>>,
    fresh: Mutex<HashMap<String, Instant>>,
    asking: Semaphore,
}

impl Mirror {
    /// In the cache's folder `root`; `open` are the registries of which everything is offered.
    ///
    /// # Errors
    /// [`Error::Artifact`].
    pub fn new(
        cache: Cache,
        root: &Path,
        manifests: Arc<dyn Manifests>,
        open: impl IntoIterator<Item = String>,
    ) -> Result<Self, Error> {
        let shelf = Shelf::open(root.join("manifests"))?;
        let (offered, fresh, open) =
            (Mutex::default(), Mutex::default(), open.into_iter().collect());
        let asking = Semaphore::new(MAX_ASKING);
        Ok(Self(Arc::new(Inner { cache, manifests, shelf, open, offered, fresh, asking })))
    }

    /// The repositories that may be asked for because a workflow needs them. Replaces what was said
    /// before.
    pub fn offer(&self, images: impl IntoIterator<Item = Reference>) {
        let pairs = images.into_iter().map(|it| (it.registry, it.repository)).collect();
        *self.0.offered.lock().unwrap_or_else(PoisonError::into_inner) = pairs;
    }

    /// Whether a reference's repository is offered.
    pub fn offers(&self, reference: &Reference) -> bool {
        let key = (reference.registry.clone(), reference.repository.clone());
        self.0.open.contains(&reference.registry)
            || self.0.offered.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    /// The blob with a digest, of the reference's repository.
    pub async fn blob(&self, reference: &Reference, digest: Digest) -> (Wanted, Download) {
        let url = format!("{BLOB_SCHEME}{}", reference.by_digest(digest));
        let wanted = Wanted { url, checksum: Some(Checksum::Sha256(digest)) };
        let download = self.0.cache.fetch(&wanted).await;
        (wanted, download)
    }

    /// The manifest at a reference.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub async fn manifest(&self, reference: &Reference) -> Result<Document, Refusal> {
        if let Some(document) = self.known(reference).await? {
            return Ok(document);
        }
        // The semaphore is never closed.
        let _turn = self.0.asking.acquire().await.ok();
        // Somebody may have asked meanwhile.
        if let Some(document) = self.known(reference).await? {
            return Ok(document);
        }
        match self.0.manifests.manifest(reference).await {
            Ok(document) => {
                let media_type = media_type(&document.media_type);
                let document = Document { media_type, ..document };
                self.keep(reference, &document).await?;
                Ok(document)
            }
            Err(Refusal::Later(reason)) => {
                let Some(last) = self.stored(reference).await? else {
                    return Err(Refusal::Later(reason));
                };
                tracing::warn!(image = %reference, reason, "what the tag last meant is told");
                self.remember(reference);
                Ok(last)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// What is here and need not be asked for.
    async fn known(&self, reference: &Reference) -> Result<Option<Document>, Refusal> {
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
        blocking(move || own.0.shelf.get(&reference)).await.map_err(later)
    }

    async fn keep(&self, reference: &Reference, document: &Document) -> Result<(), Refusal> {
        let by_digest = reference.by_digest(document.digest());
        let names = [reference.clone(), by_digest];
        let (own, document) = (self.clone(), document.clone());
        let put = move || {
            for name in &names {
                if let Err(error) = own.0.shelf.put(name, &document) {
                    // It is asked for again next time.
                    tracing::warn!(image = %name, error = %stdx::chain(&error), "not kept");
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
