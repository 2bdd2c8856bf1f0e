//! OpenAPI documents of the served kinds: v3 for each group and version, and v2 for all kinds, as
//! JSON and as protobuf.
//!
//! kubectl creates or applies objects only if the documents show that PATCH accepts
//! `fieldValidation`; `kubectl explain` shows their descriptions. A document is made on first
//! request, cached in compressed form, and dropped when the kinds change.
//!
//! Never: decides about the validity of an object. Enter at [`Specifications`].

mod gnostic;
mod kinds;
mod paths;
mod swagger;
mod types;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::wire::documents::Document;
use crate::wire::path::OpenApiName;
use resources::definition::Registry;
use resources::served::{self, Group, GroupVersion};
use types::Schemas;

/// Maximum number of cached documents: one for each group and version, and three of all kinds.
const MAX_CACHED: usize = 256;

/// Cache of OpenAPI documents; clones share the cache.
#[derive(Debug, Clone, Default)]
pub(crate) struct Specifications {
    cache: Arc<Mutex<DocumentCache>>,
}

#[derive(Debug, Default)]
struct DocumentCache {
    generation: u64,
    documents: BTreeMap<OpenApiName, Arc<Document>>,
}

impl Specifications {
    /// Returns a document of the kinds in `registry`; `None` for a group or version that is not
    /// served. Call on a blocking thread, because making a document takes milliseconds.
    pub(crate) fn document(
        &self,
        registry: &Registry,
        name: &OpenApiName,
    ) -> Option<Arc<Document>> {
        // The lock is held while a document is made, so that concurrent requests make it only once.
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.generation != registry.generation() {
            let generation = registry.generation();
            *cache = DocumentCache { generation, ..DocumentCache::default() };
        }
        if let Some(document) = cache.documents.get(name) {
            return Some(Arc::clone(document));
        }
        let groups = served::groups(registry);
        let document = Arc::new(match name {
            OpenApiName::Index => {
                Document::new(index(&groups, &mut cache).to_string().into_bytes())
            }
            OpenApiName::Version(version) => version_document(&groups, version)?,
            OpenApiName::Swagger => Document::new(whole(&groups).to_string().into_bytes()),
            OpenApiName::SwaggerProtobuf => Document::new(gnostic::document(&whole(&groups))),
        });
        cache.insert(name.clone(), &document);
        Some(document)
    }
}

impl DocumentCache {
    fn insert(&mut self, name: OpenApiName, document: &Arc<Document>) {
        if self.documents.len() < MAX_CACHED {
            self.documents.insert(name, Arc::clone(document));
        }
    }
}

/// Returns the document `/openapi/v3`: the URL of each version's document. A URL contains the
/// document's hash, so clients can cache the document forever.
fn index(groups: &[Group<'_>], cache: &mut DocumentCache) -> Value {
    let mut paths = Map::new();
    for NamedVersion { name, group, version } in versions(groups) {
        let key = OpenApiName::Version(name.clone());
        let document = match cache.documents.get(&key) {
            Some(document) => Arc::clone(document),
            None => {
                let document = Arc::new(of_version(group, version));
                cache.insert(key, &document);
                document
            }
        };
        let address = format!("/openapi/v3/{name}?hash={}", document.tag());
        paths.insert(name, json!({ "serverRelativeURL": address }));
    }
    json!({ "paths": paths })
}

/// Version of a group, with its name in OpenAPI paths, such as `apis/GROUP/VERSION`.
struct NamedVersion<'a, 'b> {
    name: String,
    group: &'b Group<'a>,
    version: &'b GroupVersion<'a>,
}

fn versions<'a, 'b>(groups: &'b [Group<'a>]) -> impl Iterator<Item = NamedVersion<'a, 'b>> {
    groups.iter().flat_map(|group| {
        group.versions.iter().map(move |version| {
            let name = match group.name {
                "" => format!("api/{}", version.name),
                _ => format!("apis/{}", version.group_version),
            };
            NamedVersion { name, group, version }
        })
    })
}

fn version_document(groups: &[Group<'_>], name: &str) -> Option<Document> {
    let known = versions(groups).find(|known| known.name == name)?;
    Some(of_version(known.group, known.version))
}

fn of_version(group: &Group<'_>, version: &GroupVersion<'_>) -> Document {
    let mut schemas = Schemas::default();
    if version.resources.iter().any(|resource| resource.verbs.contains(&"delete")) {
        kinds::add_common(&mut schemas);
    }
    version.resources.iter().for_each(|resource| kinds::add(&mut schemas, resource));
    let document = json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths::of(group.name, version),
        "components": { "schemas": schemas.all },
    });
    Document::new(document.to_string().into_bytes())
}

/// Makes the OpenAPI v2 document of all kinds.
fn whole(groups: &[Group<'_>]) -> Value {
    let mut schemas = Schemas::default();
    let mut all_paths = Map::new();
    kinds::add_common(&mut schemas);
    for NamedVersion { group, version, .. } in versions(groups) {
        version.resources.iter().for_each(|resource| kinds::add(&mut schemas, resource));
        for (path, item) in paths::of(group.name, version) {
            all_paths.insert(path, swagger::path_item(&item));
        }
    }
    let definitions: Map<String, Value> =
        schemas.all.into_iter().map(|(name, one)| (name, swagger::definition(&one))).collect();
    json!({
        "swagger": "2.0",
        "info": info(),
        "paths": all_paths,
        "definitions": definitions,
    })
}

fn info() -> Value {
    json!({ "title": "Kubernetes", "version": crate::version::text() })
}

#[cfg(test)]
mod tests;
