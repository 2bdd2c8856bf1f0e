//! Lists of objects, whole or in pages.
//!
//! All pages of a list show the state at the first page's revision; the change log is used to undo
//! later changes. A continue token has upstream's format (`storage/continue.go`): revision, and key
//! after which the next page starts. A token expires when the log no longer reaches back to the
//! revision. The response is then 410 with a token for the newest state (revision -1).

mod pieces;
mod token;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;
use store::{Key, Stored, Walk, WalkResult};

use self::pieces::Pieces;
use self::token::Token;
use super::selection::Selection;
use crate::definition::ResourceDefinition;
use crate::engine::Engine;
use crate::object::decode;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::{Reason, StatusError, failed};

/// Required revision of a list (`resourceVersionMatch`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RevisionMatch {
    /// The newest committed state.
    #[default]
    Newest,
    /// Any state at or after the revision. The engine returns the newest state; a future revision
    /// is an error.
    NotOlderThan(u64),
    /// The state at exactly the given revision.
    Exact(u64),
}

/// Options of a list request.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// Returns only objects whose labels match.
    pub labels: LabelSelector,
    /// Returns only objects whose fields match.
    pub fields: FieldSelector,
    /// Maximum number of objects; 0 means unlimited.
    pub limit: usize,
    /// Token of the previous page; `None` for the first page.
    pub continue_token: Option<String>,
    /// Required revision of the response.
    pub revision: RevisionMatch,
}

/// List of objects, or one page of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectList {
    /// Revision from which a watch can continue.
    pub revision: u64,
    /// Objects in order of namespace and name.
    pub items: Vec<Value>,
    /// Token for the next page; `None` at the end.
    pub continue_token: Option<String>,
    /// Number of objects after this page; `None` on the last page, and with selectors (number
    /// unknown).
    pub remaining: Option<usize>,
}

/// List or page whose items are JSON text.
pub struct TextList {
    /// Revision, continue token and remaining number; `items` is empty.
    pub list: ObjectList,
    /// Served items as JSON text, separated by commas.
    pub items: Pieces,
    /// Number of objects in `items`.
    pub count: usize,
}

/// Function that appends an object's text to the buffer, as a list item.
pub type WriteItem = Arc<
    dyn Fn(&ResourceDefinition, &Stored, &mut Vec<u8>) -> Result<(), StatusError> + Send + Sync,
>;

/// Objects of one page in stored form.
pub(in crate::engine) struct Page {
    /// Revision of the listed state.
    pub revision: u64,
    pub objects: Vec<Stored>,
    /// Continue token for the next page; `None` on the last page.
    pub token: Option<String>,
}

/// Start position and revision of a list.
struct Start {
    after: Option<Key>,
    at: Option<u64>,
    /// Continue token of the request; if expired, the error contains a new token.
    token: Option<Token>,
}

impl Engine {
    /// Returns the objects of `resource`, in one namespace, or in all namespaces (`None`, or a
    /// cluster-scoped kind).
    ///
    /// # Errors
    /// 400 for invalid selectors or tokens, 410 for an expired token or revision, 504 for a future
    /// revision.
    pub async fn list(
        &self,
        resource: &str,
        namespace: Option<&str>,
        options: ListOptions,
    ) -> Result<ObjectList, StatusError> {
        self.listing(resource, namespace, options, |definition, scan| {
            let mut items = Vec::new();
            let list = scan.run(|stored| {
                items.push(decode(definition, stored)?);
                Ok(())
            })?;
            Ok(ObjectList { items, ..list })
        })
        .await
    }

    /// Works as [`Self::list`], but returns the text that `write` makes of each object, for at most
    /// `room` bytes of objects, or one larger object.
    ///
    /// # Errors
    /// Returns the errors of [`Self::list`].
    pub async fn list_text(
        &self,
        resource: &str,
        namespace: Option<&str>,
        options: ListOptions,
        (room, write): (usize, WriteItem),
    ) -> Result<TextList, StatusError> {
        self.listing(resource, namespace, options, move |definition, scan| {
            let (mut items, mut count) = (Pieces::default(), 0);
            let list = Scan { room, ..scan }.run(|stored| {
                if count > 0 {
                    items.room().push(b',');
                }
                count += 1;
                write(definition, stored, items.room())
            })?;
            Ok(TextList { list, items, count })
        })
        .await
    }

    async fn listing<T: Send + 'static>(
        &self,
        resource: &str,
        namespace: Option<&str>,
        options: ListOptions,
        read: impl FnOnce(&ResourceDefinition, Scan<'_>) -> Result<T, StatusError> + Send + 'static,
    ) -> Result<T, StatusError> {
        let definition = self.definition(resource)?;
        options.fields.check(&definition)?;
        let engine = self.clone();
        let namespace = namespace.map(str::to_owned);
        // Reading thousands of objects takes long, so it runs on a blocking thread.
        tokio::task::spawn_blocking(move || {
            let namespace = namespace.as_deref();
            let scan = Scan {
                engine: &engine,
                definition: &definition,
                namespace,
                options,
                room: usize::MAX,
            };
            read(&definition, scan)
        })
        .await
        .map_err(|error| StatusError::internal("cannot finish a list", &error))?
    }

    /// Returns a page of stored objects that match `selection`: at most `room` bytes, or one larger
    /// object. Blocks the thread.
    ///
    /// # Errors
    /// 410 for an expired token.
    pub(in crate::engine) fn page(
        &self,
        definition: &ResourceDefinition,
        namespace: Option<&str>,
        selection: Selection,
        continue_token: Option<String>,
        room: usize,
    ) -> Result<Page, StatusError> {
        let Selection { labels, fields } = selection;
        let options = ListOptions { labels, fields, continue_token, ..ListOptions::default() };
        let mut objects = Vec::new();
        let list = Scan { engine: self, definition, namespace, options, room }.run(|stored| {
            objects.push(stored.clone());
            Ok(())
        })?;
        Ok(Page { revision: list.revision, objects, token: list.continue_token })
    }
}

/// State of one list operation.
struct Scan<'a> {
    engine: &'a Engine,
    definition: &'a ResourceDefinition,
    namespace: Option<&'a str>,
    options: ListOptions,
    /// Maximum bytes of objects in a page. The first object is returned even if larger.
    room: usize,
}

impl Scan<'_> {
    /// Calls `take` for every object of the page. Returns revision, token and remaining number.
    fn run(
        self,
        mut take: impl FnMut(&Stored) -> Result<(), StatusError>,
    ) -> Result<ObjectList, StatusError> {
        let start = self.start()?;
        let selection =
            Selection { labels: self.options.labels.clone(), fields: self.options.fields.clone() };
        let limit = self.options.limit;
        let (mut taken, mut bytes, mut more) = (0, 0, false);
        let mut last: Option<Key> = None;
        let mut failure = None;
        let walked = self.walk(&start, |key, stored| {
            match selection.chooses(self.definition, &key, &stored) {
                Ok(false) => return ControlFlow::Continue(()),
                // An object beyond the limit proves that there is another page.
                Ok(true)
                    if (limit > 0 && taken == limit)
                        || (taken > 0 && bytes + stored.value.len() > self.room) =>
                {
                    more = true;
                    return ControlFlow::Break(());
                }
                Ok(true) => {}
                Err(error) => {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
            }
            if let Err(error) = take(&stored) {
                failure = Some(error);
                return ControlFlow::Break(());
            }
            taken += 1;
            bytes += stored.value.len();
            last = Some(key);
            ControlFlow::Continue(())
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        let mut list = ObjectList { revision: walked.revision, ..ObjectList::default() };
        if let Some(last) = last.filter(|_| more) {
            list.continue_token = Some(Token::after(&last, walked.revision).text());
            let is_counted = selection.is_empty() && limit > 0;
            list.remaining = is_counted.then(|| walked.left + 1);
        }
        Ok(list)
    }

    fn start(&self) -> Result<Start, StatusError> {
        if let Some(text) = &self.options.continue_token {
            let token = Token::read(text)?;
            let after = token.key(self.definition);
            return Ok(Start { after: Some(after), at: token.revision(), token: Some(token) });
        }
        let at = match self.options.revision {
            RevisionMatch::Exact(revision) => Some(revision),
            RevisionMatch::Newest => None,
            RevisionMatch::NotOlderThan(asked) => {
                let newest = self.engine.revision();
                if asked > newest {
                    return Err(StatusError::from_the_future(asked, newest));
                }
                None
            }
        };
        Ok(Start { after: None, at, token: None })
    }

    fn walk(
        &self,
        start: &Start,
        mut visit: impl FnMut(Key, Stored) -> ControlFlow<()>,
    ) -> Result<WalkResult, StatusError> {
        let store = &self.engine.inner.store;
        let resource = self.definition.id();
        // A selector by name becomes a single lookup instead of a scan.
        let alone = self.options.fields.only_name().filter(|_| start.at.is_none());
        let place = if self.definition.namespaced { self.namespace } else { Some("") };
        if let (Some(name), Some(namespace), None) = (alone, place, &start.after) {
            let key = Key::new(resource.as_str(), namespace, name);
            let (revision, found) =
                store.look(&key).map_err(|error| failed("read an object", &error))?;
            if let Some(stored) = found {
                let _ = visit(key, stored);
            }
            return Ok(WalkResult { revision, newest: revision, left: 0 });
        }
        let walk = Walk {
            resource: &resource,
            namespace: self.namespace,
            after: start.after.as_ref(),
            at: start.at,
            uncounted: self.options.limit == 0,
        };
        store.walk(walk, visit).map_err(|error| match (&error, &start.token) {
            (store::Error::Compacted { .. }, Some(token)) => expired_token(token),
            (store::Error::Compacted { .. }, None) => StatusError::new(
                Reason::Expired,
                "The resourceVersion for the provided list is too old.",
            ),
            _ => failed("list objects", &error),
        })
    }
}

/// Returns 410, with a token that continues at the same position in the newest state.
fn expired_token(token: &Token) -> StatusError {
    let mut error = StatusError::new(
        Reason::Expired,
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted between \
         the time the first chunk was returned and now may show up in the list.",
    );
    error.details.continue_token = token.of_the_newest().text();
    error
}
