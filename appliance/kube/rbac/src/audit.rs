//! Audit record of a request: user, action, object and result, never the written data.

use serde::{Deserialize, Serialize};

use crate::User;

/// Maximum characters of a text in a record; longer texts are cut.
pub const MAX_TEXT_CHARS: usize = 256;
/// Maximum number of groups in one record; further groups are omitted.
const MAX_GROUPS: usize = 16;

/// Record in the audit log, one line of JSON. No field contains a request body or a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditRecord {
    /// Time of the request, RFC 3339.
    pub at: String,
    /// Unique ID of the request, also in the response header `Audit-Id`.
    pub id: String,
    /// Name of the authenticated user.
    pub user: String,
    /// Groups of the authenticated user.
    pub groups: Vec<String>,
    /// Name of the impersonated user; empty without impersonation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub impersonated: String,
    /// Verb: `create`, `update`, `patch`, `delete` or `deletecollection`. For Secrets also `get`,
    /// `list` and `watch`. On paths the HTTP method; for a local action at the box, the action.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource, `PLURAL` or `PLURAL/SUBRESOURCE`; empty for a path without API objects.
    pub resource: String,
    /// Namespace; empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Object name; empty for collections.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// UID of the written object; empty if the response contains no object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// URL path without the query, for a request without API objects; otherwise empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Details of a local action at the box, such as the machine, the level or the reason, and of a
    /// request of a page, such as the name and role of a new user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Number of requests with an invalid credential without a record since the last record.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// True if nothing was stored because the client requested a dry run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Status code of the HTTP response.
    pub code: u16,
    /// Time from request to response, in milliseconds.
    pub millis: u64,
    /// IP address of the client.
    pub from: String,
    /// `User-Agent` header of the client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
}

impl AuditRecord {
    /// Sets the user and the impersonated user, with texts cut to [`MAX_TEXT_CHARS`].
    #[must_use]
    pub fn by(mut self, user: &User, impersonated: Option<&User>) -> Self {
        self.user = cut(&user.name);
        self.groups = user.groups.iter().take(MAX_GROUPS).map(|group| cut(group)).collect();
        self.impersonated = impersonated.map(|user| cut(&user.name)).unwrap_or_default();
        self
    }

    /// Returns verb and object as text: `create workflows.tinkerbell.org default/wf-1`; for a path,
    /// `post /backup`.
    pub fn request(&self) -> String {
        let kind = match (self.resource.as_str(), self.group.as_str()) {
            ("", _) => String::new(),
            (resource, "") => format!(" {resource}"),
            (resource, group) => format!(" {resource}.{group}"),
        };
        let name = match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => String::new(),
            ("", name) => format!(" {name}"),
            (namespace, name) => format!(" {namespace}/{name}"),
        };
        let words = [self.path.as_str(), self.detail.as_str()].into_iter();
        let words: String =
            words.filter(|word| !word.is_empty()).map(|word| format!(" {word}")).collect();
        let dry = if self.dry_run { " (dry run)" } else { "" };
        format!("{}{kind}{name}{words}{dry}", self.verb)
    }

    /// Returns the record as one line of JSON with a newline, every text cut to [`MAX_TEXT_CHARS`].
    pub fn line(&self) -> String {
        let mut record = self.clone();
        for text in [
            &mut record.id,
            &mut record.group,
            &mut record.resource,
            &mut record.namespace,
            &mut record.name,
            &mut record.uid,
            &mut record.path,
            &mut record.detail,
            &mut record.from,
            &mut record.agent,
        ] {
            *text = cut(text);
        }
        let mut line = serde_json::to_string(&record).expect("texts and numbers are always JSON");
        line.push('\n');
        line
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::{AuditRecord, MAX_TEXT_CHARS};
    use crate::User;

    #[test]
    fn one_line_cut_to_size() {
        let record = AuditRecord {
            verb: "create".to_owned(),
            agent: "x\n\"".repeat(1000),
            code: 201,
            ..AuditRecord::default()
        };
        let user = User::known("a", (0..100).map(|at| format!("g{at}")));
        let line = record.by(&user, Some(&User::anonymous())).line();
        assert!(line.len() < 8 * MAX_TEXT_CHARS && line.matches('\n').count() == 1, "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["user"], "a");
        assert_eq!(read["impersonated"], "system:anonymous");
        assert_eq!(read["groups"].as_array().unwrap().len(), 16);
        assert!(read.get("name").is_none());
    }
    #[test]
    fn a_record_is_read_back_and_its_request_is_a_line() {
        let of = |verb: &str| AuditRecord { verb: verb.to_owned(), ..AuditRecord::default() };
        let object = AuditRecord {
            group: "tinkerbell.org".to_owned(),
            resource: "workflows/status".to_owned(),
            namespace: "default".to_owned(),
            name: "wf-1".to_owned(),
            dry_run: true,
            ..of("patch")
        };
        let read: AuditRecord = serde_json::from_str(&object.line()).unwrap();
        assert_eq!(read, object);
        let patch = "patch workflows/status.tinkerbell.org default/wf-1 (dry run)";
        assert_eq!(read.request(), patch);
        let node = AuditRecord { resource: "secrets".into(), name: "a".into(), ..of("get") };
        assert_eq!(node.request(), "get secrets a");
        assert_eq!(AuditRecord { path: "/backup".into(), ..of("post") }.request(), "post /backup");
        let local = AuditRecord { detail: "level factory".into(), ..of("reset") };
        assert_eq!(local.request(), "reset level factory");
    }
}
