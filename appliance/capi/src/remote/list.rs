//! Complete lists of objects, read in pages of one revision.

use api::meta::{ObjectKey, Resource};
use kube::api::ListParams;
use serde_json::Value;

use super::connection::Connection;
use super::failure::{self, Failure, Subject};
use super::path;

/// Maximum objects in one page, so that the JSON of large objects fits into a response.
const PAGE: u32 = 50;
/// Maximum objects of one list, and of the copy in memory of a watched kind.
pub const OBJECTS_MAX: usize = 2_000;
/// Maximum starts of a list. A start after the first follows pages that took longer than the server
/// keeps their revision, 5 minutes by default.
const STARTS_MAX: u32 = 2;

/// Advice for a scope with more than [`OBJECTS_MAX`] objects.
pub const TOO_MANY: &str = "limit the box to one namespace, or to the objects of one watch filter";

/// Selection of objects to list or to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Kind of the objects.
    pub resource: Resource,
    /// Namespace; empty for all namespaces, and for cluster-scoped kinds.
    pub namespace: String,
    /// Label selector, such as `cluster.x-k8s.io/watch-filter=rack-1`; empty for all objects.
    pub labels: String,
}

impl Scope {
    /// Returns the scope of all objects of a kind.
    pub fn all(resource: Resource) -> Self {
        Self { resource, namespace: String::new(), labels: String::new() }
    }

    pub(super) fn subject(&self) -> Subject {
        Subject::all(self.resource, &self.namespace)
    }
}

/// Objects of a scope at one revision.
pub struct List {
    /// Objects with kind and API version, without managed fields.
    pub items: Vec<Value>,
    /// Resource version from which a watch continues.
    pub revision: String,
}

/// Lists all objects of a scope.
///
/// # Errors
/// A page cannot be read, or the scope has more than [`OBJECTS_MAX`] objects.
pub async fn list(connection: &Connection, scope: &Scope) -> Result<List, Failure> {
    let mut starts = 1;
    loop {
        match pages(connection, scope).await {
            Err(Failure::Expired(_)) if starts < STARTS_MAX => starts += 1,
            result => return result,
        }
    }
}

async fn pages(connection: &Connection, scope: &Scope) -> Result<List, Failure> {
    let subject = scope.subject();
    let target = path::collection(scope.resource, &scope.namespace)?;
    let mut options = ListParams::default().limit(PAGE);
    if !scope.labels.is_empty() {
        options = options.labels(&scope.labels);
    }
    let mut items = Vec::new();
    loop {
        let request = kube::core::Request::new(target.as_str()).list(&options);
        let request = request.map_err(|error| failure::of_transport(&subject, &error))?;
        let page = page(scope, connection.call(&subject, request).await?);
        let page = page.map_err(|found| {
            let expected = format!("a list of {}", scope.resource.kind);
            failure::of_unexpected(&subject, &expected, &found)
        })?;
        items.extend(page.items);
        if items.len() > OBJECTS_MAX {
            let why = format!("more than {OBJECTS_MAX} objects");
            return Err(subject.unavailable(why, Some(TOO_MANY)).into());
        }
        if page.next.is_empty() {
            return Ok(List { items, revision: page.revision });
        }
        options = options.continue_token(&page.next);
    }
}

struct Page {
    items: Vec<Value>,
    revision: String,
    /// Token of the next page; empty on the last page.
    next: String,
}

/// Reads one page. The error is the start of a body that is not a list of the kind.
fn page(scope: &Scope, mut body: Value) -> Result<Page, String> {
    let text = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let is_list = text("/kind").ends_with("List")
        && text("/apiVersion") == scope.resource.api_version()
        && !text("/metadata/resourceVersion").is_empty();
    let revision = text("/metadata/resourceVersion").to_owned();
    let next = text("/metadata/continue").to_owned();
    let mut items = match body["items"].take() {
        Value::Array(items) if is_list => items,
        // Go encodes an empty list without capacity as null.
        Value::Null if is_list => Vec::new(),
        _ => return Err(body.to_string()),
    };
    for item in &mut items {
        if !complete(scope.resource, item) {
            return Err(item.to_string());
        }
    }
    Ok(Page { items, revision, next })
}

/// Completes an object of the API: lists of built-in kinds omit kind and API version. Managed
/// fields, half of a typical object, are removed; a replacement without them keeps the stored ones.
/// Returns false for a value that is not an object of the kind.
pub fn complete(resource: Resource, object: &mut Value) -> bool {
    let Some(map) = object.as_object_mut() else { return false };
    let is_kind = *map.entry("kind").or_insert_with(|| resource.kind.into()) == resource.kind;
    map.entry("apiVersion").or_insert_with(|| resource.api_version().into());
    let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) else {
        return false;
    };
    metadata.remove("managedFields");
    let has_name = metadata.get("name").and_then(Value::as_str).is_some_and(|it| !it.is_empty());
    is_kind && has_name
}

/// Returns namespace and name of an object.
pub fn key(object: &Value) -> ObjectKey {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"))
}
