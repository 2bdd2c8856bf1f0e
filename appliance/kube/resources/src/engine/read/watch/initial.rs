//! What there was when a watch began, read a page at a time as its reader comes along, and all of
//! it as of one revision.

use std::collections::VecDeque;
use std::sync::Arc;

use store::Stored;
use tokio::task::JoinHandle;

use super::super::list::Page;
use super::super::selection::Selection;
use crate::definition::ResourceDefinition;
use crate::engine::Engine;
use crate::status_error::{Reason, StatusError};

/// Bytes of objects held for one watch, or one object: thousands may stop reading.
const PAGE_BYTES: usize = 64 * 1024;

/// The objects a watch begins with.
pub(super) struct Initial {
    source: Source,
    /// The revision of which they all are.
    pub floor: u64,
    page: VecDeque<Stored>,
    /// Where the next page begins.
    token: Option<String>,
    /// The next page on its way, kept so that nobody who stops waiting for it loses it.
    reading: Option<JoinHandle<Result<Page, StatusError>>>,
}

#[derive(Clone)]
struct Source {
    engine: Engine,
    definition: Arc<ResourceDefinition>,
    namespace: Option<String>,
    selection: Selection,
}

impl Initial {
    /// Those that `selection` chooses, as of now.
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

    /// The next object; `None` after the last. Dropping the future loses nothing.
    ///
    /// # Errors
    /// 410 when so much has changed meanwhile that the rest cannot be told any more.
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
                // The token of the rest as it is by now is no help in a watch.
                Reason::Expired => StatusError::expired(self.floor),
                _ => error,
            })?;
            (self.page, self.token) = (page.objects.into(), page.token);
        }
    }

    /// Whether all have been given out.
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
    /// Reads a page, not on a thread that serves sockets.
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
