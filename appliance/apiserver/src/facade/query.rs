//! Query strings as Kubernetes clients write them: with leading `&`, repeated keys, `watch=1`.

use percent_encoding::percent_decode_str;

use crate::engine::{DeleteOptions, ListOptions, Part, RevisionMatch, WatchOptions, WriteOptions};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::{Reason, StatusError};

/// Parameters one query may hold.
pub const MAX_PARAMETERS: usize = 128;

/// A parsed query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query string without its question mark.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(key)?, decode(value)?));
            if pairs.len() > MAX_PARAMETERS {
                return Err(StatusError::bad_request("the query has too many parameters"));
            }
        }
        Ok(Self(pairs))
    }

    /// The first value of `key` that is not empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(name, value)| name == key && !value.is_empty());
        found.next().map(|(_, value)| value.as_str())
    }

    /// Whether `key` is set to something that means yes; `?watch` alone does too.
    pub fn flag(&self, key: &str) -> bool {
        let mut found = self.0.iter().filter(|(name, _)| name == key);
        found.next().is_some_and(|(_, value)| !["0", "false", "False"].contains(&value.as_str()))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, StatusError> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let number = text.parse();
        number.map(Some).map_err(|_| {
            StatusError::bad_request(format!("invalid {key} {text:?}: must be a number"))
        })
    }

    fn labels(&self) -> Result<LabelSelector, StatusError> {
        LabelSelector::parse(self.get("labelSelector").unwrap_or_default())
    }

    fn fields(&self) -> Result<FieldSelector, StatusError> {
        FieldSelector::parse(self.get("fieldSelector").unwrap_or_default())
    }

    /// Seconds after which a watch shall end.
    pub fn timeout_seconds(&self) -> Result<Option<u64>, StatusError> {
        self.number("timeoutSeconds")
    }

    /// What to list.
    pub fn list(&self) -> Result<ListOptions, StatusError> {
        let invalid = |why: &str| StatusError::new(Reason::Invalid, why);
        if self.flag("sendInitialEvents") {
            return Err(invalid("sendInitialEvents is forbidden for list"));
        }
        let continue_token = self.get("continue").map(str::to_owned);
        let asked = self.number("resourceVersion")?;
        let matching = self.get("resourceVersionMatch");
        if matching.is_some() && asked.is_none() {
            return Err(invalid("resourceVersionMatch is forbidden unless resourceVersion is set"));
        }
        if matching.is_some() && continue_token.is_some() {
            return Err(invalid("resourceVersionMatch is forbidden when continue is set"));
        }
        let revision = match (matching, asked) {
            (Some("Exact"), Some(0)) => {
                return Err(invalid(
                    "resourceVersionMatch Exact is forbidden for resourceVersion 0",
                ));
            }
            (Some("Exact"), Some(revision)) => RevisionMatch::Exact(revision),
            (None | Some("NotOlderThan"), Some(revision)) => RevisionMatch::NotOlderThan(revision),
            (_, None) => RevisionMatch::Newest,
            (Some(other), _) => {
                return Err(invalid(&format!("unsupported resourceVersionMatch {other:?}")));
            }
        };
        Ok(ListOptions {
            labels: self.labels()?,
            fields: self.fields()?,
            limit: usize::try_from(self.number("limit")?.unwrap_or(0)).unwrap_or(usize::MAX),
            continue_token,
            revision,
        })
    }

    /// What to watch. Streaming lists are refused with the code that makes clients fall back to
    /// list and watch at once; ignoring the parameter would make them wait for ever.
    pub fn watch(&self) -> Result<WatchOptions, StatusError> {
        for refused in ["sendInitialEvents", "resourceVersionMatch"] {
            if self.get(refused).is_some() {
                let why =
                    format!("{refused} is forbidden for watch: streaming lists are not served");
                return Err(StatusError::new(Reason::Invalid, why));
            }
        }
        Ok(WatchOptions {
            labels: self.labels()?,
            fields: self.fields()?,
            after: self.number("resourceVersion")?.filter(|revision| *revision > 0),
            bookmarks: self.flag("allowWatchBookmarks"),
        })
    }

    /// How to write.
    pub fn write(&self, part: Part) -> Result<WriteOptions, StatusError> {
        let dry_run = dry_run(self.get("dryRun"))?;
        Ok(WriteOptions { part, dry_run })
    }

    /// How to delete, as far as the query says; the body may say more.
    pub fn delete(&self) -> Result<DeleteOptions, StatusError> {
        let dry_run = dry_run(self.get("dryRun"))?;
        Ok(DeleteOptions { dry_run, ..DeleteOptions::default() })
    }
}

/// Reads a `dryRun` value.
pub fn dry_run(value: Option<&str>) -> Result<bool, StatusError> {
    match value {
        None => Ok(false),
        Some("All") => Ok(true),
        Some(other) => Err(StatusError::new(
            Reason::Invalid,
            format!("dryRun: Unsupported value: {other:?}: supported values: \"All\""),
        )),
    }
}

fn decode(text: &str) -> Result<String, StatusError> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| StatusError::bad_request("the query is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::Query;
    use crate::engine::RevisionMatch;
    use crate::status_error::Reason;

    #[test]
    fn queries_as_clients_write_them() {
        let query =
            Query::parse("&limit=500&watch=1&labelSelector=a%3Db%2C%21c&x=1+2&x=3").unwrap();
        assert_eq!(query.get("limit"), Some("500"));
        assert_eq!(query.get("x"), Some("1 2"));
        assert!(query.flag("watch") && !query.flag("allowWatchBookmarks"));
        assert!(Query::parse("watch").unwrap().flag("watch"));
        assert!(!Query::parse("watch=false").unwrap().flag("watch"));
        assert_eq!(query.list().unwrap().limit, 500);
        assert!(Query::parse("a=%ff").is_err());
        assert!(Query::parse(&"a=b&".repeat(200)).is_err());
    }

    #[test]
    fn revisions_and_their_rules() {
        let list = |text: &str| Query::parse(text).unwrap().list();
        let revision = |text: &str| list(text).unwrap().revision;
        assert_eq!(revision(""), RevisionMatch::Newest);
        assert_eq!(revision("resourceVersion=0"), RevisionMatch::NotOlderThan(0));
        assert_eq!(
            revision("resourceVersion=7&resourceVersionMatch=Exact"),
            RevisionMatch::Exact(7)
        );
        for bad in [
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
            "resourceVersionMatch=Newest&resourceVersion=1",
            "sendInitialEvents=true",
        ] {
            assert_eq!(list(bad).unwrap_err().reason, Reason::Invalid, "{bad}");
        }
        assert_eq!(list("resourceVersion=x").unwrap_err().reason, Reason::BadRequest);
        let watch = |text: &str| Query::parse(text).unwrap().watch();
        assert_eq!(watch("resourceVersion=0").unwrap().after, None);
        assert_eq!(watch("resourceVersion=9").unwrap().after, Some(9));
        assert_eq!(watch("sendInitialEvents=true").unwrap_err().reason, Reason::Invalid);
        assert_eq!(watch("sendInitialEvents=false").unwrap_err().reason, Reason::Invalid);
    }

    #[test]
    fn dry_run_is_all_or_nothing() {
        let write = |text: &str| Query::parse(text).unwrap().write(crate::Part::Main);
        assert!(write("dryRun=All").unwrap().dry_run);
        assert!(!write("").unwrap().dry_run);
        assert_eq!(write("dryRun=Some").unwrap_err().reason, Reason::Invalid);
    }
}
