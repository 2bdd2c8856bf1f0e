//! Listing, whole or in pages.
//!
//! A continue token carries the revision of the first page and the last key it gave out. Later
//! pages are read from the objects as they are by then, but keep saying the first page's revision:
//! a watch from there delivers everything that changed meanwhile, so a client that lists and then
//! watches misses nothing. A token whose revision can no longer be watched from is answered 410.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Key, Stored};

use super::object::decode;
use super::{Engine, failed};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::{Reason, StatusError};

/// Longest continue token that is looked at, in bytes.
pub const MAX_TOKEN: usize = 2048;

/// How old the answer may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RevisionMatch {
    /// The newest state.
    #[default]
    Newest,
    /// Any state at or after this revision; there is only the newest, so it must not lie ahead.
    NotOlderThan(u64),
    /// The state of exactly this revision, which only the newest can be.
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

#[derive(Serialize, Deserialize)]
struct Token {
    revision: u64,
    namespace: String,
    name: String,
}

impl Token {
    fn after(key: &Key, revision: u64) -> Self {
        Self { revision, namespace: key.namespace.clone(), name: key.name.clone() }
    }

    fn read(text: &str) -> Result<Self, StatusError> {
        let short = Some(text).filter(|text| text.len() <= MAX_TOKEN);
        short
            .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok())
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| StatusError::bad_request("continue key is not valid"))
    }

    fn text(&self) -> String {
        let json = serde_json::to_vec(self).expect("two strings and a number are always JSON");
        URL_SAFE_NO_PAD.encode(json)
    }

    fn is_before(&self, key: &Key) -> bool {
        (key.namespace.as_str(), key.name.as_str()) > (&self.namespace, &self.name)
    }
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
        let definition =
            self.registry().by_id(resource).ok_or_else(StatusError::no_such_resource)?;
        options.fields.check(definition)?;
        let (engine, resource) = (self.clone(), resource.to_owned());
        let namespace = namespace.map(str::to_owned);
        // Thousands of objects are parsed here: not on a thread that serves sockets.
        tokio::task::spawn_blocking(move || engine.read(&resource, namespace.as_deref(), &options))
            .await
            .map_err(|error| StatusError::internal("cannot finish a list", &error))?
    }

    fn read(
        &self,
        resource: &str,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<ObjectList, StatusError> {
        let store = &self.inner.store;
        let (newest, stored) =
            store.list(resource, namespace).map_err(|error| failed("list objects", &error))?;
        match options.revision {
            RevisionMatch::NotOlderThan(asked) | RevisionMatch::Exact(asked) if asked > newest => {
                return Err(StatusError::from_the_future(asked, newest));
            }
            RevisionMatch::Exact(asked) if asked != newest => {
                return Err(StatusError::expired(asked));
            }
            _ => {}
        }
        let token = options.continue_token.as_deref().map(Token::read).transpose()?;
        let revision = token.as_ref().map_or(newest, |token| token.revision);
        if let Some(token) = &token
            && store.watch(resource, namespace, token.revision).is_err()
        {
            return Err(expired_token(token, newest));
        }
        let rest = stored.into_iter();
        let rest = rest.filter(|(key, _)| token.as_ref().is_none_or(|token| token.is_before(key)));
        page(options, revision, rest.collect())
    }
}

/// 410, with a token that goes on from the same place on the newest data.
fn expired_token(token: &Token, newest: u64) -> StatusError {
    let mut error = StatusError::new(
        Reason::Expired,
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results",
    );
    let fresh =
        Token { revision: newest, namespace: token.namespace.clone(), name: token.name.clone() };
    error.details.continue_token = fresh.text();
    error
}

fn page(
    options: &ListOptions,
    revision: u64,
    stored: Vec<(Key, Stored)>,
) -> Result<ObjectList, StatusError> {
    let selecting = !(options.labels.is_empty() && options.fields.is_empty());
    let total = stored.len();
    let mut list = ObjectList { revision, ..ObjectList::default() };
    let mut last: Option<Key> = None;
    for (at, (key, stored)) in stored.into_iter().enumerate() {
        let object = decode(&stored)?;
        if !(options.labels.matches(&object) && options.fields.matches(&object)) {
            continue;
        }
        // One more than fits proves that there is more.
        if options.limit > 0 && list.items.len() == options.limit {
            list.continue_token = last.map(|last| Token::after(&last, revision).text());
            list.remaining = (!selecting).then(|| total - at);
            break;
        }
        list.items.push(object);
        last = Some(key);
    }
    Ok(list)
}
