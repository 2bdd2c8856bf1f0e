//! Served kinds by group and version, as discovery and OpenAPI list them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use crate::definition::{Registry, ResourceDefinition};
use crate::reviews::{REVIEWS, Review};

/// Verbs of Kubernetes' own kinds.
const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Verbs of custom kinds, in upstream's order, which `kubectl api-resources -o wide` shows.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Verbs of Namespace, which has no deletecollection.
const NAMESPACE_VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
/// Verbs of a subresource, such as `status`.
const PART_VERBS: [&str; 3] = ["get", "patch", "update"];

/// An API group with its versions.
pub struct Group<'a> {
    /// Name of the group; empty for the core group.
    pub name: &'a str,
    /// Versions of the group, the preferred one first.
    pub versions: Vec<GroupVersion<'a>>,
}

/// A version of a group with its resources.
pub struct GroupVersion<'a> {
    /// Name of the version, such as `v1`.
    pub name: &'a str,
    /// `GROUP/VERSION`, or the version alone in the core group.
    pub group_version: String,
    /// Resources of the version by name.
    pub resources: Vec<Resource<'a>>,
}

/// A resource or a subresource.
pub struct Resource<'a> {
    /// Path segment: the plural, or the name of the subresource, such as `status`.
    pub name: &'a str,
    /// Singular; empty for a subresource.
    pub singular: Cow<'a, str>,
    /// Kind of the objects.
    pub kind: Kind<'a>,
    /// True if the objects are namespaced.
    pub namespaced: bool,
    /// Verbs that the resource serves.
    pub verbs: &'a [&'a str],
    /// Short names that kubectl accepts.
    pub short_names: &'a [String],
    /// Categories, such as `all`, that kubectl accepts.
    pub categories: &'a [String],
    /// `storageVersionHash` of discovery; `None` for subresources and reviews.
    pub storage_hash: Option<String>,
    /// Definition of the resource; `None` for a review.
    pub definition: Option<&'a ResourceDefinition>,
    /// Subresources, in upstream's order.
    pub parts: Vec<Resource<'a>>,
}

/// Kind with its group and version, which may differ from group and version of the resource.
#[derive(Clone, Copy)]
pub struct Kind<'a> {
    /// API group of the kind; empty for core.
    pub group: &'a str,
    /// API version of the kind, such as `v1`.
    pub version: &'a str,
    /// Name of the kind.
    pub name: &'a str,
    /// True if discovery shows group and version of the kind even if the resource has the same.
    pub qualified: bool,
}

/// Returns the served groups, in the order of the registry, with resources sorted by name.
pub fn groups(registry: &Registry) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for definition in registry.all() {
        resources_of(&mut groups, &definition.group, &definition.version).push(whole(definition));
    }
    for review in &REVIEWS {
        for version in review.versions {
            add_review(resources_of(&mut groups, review.group, version), review, version);
        }
    }
    for version in groups.iter_mut().flat_map(|group| &mut group.versions) {
        version.resources.sort_by_key(|resource| resource.name);
    }
    groups
}

/// Adds a review to `resources`; a review at a subresource is added only if its parent is served.
fn add_review<'a>(resources: &mut Vec<Resource<'a>>, review: &'a Review, version: &'a str) {
    let (group, version) = match review.api_version.and_then(|text| text.split_once('/')) {
        Some(other) => other,
        None => (review.group, version),
    };
    let qualified = review.api_version.is_some();
    let created = Resource {
        name: review.resource,
        singular: review.kind.to_lowercase().into(),
        kind: Kind { group, version, name: review.kind, qualified },
        namespaced: review.namespaced,
        verbs: &["create"],
        short_names: &[],
        categories: &[],
        storage_hash: None,
        definition: None,
        parts: Vec::new(),
    };
    match review.resource.split_once('/') {
        None => resources.push(created),
        Some((whole, part)) => {
            let whole = resources.iter_mut().find(|resource| resource.name == whole);
            if let Some(whole) = whole {
                whole.parts.push(Resource { name: part, singular: Cow::Borrowed(""), ..created });
                whole.parts.sort_by_key(|part| part.name);
            }
        }
    }
}

/// Returns the resources of `version` in `group`; adds a missing group or version.
fn resources_of<'a, 'b>(
    groups: &'b mut Vec<Group<'a>>,
    group: &'a str,
    version: &'a str,
) -> &'b mut Vec<Resource<'a>> {
    let place = groups.iter().position(|one| one.name == group).unwrap_or_else(|| {
        groups.push(Group { name: group, versions: Vec::new() });
        groups.len() - 1
    });
    let versions = &mut groups[place].versions;
    let place = versions.iter().position(|one| one.name == version).unwrap_or_else(|| {
        let group_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        versions.push(GroupVersion { name: version, group_version, resources: Vec::new() });
        versions.len() - 1
    });
    &mut versions[place].resources
}

fn whole(definition: &ResourceDefinition) -> Resource<'_> {
    let kind = Kind {
        group: &definition.group,
        version: &definition.version,
        name: &definition.kind,
        qualified: !definition.native,
    };
    let mut parts = Vec::new();
    if definition.is_namespace {
        parts.push(part("finalize", kind, definition, &["update"]));
    }
    if definition.status_subresource {
        parts.push(part("status", kind, definition, &PART_VERBS));
    }
    if definition.scale.is_some() {
        let scale = Kind { group: "autoscaling", version: "v1", name: "Scale", qualified: true };
        // Upstream sorts only the subresources of its own kinds.
        let place = if definition.native { 0 } else { parts.len() };
        parts.insert(place, part("scale", scale, definition, &PART_VERBS));
    }
    let verbs = match definition {
        namespace if namespace.is_namespace => &NAMESPACE_VERBS[..],
        native if native.native => &VERBS,
        _ => &CUSTOM_VERBS,
    };
    Resource {
        name: &definition.plural,
        singular: Cow::Borrowed(&definition.singular),
        kind,
        namespaced: definition.namespaced,
        verbs,
        short_names: &definition.short_names,
        categories: &definition.categories,
        storage_hash: Some(storage_hash(definition)),
        definition: Some(definition),
        parts,
    }
}

fn part<'a>(
    name: &'a str,
    kind: Kind<'a>,
    of: &ResourceDefinition,
    verbs: &'a [&'a str],
) -> Resource<'a> {
    Resource {
        name,
        singular: Cow::Borrowed(""),
        kind,
        namespaced: of.namespaced,
        verbs,
        short_names: &[],
        categories: &[],
        storage_hash: None,
        definition: None,
        parts: Vec::new(),
    }
}

/// Returns the hash by which clients detect a change of the storage version (k8s.io/apiserver,
/// `pkg/endpoints/discovery/storageversionhash.go`).
fn storage_hash(definition: &ResourceDefinition) -> String {
    let stored_as = definition.stored_as.as_deref().and_then(|id| id.split_once('/'));
    let group = stored_as.map_or(definition.group.as_str(), |(group, _)| group);
    let stored = [group, &definition.storage_version, &definition.kind].join("/");
    BASE64_STANDARD.encode(&Sha256::digest(stored)[..8])
}
