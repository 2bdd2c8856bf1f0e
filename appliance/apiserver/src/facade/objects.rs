//! The verbs on objects.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, StatusCode};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::answer::{self, Form};
use super::negotiate::{self, Shape};
use super::path::ResourcePath;
use super::query::Query;
use super::{App, body, stream as watching};
use crate::definition::ResourceDefinition;
use crate::engine::{Engine, ObjectList, Part};
use crate::status_error::{Reason, StatusError};
use crate::table::RowObject;

/// Objects of a collection deleted at the same time, so that they share commits.
const DELETES_AT_ONCE: usize = 16;

/// A call: which objects, and how to answer.
struct Call<'a> {
    engine: &'a Engine,
    definition: Arc<ResourceDefinition>,
    resource: String,
    path: ResourcePath,
    query: Query,
    part: Part,
    shape: Shape,
    row: RowObject,
}

pub(super) async fn respond(
    app: &App,
    path: ResourcePath,
    request: Request,
) -> Result<Response, StatusError> {
    let call = Call::read(app, path, &request)?;
    let method = request.method().clone();
    if method == Method::GET && call.path.name.is_none() && call.query.flag("watch") {
        let permit = app.watches.clone().try_acquire_owned().map_err(|_| busy())?;
        let namespace = call.path.namespace.clone();
        let options = call.query.watch()?;
        let watch = call.engine.watch(&call.resource, namespace.as_deref(), options).await?;
        let ends = call.query.timeout_seconds()?;
        let (engine, definition) = (call.engine.clone(), call.definition.clone());
        let feed = watching::Feed::new(watch, engine, definition, call.shape, permit);
        return Ok(feed.with_rows(call.row).bookmarks(&call.query).until(ends).respond());
    }
    let lane = if method == Method::GET { &app.reads } else { &app.writes };
    let _permit = enter(lane)?;
    match (method, call.path.name.clone()) {
        (Method::GET, None) => call.list().await,
        (Method::POST, None) if call.path.subresource.is_none() => call.create(request).await,
        (Method::DELETE, None) => call.delete_all(request).await,
        (Method::GET, Some(name)) => call.get(&name).await,
        (Method::PUT, Some(name)) => call.update(&name, request).await,
        (Method::PATCH, Some(name)) => call.patch(&name, request).await,
        (Method::DELETE, Some(name)) if call.part == Part::Main => {
            call.delete(&name, request).await
        }
        _ => Err(not_allowed()),
    }
}

fn enter(lane: &Semaphore) -> Result<SemaphorePermit<'_>, StatusError> {
    lane.try_acquire().map_err(|_| busy())
}

fn busy() -> StatusError {
    let mut error = StatusError::new(
        Reason::TooManyRequests,
        "the server has received too many requests and has asked us to try again later",
    );
    error.details.retry_after_seconds = 1;
    error
}

fn not_allowed() -> StatusError {
    StatusError::new(
        Reason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    )
}

impl<'a> Call<'a> {
    fn read(app: &'a App, path: ResourcePath, request: &Request) -> Result<Self, StatusError> {
        let registry = app.engine.registry();
        let definition = registry
            .by_path(&path.group, &path.version, &path.plural)
            .ok_or_else(StatusError::no_such_resource)?
            .clone();
        let part = match path.subresource.as_deref() {
            None => Part::Main,
            Some("status") if definition.status_subresource => Part::Status,
            Some(_) => return Err(StatusError::no_such_resource()),
        };
        let placed = match (definition.namespaced, path.namespace.is_some()) {
            (false, named) => !named,
            // All namespaces together can be read, not written.
            (true, false) => path.name.is_none(),
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
        let resource = definition.id();
        Ok(Self { engine: &app.engine, definition, resource, path, query, part, shape, row })
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

    async fn get(&self, name: &str) -> Result<Response, StatusError> {
        let object = self.engine.get(&self.resource, self.namespace(), name).await?;
        Ok(answer::json(StatusCode::OK, &self.form().object(object)))
    }

    async fn list(&self) -> Result<Response, StatusError> {
        let options = self.query.list()?;
        let list =
            self.engine.list(&self.resource, self.path.namespace.as_deref(), options).await?;
        Ok(answer::json(StatusCode::OK, &self.form().list(list)))
    }

    async fn create(&self, request: Request) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        if self.definition.namespaced && self.path.namespace.is_none() {
            return Err(not_allowed());
        }
        let options = self.query.write(self.part)?;
        let object = body::object(&parts.headers, body).await?;
        let created = self.engine.create(&self.resource, self.namespace(), object, options).await?;
        Ok(answer::json(StatusCode::CREATED, &self.form().object(created)))
    }

    async fn update(&self, name: &str, request: Request) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        let options = self.query.write(self.part)?;
        let object = body::object(&parts.headers, body).await?;
        let namespace = self.namespace();
        let updated = self.engine.update(&self.resource, namespace, name, object, options).await?;
        Ok(answer::json(StatusCode::OK, &self.form().object(updated)))
    }

    async fn patch(&self, name: &str, request: Request) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        let options = self.query.write(self.part)?;
        let patch = body::patch(&parts.headers, body).await?;
        let namespace = self.namespace();
        let patched = self.engine.patch(&self.resource, namespace, name, patch, options).await?;
        Ok(answer::json(StatusCode::OK, &self.form().object(patched)))
    }

    async fn delete(&self, name: &str, request: Request) -> Result<Response, StatusError> {
        let (parts, body) = request.into_parts();
        let options = body::delete_options(&parts.headers, &self.query, body).await?;
        let namespace = self.namespace();
        let deleted = self.engine.delete(&self.resource, namespace, name, options).await?;
        Ok(answer::json(StatusCode::OK, &self.form().deleted(deleted)))
    }

    /// Deletes what a list with the same selectors gives; one that went meanwhile is no failure.
    async fn delete_all(&self, request: Request) -> Result<Response, StatusError> {
        if self.definition.namespaced && self.path.namespace.is_none() {
            return Err(not_allowed());
        }
        let (parts, body) = request.into_parts();
        let options = body::delete_options(&parts.headers, &self.query, body).await?;
        let namespace = self.namespace();
        let chosen = self.query.list()?;
        let list = self.engine.list(&self.resource, self.path.namespace.as_deref(), chosen).await?;
        let deletes = list.items.iter().map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let options = options.clone();
            async move {
                match self.engine.delete(&self.resource, namespace, name, options).await {
                    Ok(deleted) => Ok(Some(deleted.object().clone())),
                    Err(error) if error.reason == Reason::NotFound => Ok(None),
                    Err(error) => Err(error),
                }
            }
        });
        let deletes: Vec<_> = deletes.collect();
        let deleted: Vec<_> = stream::iter(deletes).buffered(DELETES_AT_ONCE).try_collect().await?;
        let items = deleted.into_iter().flatten().collect();
        let list = ObjectList { revision: self.engine.revision(), items, ..ObjectList::default() };
        Ok(answer::json(StatusCode::OK, &self.form().list(list)))
    }
}
