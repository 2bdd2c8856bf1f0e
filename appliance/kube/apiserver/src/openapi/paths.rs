//! OpenAPI v3 paths of a group and version, with the operations on each path.

use serde_json::{Map, Value, json};

use super::kinds::{self, DELETE_OPTIONS, PATCH, STATUS};
use super::types::reference;
use resources::served::{GroupVersion, Kind, Resource};

const JSON: &str = "application/json";
const PATCHES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// Query parameter: name, type and description.
type Parameter = (&'static str, &'static str, &'static str);

const DRY_RUN: Parameter = ("dryRun", "string", "All: run every check, store nothing.");
const MANAGER: Parameter = ("fieldManager", "string", "Name of the writer in managedFields.");
const VALIDATION: Parameter =
    ("fieldValidation", "string", "Handling of unknown fields: Ignore, Warn or Strict.");
const FORCE: Parameter = ("force", "boolean", "Take over fields of other managers in an apply.");
const PRETTY: Parameter = ("pretty", "string", "Accepted and ignored: formatting for people.");
const LABELS: Parameter = ("labelSelector", "string", "Selects objects by labels.");
const FIELDS: Parameter = ("fieldSelector", "string", "Selects objects by fields.");
const WRITES: [Parameter; 3] = [DRY_RUN, MANAGER, VALIDATION];
const PATCHING: [Parameter; 4] = [DRY_RUN, MANAGER, VALIDATION, FORCE];
const LISTS: [Parameter; 10] = [
    ("allowWatchBookmarks", "boolean", "Send bookmarks, which show a watch's progress."),
    ("continue", "string", "Continue token of the previous page of a list."),
    FIELDS,
    LABELS,
    ("limit", "integer", "Maximum objects in one response."),
    ("resourceVersion", "string", "Revision of the data to read."),
    ("resourceVersionMatch", "string", "Match of resourceVersion: Exact or NotOlderThan."),
    ("sendInitialEvents", "boolean", "Begin a watch with the existing objects."),
    ("timeoutSeconds", "integer", "Maximum duration of the request."),
    ("watch", "boolean", "Send changes as they happen."),
];
const OF_WATCHES: [&str; 2] = ["allowWatchBookmarks", "watch"];
const DELETES: [Parameter; 4] = [
    DRY_RUN,
    ("gracePeriodSeconds", "integer", "Seconds before deletion."),
    ("orphanDependents", "boolean", "Keep dependent objects."),
    ("propagationPolicy", "string", "Handling of dependents: Orphan, Background, Foreground."),
];

/// Common data of the operations on one resource or subresource.
struct OperationContext<'a> {
    resource: &'a Resource<'a>,
    /// Kind of the resource, also for a subresource whose response has another kind.
    kind: Kind<'a>,
    /// Prefix of operation ids, such as `CoreV1`.
    version: String,
    /// Tag of operations, such as `core_v1`.
    tag: String,
    /// Name of the subresource with a capital letter, such as `Status`; empty for the resource.
    part: String,
    lists: Option<String>,
}

/// Returns the paths of one group and version.
pub(super) fn of(group: &str, version: &GroupVersion<'_>) -> Map<String, Value> {
    let root = match group {
        "" => format!("/api/{}", version.name),
        group => format!("/apis/{group}/{}", version.name),
    };
    let mut paths = Map::new();
    for resource in &version.resources {
        let definition = resource.definition;
        let about = OperationContext {
            resource,
            kind: resource.kind,
            version: camel(group, version.name),
            tag: tag(group, version.name),
            part: String::new(),
            lists: definition.map(|definition| kinds::list_name(resource.kind, definition)),
        };
        let everywhere = format!("{root}/{}", resource.name);
        let collection = if resource.namespaced {
            format!("{root}/namespaces/{{namespace}}/{}", resource.name)
        } else {
            everywhere.clone()
        };
        if resource.namespaced && about.can("list") {
            let item = json!({ "get": about.list("ForAllNamespaces") });
            paths.insert(everywhere, about.with_parameters(item, false, false));
        }
        let item = about.collection();
        paths.insert(collection.clone(), about.with_parameters(item, resource.namespaced, false));
        let one = format!("{collection}/{{name}}");
        if about.can("get") {
            let item = about.one();
            paths.insert(one.clone(), about.with_parameters(item, resource.namespaced, true));
        }
        for part in &resource.parts {
            let about = OperationContext {
                resource: part,
                kind: resource.kind,
                version: about.version.clone(),
                tag: about.tag.clone(),
                part: capital(part.name),
                lists: None,
            };
            let item = about.with_parameters(about.one(), part.namespaced, true);
            paths.insert(format!("{one}/{}", part.name), item);
        }
    }
    paths
}

/// Splits a group's name into the words for operation ids and tags.
fn words(group: &str) -> impl Iterator<Item = &str> {
    let group = if group.is_empty() { "core" } else { group };
    group.strip_suffix(".k8s.io").unwrap_or(group).split(['.', '-'])
}

/// Returns group and version for operation ids: `CoreV1`, `RbacAuthorizationV1`.
fn camel(group: &str, version: &str) -> String {
    words(group).chain([version]).map(capital).collect()
}

/// Returns group and version as a tag: `core_v1`, `rbacAuthorization_v1`.
fn tag(group: &str, version: &str) -> String {
    let mut words = words(group);
    let first = words.next().unwrap_or_default().to_owned();
    let rest: String = words.map(capital).collect();
    format!("{first}{rest}_{version}")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

impl OperationContext<'_> {
    /// Returns true for one of Kubernetes' own kinds, or a subresource of such a kind.
    fn of_native(&self) -> bool {
        !self.kind.qualified
    }

    fn can(&self, verb: &str) -> bool {
        self.resource.verbs.contains(&verb)
    }

    /// Returns the operations on a collection of objects.
    fn collection(&self) -> Value {
        let mut item = Map::new();
        if self.can("list") {
            item.insert("get".to_owned(), self.list(""));
        }
        if self.can("create") {
            let of = kinds::name(self.resource.kind);
            let mut post = self.operation("create", "post", &of, &WRITES);
            post["requestBody"] = body(&of, &["*/*"], true);
            item.insert("post".to_owned(), post);
        }
        if self.can("deletecollection") {
            let lists = LISTS.into_iter().filter(|one| !OF_WATCHES.contains(&one.0));
            let parameters: Vec<Parameter> = DELETES.into_iter().chain(lists).collect();
            let mut delete = self.operation("delete", "deletecollection", STATUS, &parameters);
            delete["requestBody"] = body(DELETE_OPTIONS, &["*/*"], false);
            item.insert("delete".to_owned(), delete);
        }
        Value::Object(item)
    }

    fn list(&self, scope: &str) -> Value {
        let of = self.lists.clone().unwrap_or_else(|| kinds::name(self.resource.kind));
        let mut list = self.operation("list", "list", &of, &LISTS);
        if !scope.is_empty() {
            list["operationId"] = json!(format!("list{}{}{scope}", self.version, self.kind.name));
        }
        list
    }

    /// Returns the operations on one object, or on its subresource.
    fn one(&self) -> Value {
        let of = kinds::name(self.resource.kind);
        let mut item = Map::new();
        if self.can("get") {
            item.insert("get".to_owned(), self.operation("read", "get", &of, &[]));
        }
        if self.can("update") {
            let mut put = self.operation("replace", "put", &of, &WRITES);
            put["requestBody"] = body(&of, &["*/*"], true);
            item.insert("put".to_owned(), put);
        }
        if self.can("patch") {
            let mut patch = self.operation("patch", "patch", &of, &PATCHING);
            let mut forms = PATCHES.to_vec();
            if self.resource.definition.is_some_and(|definition| definition.native) {
                forms.push(STRATEGIC_PATCH);
            }
            patch["requestBody"] = body(PATCH, &forms, true);
            item.insert("patch".to_owned(), patch);
        }
        if self.can("delete") {
            let returns = self.resource.definition.is_some_and(|one| one.returns_deleted);
            let answer = if returns { &of } else { STATUS };
            let mut delete = self.operation("delete", "delete", answer, &DELETES);
            delete["requestBody"] = body(DELETE_OPTIONS, &["*/*"], false);
            item.insert("delete".to_owned(), delete);
        }
        if self.can("create") && !self.part.is_empty() {
            let mut post = self.operation("create", "post", &of, &WRITES);
            post["requestBody"] = body(&of, &["*/*"], true);
            item.insert("post".to_owned(), post);
        }
        Value::Object(item)
    }

    fn operation(&self, verb: &str, action: &str, of: &str, parameters: &[Parameter]) -> Value {
        let scope = if self.resource.namespaced { "Namespaced" } else { "" };
        let (kind, part) = (self.kind.name, &self.part);
        let many = if action == "deletecollection" { "Collection" } else { "" };
        // Further status codes: object created, or deletion accepted but not finished.
        let also: &[&str] = match (action, self.resource.definition) {
            ("post", _) => &["201", "202"],
            ("put", _) => &["201"],
            ("patch", _) if self.of_native() => &["201"],
            ("delete", _) => &["202"],
            _ => &[],
        };
        let answer = json!({
            "description": "OK",
            "content": { JSON: { "schema": reference(of) } },
        });
        let mut responses = json!({ "401": { "description": "Unauthorized" } });
        for code in ["200"].iter().chain(also) {
            responses[*code] = answer.clone();
        }
        json!({
            "operationId": format!("{verb}{}{many}{scope}{kind}{part}", self.version),
            "tags": [self.tag],
            "parameters": parameters.iter().map(query).collect::<Vec<_>>(),
            "responses": responses,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kinds::identity(self.resource.kind),
        })
    }

    fn with_parameters(&self, mut item: Value, namespaced: bool, named: bool) -> Value {
        let mut parameters = Vec::new();
        if named {
            let text = format!("Name of the {}.", self.kind.name);
            parameters.push(in_path("name", &text));
        }
        if namespaced {
            parameters.push(in_path("namespace", "Namespace of the object."));
        }
        parameters.push(query(&PRETTY));
        item["parameters"] = Value::Array(parameters);
        item
    }
}

fn query((name, form, text): &Parameter) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": text,
        "schema": { "type": form, "uniqueItems": true },
    })
}

fn in_path(name: &str, text: &str) -> Value {
    json!({
        "name": name,
        "in": "path",
        "description": text,
        "required": true,
        "schema": { "type": "string", "uniqueItems": true },
    })
}

fn body(of: &str, forms: &[&str], required: bool) -> Value {
    let content: Map<String, Value> =
        forms.iter().map(|form| ((*form).to_owned(), json!({ "schema": reference(of) }))).collect();
    let mut body = json!({ "content": content });
    if required {
        body["required"] = json!(true);
    }
    body
}
