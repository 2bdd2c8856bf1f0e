//! Initial objects of a watch, read page by page at the client's speed, all as of one revision.

use std::collections::VecDeque;
use std::sync::Arc;

use store::Stored;
use tokio::task::JoinHandle;

use super::super::list::Page;
use super::super::selection::Selection;
use crate::definition::ResourceDefinition;
use crate::engine::Engine;
use crate::status_error::{Reason, StatusError};

/// Maximum bytes of buffered objects for one watch, or one object if larger. Thousands of clients
/// may stop reading.
const PAGE_BYTES: usize = 64 * 1024;

/// Objects that a watch reports first.
pub(super) struct InitialObjects {
    source: Source,
    /// Revision of the state that the objects show.
    pub floor: u64,
    page: VecDeque<Stored>,
    /// Continue token of the next page; `None` after the last.
    token: Option<String>,
    /// Read of the next page in progress. It is kept here, so dropping the caller's future loses
    /// nothing.
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
    /// Starts to read the present objects that `selection` matches.
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

    /// Returns the next object; `None` after the last. The future can be dropped without loss of an
    /// object.
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

    /// Bytes of objects held now.
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
