//! What is kept of a write: who did what to which object, and how it ended. Never what was written.

use serde::Serialize;

use crate::User;

/// Longest text of one field; a client's words are cut there.
pub const MAX_TEXT_CHARS: usize = 256;
/// Groups one record lists.
const MAX_GROUPS: usize = 16;

/// One line of the audit log. There is no field a body or a secret could get into.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    /// When the request came, RFC 3339.
    pub at: String,
    /// The request's own id, also in the answer's `Audit-Id` header.
    pub id: String,
    /// The user's name.
    pub user: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Whom the user acted as; empty for nobody.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub impersonated: String,
    /// `create`, `update`, `patch`, `delete`, `deletecollection`; for Secrets `get`, `list`,
    /// `watch` too; on paths the HTTP method, at the box itself the action.
    pub verb: String,
    /// API group, empty for core.
    pub group: String,
    /// `PLURAL` or `PLURAL/SUBRESOURCE`; empty if the request is not about objects.
    pub resource: String,
    /// Empty for kinds of the whole box.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Empty for collections.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's uid, where the answer told it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// A path that names no object, without its query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The machine or level of an action at the box itself, or its reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Refused requests since the last such record that have no record of their own.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// Whether nothing was stored because that was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The HTTP status.
    pub code: u16,
    /// From request to answer, milliseconds.
    pub millis: u64,
    /// The client's address.
    pub from: String,
    /// What the client calls itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
}

impl AuditRecord {
    /// Says who, cut to size.
    #[must_use]
    pub fn by(mut self, user: &User, impersonated: Option<&User>) -> Self {
        self.user = cut(&user.name);
        self.groups = user.groups.iter().take(MAX_GROUPS).map(|group| cut(group)).collect();
        self.impersonated = impersonated.map(|user| cut(&user.name)).unwrap_or_default();
        self
    }

    /// The record as one line of JSON with its newline, every text cut to size.
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
}
