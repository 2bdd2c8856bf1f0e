//! Listing, whole or in pages.
//!
//! Every page of a list shows the state of the first page's revision: what changed since is undone
//! from the change log. A continue token is upstream's (`storage/continue.go`): the revision and
//! the key after which to go on; it stays good as long as the log reaches back to that revision.
//! Then it is answered 410, with a token for the rest as it is by now (revision -1).

mod pieces;
mod token;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;
use store::{Key, Stored, Walk, Walked};

use self::pieces::Pieces;
use self::token::Token;
use super::selection::Selection;
use crate::definition::ResourceDefinition;
use crate::engine::object::decode;
use crate::engine::{Engine, failed};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::{Reason, StatusError};

/// How old the answer may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RevisionMatch {
    /// The newest state.
    #[default]
    Newest,
    /// Any state at or after this revision; the newest is taken, so it must not lie ahead.
    NotOlderThan(u64),
    /// The state of exactly this revision.
    Exact(u64),
}

/// Which objects to list.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these fields.
    pub fields: FieldSelector,
    /// At most this many; 0 is no limit.
    pub limit: usize,
    /// From where the page before ended.
    pub continue_token: Option<String>,
    /// How old the answer may be.
    pub revision: RevisionMatch,
}

/// A list, or a page of one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectList {
    /// The revision to watch from.
    pub revision: u64,
    /// The objects in order of namespace and name.
    pub items: Vec<Value>,
    /// Continues the list, when there is more.
    pub continue_token: Option<String>,
    /// How many are left, when there is more and no selector hides the number.
    pub remaining: Option<usize>,
}

/// A list as the text of its items.
pub struct TextList {
    /// Revision, token and number left; without items.
    pub list: ObjectList,
    /// The items, served, with commas between them.
    pub items: Pieces,
    /// Number of items.
    pub count: usize,
}

/// Appends what a list shows of an object.
pub type WriteItem = Arc<
    dyn Fn(&ResourceDefinition, &Stored, &mut Vec<u8>) -> Result<(), StatusError> + Send + Sync,
>;

/// Objects of a list as they are stored.
pub(in crate::engine) struct Page {
    /// The revision of which they are.
    pub revision: u64,
    pub objects: Vec<Stored>,
    /// Continues the list, when there is more.
    pub token: Option<String>,
}

/// A place in a resource from which a list is read.
struct Start {
    after: Option<Key>,
    at: Option<u64>,
    /// The token said so: an expired revision is then answered with a way to go on.
    token: Option<Token>,
}

impl Engine {
    /// The objects of `resource`, in one namespace or (`None`, or a kind of the whole box) in all.
    ///
    /// # Errors
    /// 400 for selectors or tokens that make no sense, 410 for a token or revision that is too old,
    /// 504 for a revision ahead of the newest.
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

    /// As [`Self::list`], as the text that `write` makes of each object: at most `room` bytes of
    /// objects, or one. The rest follows from the token.
    ///
    /// # Errors
    /// As [`Self::list`].
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
        // Thousands of objects are read here: not on a thread that serves sockets.
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

    /// A page of the stored objects that `selection` chooses: `room` bytes at most, or one object.
    /// Blocks.
    ///
    /// # Errors
    /// 410 for a token that is too old.
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

/// One list being read.
struct Scan<'a> {
    engine: &'a Engine,
    definition: &'a ResourceDefinition,
    namespace: Option<&'a str>,
    options: ListOptions,
    /// The page ends, too, before its objects have more bytes than that, but for the first.
    room: usize,
}

impl Scan<'_> {
    /// Gives `take` every object of the page.
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
                // One more than fits proves that there is more.
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
    ) -> Result<Walked, StatusError> {
        let store = &self.engine.inner.store;
        let resource = self.definition.id();
        // A name is looked up, not searched for.
        let alone = self.options.fields.only_name().filter(|_| start.at.is_none());
        let place = if self.definition.namespaced { self.namespace } else { Some("") };
        if let (Some(name), Some(namespace), None) = (alone, place, &start.after) {
            let key = Key::new(resource.as_str(), namespace, name);
            let (revision, found) =
                store.look(&key).map_err(|error| failed("read an object", &error))?;
            if let Some(stored) = found {
                let _ = visit(key, stored);
            }
            return Ok(Walked { revision, newest: revision, left: 0 });
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

/// 410, with a token that goes on from the same place on the newest data.
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
