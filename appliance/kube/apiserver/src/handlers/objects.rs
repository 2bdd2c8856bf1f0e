//! Handlers of the verbs on objects: get, list, watch, create, update, patch, delete.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::header::USER_AGENT;
use http::{Method, StatusCode};
use rbac::{Action, Target, User};
use serde_json::Value;

use super::list::Listing;
use super::{App, scale, watch};
use crate::budget::HeldBytes;
use crate::filters::{AuthLayer, Client, WrittenObject};
use crate::wire::negotiate::{self, Shape};
use crate::wire::path::ResourcePath;
use crate::wire::query::Query;
use crate::wire::response::{self, Form};
use crate::wire::{accept, body};
use resources::definition::{ResourceDefinition, Scale};
use resources::engine::{
    Configuration, Engine, ObjectList, Part, Warnings, WriteOptions, manager_of,
};
use resources::table::RowObject;
use resources::{Reason, StatusError};

/// Maximum concurrent deletes of one collection; concurrent deletes share commits of the store.
const DELETES_AT_ONCE: usize = 16;

/// Parsed request on objects: target, options and form of the response.
struct Call {
    /// Engine with the admission check for the caller's writes.
    engine: Engine,
    definition: Arc<ResourceDefinition>,
    resource: String,
    path: ResourcePath,
    query: Query,
    part: Part,
    shape: Shape,
    /// True if the client requests YAML.
    in_yaml: bool,
    row: RowObject,
    warnings: Warnings,
    /// Field manager that owns the written fields.
    manager: String,
    auth: Arc<AuthLayer>,
    user: Option<User>,
    /// Key of the client for request and byte limits.
    client: Arc<str>,
}

pub(super) async fn respond(
    app: &App,
    path: ResourcePath,
    mut request: Request,
) -> Result<Response, StatusError> {
    let call = Call::read(app, path, &request)?;
    let method = request.method().clone();
    if method == Method::GET && call.path.name.is_none() && call.query.flag("watch") {
        return call.watch(watch::Handshake::of(&mut request)?).await;
    }
    call.negotiable(&method)?;
    let mut response = call.run(method, request).await?;
    response::warn(&mut response, &call.warnings.take());
    Ok(response)
}

impl Call {
    fn read(app: &App, path: ResourcePath, request: &Request) -> Result<Self, StatusError> {
        let registry = app.engine.registry();
        let definition = registry
            .by_path(&path.group, &path.version, &path.plural)
            .ok_or_else(StatusError::no_such_resource)?
            .clone();
        let part = match path.subresource.as_deref() {
            None => Part::Main,
            Some("status") if definition.status_subresource || definition.is_namespace => {
                Part::Status
            }
            Some("finalize") if definition.is_namespace => Part::Finalize,
            Some("scale") if definition.scale.is_some() && path.name.is_some() => Part::Main,
            Some(_) => return Err(StatusError::no_such_resource()),
        };
        let placed = match (definition.namespaced, path.namespace.is_some()) {
            (false, named) => !named,
            // All namespaces together can be read, not written. For Kubernetes' own kinds, other
            // methods get 405.
            (true, false) => {
                path.name.is_none() && (definition.native || request.method() == Method::GET)
            }
            (true, true) => true,
        };
        if !placed {
            return Err(StatusError::no_such_resource());
        }
        let query = Query::parse(request.uri().query().unwrap_or_default())?;
        let row = match query.get("includeObject") {
            Some("Object") => RowObject::Object,
            Some("None") => RowObject::None,
            _ => RowObject::Metadata,
        };
        let shape = negotiate::accepted(request.headers())?;
        let resource = definition.address();
        let warnings = Warnings::default();
        if let Some(warning) = &definition.deprecated {
            warnings.add(warning.as_str());
        }
        let engine = app.engine.with_admission(request.extensions().get().cloned());
        let agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok());
        let manager = match query.get("fieldManager") {
            Some(manager) => manager.to_owned(),
            None => manager_of(agent.unwrap_or_default()),
        };
        let (auth, user) = (Arc::clone(&app.auth), request.extensions().get().cloned());
        let client = request.extensions().get::<Client>().map(|client| Arc::clone(&client.0));
        Ok(Self {
            engine,
            definition,
            resource,
            path,
            query,
            part,
            shape,
            in_yaml: accept::prefers_yaml(request.headers()),
            row,
            warnings,
            manager,
            auth,
            user,
            client: client.unwrap_or_default(),
        })
    }

    async fn run(&self, method: Method, request: Request) -> Result<Response, StatusError> {
        let scaled = self.path.subresource.as_deref() == Some("scale");
        let name = self.path.name.clone();
        match (method, name, self.definition.scale.clone().filter(|_| scaled)) {
            (Method::GET, Some(name), Some(scale)) => {
                let object = self.engine.get(&self.resource, self.namespace(), &name).await?;
                Ok(response::json(StatusCode::OK, &scale::read(&scale, &object)?))
            }
            (method @ (Method::PUT | Method::PATCH), Some(name), Some(scale)) => {
                self.scale(&name, &scale, method, request).await
            }
            (Method::GET, None, _) => self.list().await,
            (Method::POST, None, _) => self.create(request).await,
            (Method::DELETE, None, _) => self.delete_all(request).await,
            (Method::PUT, Some(name), None) if self.part == Part::Finalize => {
                self.update(&name, request).await
            }
            _ if self.part == Part::Finalize => Err(StatusError::method_not_allowed()),
            (Method::GET, Some(name), None) => self.get(&name).await,
            (Method::PUT, Some(name), None) => self.update(&name, request).await,
            (Method::PATCH, Some(name), None) => self.patch(&name, request).await,
            (Method::DELETE, Some(name), None) if self.part == Part::Main => {
                self.delete(&name, request).await
            }
            _ => Err(StatusError::method_not_allowed()),
        }
    }

    /// Returns the write options with this call's warnings; `kind` is the options kind of the verb,
    /// such as `CreateOptions`.
    fn write_options(&self, kind: &str) -> Result<WriteOptions, StatusError> {
        let mut options = self.query.write(self.part, kind)?;
        options.fields.warnings = self.warnings.clone();
        options.manager = Some(self.manager.clone());
        Ok(options)
    }

    async fn scale(
        &self,
        name: &str,
        scale: &Scale,
        method: Method,
        request: Request,
    ) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        let patched = method == Method::PATCH;
        let mut options =
            self.write_options(if patched { "PatchOptions" } else { "UpdateOptions" })?;
        options.subresource = Some("scale");
        let force = self.query.force(patched && body::is_apply(&parts.headers))?;
        let found = &mut options.fields.found;
        let change = if patched && body::is_apply(&parts.headers) {
            scale::Change::Apply { config: body::configuration(body, found).await?, force }
        } else if patched {
            scale::Change::Patch(body::patch(&parts.headers, body, false, found).await?)
        } else {
            scale::Change::Replace(body::object(&parts.headers, body, true, found).await?)
        };
        let (engine, definition) = (&self.engine, self.definition.as_ref());
        let namespace = self.namespace();
        let scaled = scale::Scaled { engine, definition, scale, namespace, name };
        let written = scaled.write(change, options).await?;
        Ok(response::json(StatusCode::OK, &written))
    }

    fn namespace(&self) -> &str {
        self.path.namespace.as_deref().unwrap_or_default()
    }

    fn form(&self) -> Form<'_> {
        Form {
            definition: &self.definition,
            shape: self.shape,
            row: self.row,
            now: self.engine.clock().now(),
        }
    }

    /// Returns the response to a write, with the written object as body.
    fn written(&self, code: StatusCode, object: Value) -> Response {
        let written = WrittenObject::of(&object);
        let mut response = response::json(code, &self.form().object(object));
        response.extensions_mut().insert(written);
        response
    }

    async fn get(&self, name: &str) -> Result<Response, StatusError> {
        let (asked, newest) = (self.query.get("resourceVersion"), self.engine.revision());
        if let Some(ahead) = asked.and_then(|text| text.parse().ok()).filter(|at| *at > newest) {
            return Err(StatusError::from_the_future(ahead, newest));
        }
        let object = self.engine.get(&self.resource, self.namespace(), name).await?;
        Ok(response::json(StatusCode::OK, &self.form().object(object)))
    }

    /// Checks that a list form is requested only for a list, and an object form for an object.
    fn negotiable(&self, method: &Method) -> Result<(), StatusError> {
        let is_list = self.path.name.is_none() && matches!(*method, Method::GET | Method::DELETE);
        let (asked, is) = match (self.shape, is_list) {
            (Shape::Metadata(_), true) => ("PartialObjectMetadata", "a list"),
            (Shape::MetadataList(_), false) => ("PartialObjectMetadataList", "not a list"),
            _ => return Ok(()),
        };
        let kind = if is_list { &self.definition.list_kind } else { &self.definition.kind };
        let why = format!("you requested {asked}, but the requested object is {is} ({kind})");
        Err(StatusError::new(Reason::NotAcceptable, why))
    }

    /// Returns the response to a watch of the collection in the path.
    async fn watch(&self, handshake: Option<watch::Handshake>) -> Result<Response, StatusError> {
        if self.in_yaml {
            let why = "only the following media types are accepted: application/json;stream=watch";
            return Err(StatusError::new(Reason::NotAcceptable, why));
        }
        let options = self.query.watch()?;
        let ends = self.query.timeout()?;
        let namespace = self.path.namespace.as_deref();
        let watch = match self.engine.watch(&self.resource, namespace, options).await {
            // Sent inside the stream, where clients expect it.
            Err(error) if error.reason != Reason::Expired => return Err(error),
            watch => watch,
        };
        let (engine, definition) = (self.engine.clone(), self.definition.clone());
        let feed = watch::Feed::new(watch, engine, definition, (self.shape, self.held()?));
        let feed = feed.with_rows(self.row).bookmarks(&self.query).until(ends);
        Ok(match handshake {
            Some(handshake) => feed.respond_to(handshake),
            None => feed.respond(),
        })
    }

    async fn list(&self) -> Result<Response, StatusError> {
        let listing = Listing {
            engine: self.engine.clone(),
            definition: self.definition.clone(),
            resource: self.resource.clone(),
            namespace: self.path.namespace.clone(),
            shape: self.shape,
            row: self.row,
            options: self.query.list()?,
        };
        listing.respond(self.in_yaml, self.held()?).await
    }

    /// Returns a counter for response bytes; 429 if the client's limit is reached.
    fn held(&self) -> Result<HeldBytes, StatusError> {
        self.auth.responses.enter(&self.client).ok_or_else(StatusError::too_many_requests)
    }

    async fn create(&self, request: Request) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        if self.definition.namespaced && self.path.namespace.is_none() {
            return Err(StatusError::method_not_allowed());
        }
        let mut options = self.write_options("CreateOptions")?;
        let (native, found) = (self.definition.native, &mut options.fields.found);
        let object = body::object(&parts.headers, body, native, found).await?;
        let created = self.engine.create(&self.resource, self.namespace(), object, options).await?;
        Ok(self.written(StatusCode::CREATED, created))
    }

    async fn update(&self, name: &str, request: Request) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        let mut options = self.write_options("UpdateOptions")?;
        let (native, found) = (self.definition.native, &mut options.fields.found);
        let object = body::object(&parts.headers, body, native, found).await?;
        let namespace = self.namespace();
        let updated = self.engine.update(&self.resource, namespace, name, object, options).await?;
        Ok(self.written(StatusCode::OK, updated))
    }

    async fn patch(&self, name: &str, request: Request) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        let mut options = self.write_options("PatchOptions")?;
        let force = self.query.force(body::is_apply(&parts.headers))?;
        if body::is_apply(&parts.headers) {
            let object = body::configuration(body, &mut options.fields.found).await?;
            let uncreatable = self.uncreatable(name).await?;
            return self.apply(name, Configuration { object, force, uncreatable }, options).await;
        }
        let (native, found) = (self.definition.native, &mut options.fields.found);
        let patch = body::patch(&parts.headers, body, native, found).await?;
        let namespace = self.namespace();
        let patched = self.engine.patch(&self.resource, namespace, name, patch, options).await?;
        Ok(self.written(StatusCode::OK, patched))
    }

    async fn apply(
        &self,
        name: &str,
        config: Configuration,
        options: WriteOptions,
    ) -> Result<Response, StatusError> {
        let namespace = self.namespace();
        let applied = self.engine.apply(&self.resource, namespace, name, config, options).await?;
        let code = if applied.created { StatusCode::CREATED } else { StatusCode::OK };
        Ok(self.written(code, applied.object))
    }

    /// Returns the error for an apply that would create the object without the permission `create`;
    /// `None` if the caller may create.
    async fn uncreatable(&self, name: &str) -> Result<Option<StatusError>, StatusError> {
        let Some(user) = &self.user else { return Ok(None) };
        let target = Target::Resource {
            group: self.definition.group.clone(),
            namespace: self.namespace().to_owned(),
            resource: self.definition.plural.clone(),
            subresource: String::new(),
            name: name.to_owned(),
        };
        let action = Action { verb: "create".to_owned(), target };
        let decision = self.auth.roles.authorize(user, &action).await?;
        let refused = || StatusError::denied(user, &action, &decision.reason);
        Ok((!decision.allowed).then(refused))
    }

    async fn delete(&self, name: &str, request: Request) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        let options = body::delete_options(&parts.headers, &self.query, body).await?;
        let (namespace, dry_run) = (self.namespace(), options.dry_run);
        let deleted = self.engine.delete(&self.resource, namespace, name, options).await?;
        let written = WrittenObject { dry_run, ..WrittenObject::of(deleted.object()) };
        let mut response = response::json(StatusCode::OK, &self.form().deleted(deleted));
        response.extensions_mut().insert(written);
        Ok(response)
    }

    /// Deletes the objects that match the query's selectors. An object that was deleted meanwhile
    /// is not an error.
    async fn delete_all(&self, request: Request) -> Result<Response, StatusError> {
        // Namespaces can only be deleted one by one, as upstream.
        let everywhere = self.definition.namespaced && self.path.namespace.is_none();
        if everywhere || self.definition.is_namespace {
            return Err(StatusError::method_not_allowed());
        }
        let (parts, body) = request.into_parts();
        let options = body::delete_options(&parts.headers, &self.query, body).await?;
        let (namespace, dry_run) = (self.namespace(), options.dry_run);
        let chosen = self.query.list()?;
        let list = self.engine.list(&self.resource, self.path.namespace.as_deref(), chosen).await?;
        let deletes = list.items.iter().map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let options = options.clone();
            async move {
                match self.engine.delete(&self.resource, namespace, name, options).await {
                    Ok(_) => Ok(Some(object.clone())),
                    Err(error) if error.reason == Reason::NotFound => Ok(None),
                    Err(error) => Err(error),
                }
            }
        });
        let deletes: Vec<_> = deletes.collect();
        let deleted: Vec<_> = stream::iter(deletes).buffered(DELETES_AT_ONCE).try_collect().await?;
        let items = deleted.into_iter().flatten().collect();
        let list = ObjectList { revision: self.engine.revision(), items, ..ObjectList::default() };
        let mut response = response::json(StatusCode::OK, &self.form().list(list));
        response.extensions_mut().insert(WrittenObject { dry_run, ..WrittenObject::default() });
        Ok(response)
    }
}
