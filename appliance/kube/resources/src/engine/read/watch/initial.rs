//! Initial objects of a watch at one revision, read page by page at the client's speed.

use std::collections::VecDeque;
use std::sync::Arc;

use store::Stored;
use tokio::task::JoinHandle;

use super::super::list::Page;
use super::super::selection::Selection;
use crate::definition::ResourceDefinition;
use crate::engine::Engine;
use crate::status_error::{Reason, StatusError};

/// Maximum bytes of buffered objects of one watch; one larger object is allowed. The limit is small
/// because thousands of clients may stop reading.
const PAGE_BYTES: usize = 64 * 1024;

/// Reader of the initial objects of a watch.
pub(super) struct InitialObjects {
    source: Source,
    /// Revision of the state that the objects show.
    pub floor: u64,
    page: VecDeque<Stored>,
    /// Continue token of the next page; `None` after the last page.
    token: Option<String>,
    /// Running read of the next page. The task is kept here, so that no object is lost if the
    /// caller's future is dropped.
    reading: Option<JoinHandle<Result<Page, StatusError>>>,
}

#[derive(Clone)]
struct Source {
    engine: Engine,
    definition: Arc<ResourceDefinition>,
    namespace: Option<String>,
    selection: Selection,
}

impl InitialObjects {
    /// Reads the first page of the present objects that match `selection`.
    pub async fn begin(
        engine: &Engine,
        definition: &Arc<ResourceDefinition>,
        namespace: Option<&str>,
        selection: &Selection,
    ) -> Result<Self, StatusError> {
        let source = Source {
            engine: engine.clone(),
            definition: definition.clone(),
            namespace: namespace.map(str::to_owned),
            selection: selection.clone(),
        };
        let Page { revision, objects, token } = finished(source.read(None).await)?;
        Ok(Self { source, floor: revision, page: objects.into(), token, reading: None })
    }

    /// Returns the next object; `None` after the last object. The future can be dropped without
    /// loss of an object.
    ///
    /// # Errors
    /// 410 if the change log no longer reaches back to the watch's revision.
    pub async fn next(&mut self) -> Result<Option<Stored>, StatusError> {
        loop {
            if let Some(stored) = self.page.pop_front() {
                return Ok(Some(stored));
            }
            let Some(token) = &self.token else { return Ok(None) };
            let reading = self.reading.get_or_insert_with(|| self.source.read(Some(token.clone())));
            let page = finished(reading.await);
            self.reading = None;
            let page = page.map_err(|error| match error.reason {
                // A watch cannot use the token that the list error offers.
                Reason::Expired => StatusError::expired(self.floor),
                _ => error,
            })?;
            (self.page, self.token) = (page.objects.into(), page.token);
        }
    }

    /// Returns true if all objects have been returned.
    pub fn is_over(&self) -> bool {
        self.page.is_empty() && self.token.is_none()
    }

    /// Returns the bytes of buffered objects.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.page.iter().map(|stored| stored.value.len()).sum()
    }
}

impl Source {
    /// Reads a page on a blocking thread, so that other connections are not delayed.
    fn read(&self, token: Option<String>) -> JoinHandle<Result<Page, StatusError>> {
        let Self { engine, definition, namespace, selection } = self.clone();
        tokio::task::spawn_blocking(move || {
            engine.page(&definition, namespace.as_deref(), selection, token, PAGE_BYTES)
        })
    }
}

fn finished(
    page: Result<Result<Page, StatusError>, tokio::task::JoinError>,
) -> Result<Page, StatusError> {
    page.map_err(|error| StatusError::internal("cannot finish a list", &error))?
}
