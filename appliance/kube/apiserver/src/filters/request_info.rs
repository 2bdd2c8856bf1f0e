//! Parsed head of a request: action for authorization, data for log and audit record.

use std::sync::Arc;

use axum::response::Response;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use rbac::{Action, AuditRecord, MAX_TEXT_CHARS, Shares, Target as Of, User, verb};
use serde_json::Value;
use uuid::Uuid;

use super::{AuthLayer, Caller, Peer};
use crate::wire::path::{self, Target};
use crate::wire::query::Query;
use resources::reviews::Review;
use resources::{FieldSelector, StatusError};

/// Kinds (group and plural) whose writes, except deletes, are not recorded. Lease renewals and
/// events arrive every second and would displace important records.
const QUIET: [(&str, &str); 3] =
    [("coordination.k8s.io", "leases"), ("", "events"), ("events.k8s.io", "events")];
/// Maximum length of a client's request id in bytes.
const MAX_ID: usize = 64;

/// Name and uid of the written object, which handlers store in the response's extensions for the
/// audit record. The request may contain neither.
#[derive(Debug, Clone, Default)]
pub(crate) struct WrittenObject {
    pub name: String,
    pub uid: String,
    /// True if the request body, not the query, requested a dry run.
    pub dry_run: bool,
}

impl WrittenObject {
    pub(crate) fn of(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { name: text("name"), uid: text("uid"), dry_run: false }
    }
}

/// Parsed head of a request.
pub(super) struct RequestInfo {
    pub action: Action,
    /// True if the path needs no authentication, such as `/version`.
    pub open: bool,
    dry_run: bool,
    /// True if the request contains a credential.
    has_credential: bool,
    /// True if the request impersonates another user.
    impersonates: bool,
    method: String,
    path: String,
    from: String,
    agent: String,
    id: Option<String>,
}

impl RequestInfo {
    pub(super) fn read(head: &Parts) -> Self {
        let method = head.method.as_str();
        let uri = &head.uri;
        let target = path::parse(uri.path());
        // The handler refuses an unreadable query.
        let query = Query::parse(uri.query().unwrap_or_default()).unwrap_or_default();
        let open = matches!(target, Some(Target::Version | Target::Health | Target::Readiness));
        let action = match target {
            Some(Target::Resource(path)) => {
                let named = path.name.is_some();
                let verb = verb(method, named, query.flag("watch"));
                // A selector limits only list and watch: the name of a new object is unknown before
                // the body is read.
                let reads = ["list", "watch"].contains(&verb);
                let selected = || reads.then(|| selected(&query)).flatten();
                let target = Of::Resource {
                    group: path.group,
                    namespace: namespace(&path.plural, path.namespace, path.name.as_deref()),
                    resource: path.plural,
                    subresource: path.subresource.unwrap_or_default(),
                    name: path.name.or_else(selected).unwrap_or_default(),
                };
                Action { verb: verb.to_owned(), target }
            }
            _ => Action::on_path(method.to_ascii_lowercase(), uri.path()),
        };
        let from = head.extensions.get::<Arc<Peer>>().map(|peer| peer.address().to_string());
        Self {
            action,
            open,
            dry_run: query.get("dryRun").is_some(),
            has_credential: head.headers.contains_key(AUTHORIZATION),
            impersonates: head.headers.contains_key("impersonate-user"),
            method: method.to_owned(),
            path: uri.path().to_owned(),
            from: from.unwrap_or_default(),
            agent: text(&head.headers, USER_AGENT.as_str()).unwrap_or_default(),
            id: text(&head.headers, "audit-id").filter(|id| id.len() <= MAX_ID),
        }
    }

    /// Returns the request's id: the client's own, otherwise a new one.
    pub(super) fn audit_id(&self) -> String {
        self.id.clone().unwrap_or_else(|| Uuid::new_v4().to_string())
    }

    /// Returns the client's key for limits: the user name, with the address if anonymous.
    pub(super) fn client(&self, user: &User, head: &Parts) -> String {
        let anonymous = user.name == rbac::ANONYMOUS;
        match head.extensions.get::<Arc<Peer>>().filter(|_| anonymous) {
            Some(peer) => format!("{} {}", user.name, peer.address()),
            None => user.name.clone(),
        }
    }

    /// Returns the request slots for reads, writes or watches.
    pub(super) fn lane<'a>(&self, auth: &'a AuthLayer) -> &'a Shares {
        match self.action.verb.as_str() {
            "watch" => &auth.watches,
            _ if self.writes() => &auth.writes,
            _ => &auth.reads,
        }
    }

    /// Returns true if the request may change data.
    pub(super) fn writes(&self) -> bool {
        !["get", "list", "watch", "head", "options"].contains(&self.action.verb.as_str())
            && !self.is_read_only()
    }

    /// Returns true if the request is a review without side effect, such as an access review.
    fn is_read_only(&self) -> bool {
        let Of::Resource { group, resource, .. } = &self.action.target else { return false };
        Review::find(group, resource).is_some_and(Review::is_read_only)
    }

    /// Returns 403 with Kubernetes' message.
    pub(super) fn forbidden(&self, user: &User, reason: &str) -> StatusError {
        StatusError::denied(user, &self.action, reason)
    }

    /// Logs the request, and adds an audit record if requests of this type are recorded.
    pub(super) fn log(
        &self,
        auth: &AuthLayer,
        caller: &Caller,
        (began, id): (Timestamp, &str),
        response: &Response,
    ) {
        let code = response.status().as_u16();
        let (method, path) = (&self.method, &self.path);
        let (really, acting) = match &caller.really {
            Some(really) => (really, Some(&caller.user)),
            None => (&caller.user, None),
        };
        let name = really.name.as_str();
        let Some(mut record) = self.record(code) else {
            tracing::debug!(user = name, method, path, code, "API request");
            return;
        };
        if let Some(written) = response.extensions().get::<WrittenObject>() {
            record.name.clone_from(&written.name);
            record.uid.clone_from(&written.uid);
            record.dry_run |= written.dry_run;
        }
        let record = ended(auth, record, (began, id), code).by(really, acting);
        if self.writes() {
            tracing::info!(user = name, method, path, code, id, "API write");
        } else {
            tracing::debug!(user = name, method, path, code, id, "API request");
        }
        match &auth.audit {
            // Unauthenticated clients can reach the open paths, so their records are limited.
            Some(log) if name == rbac::ANONYMOUS => {
                log.refused(record, auth.engine.clock().steady());
            }
            Some(log) => log.record(&record),
            None => {}
        }
    }

    /// Adds an audit record for a request whose credential was refused (401).
    pub(super) fn log_unauthorized(
        &self,
        auth: &AuthLayer,
        (began, id): (Timestamp, &str),
        response: &Response,
    ) {
        let code = response.status();
        if code != StatusCode::UNAUTHORIZED || !self.has_credential {
            return;
        }
        let Some(log) = &auth.audit else { return };
        let record = ended(auth, self.begun(), (began, id), code.as_u16());
        log.refused(record.by(&User::anonymous(), None), auth.engine.clock().steady());
    }

    /// Returns the start of the audit record; `None` if such a request is not recorded.
    fn record(&self, code: u16) -> Option<AuditRecord> {
        let refused_other = self.impersonates && code == StatusCode::FORBIDDEN.as_u16();
        (self.is_deed() || self.reads_secrets() || refused_other).then(|| self.begun())
    }

    /// Returns true for recorded writes: writes of objects except those of [`QUIET`] kinds, and
    /// requests other than reads on paths without objects, such as the backup's.
    fn is_deed(&self) -> bool {
        let Of::Resource { group, resource, .. } = &self.action.target else {
            return self.writes();
        };
        let writes = ["create", "update", "patch", "delete", "deletecollection"];
        let verb = self.action.verb.as_str();
        let quiet = verb != "delete" && QUIET.contains(&(group.as_str(), resource.as_str()));
        writes.contains(&verb) && !self.is_read_only() && !quiet
    }

    fn reads_secrets(&self) -> bool {
        matches!(&self.action.target, Of::Resource { group, resource, .. }
            if group.is_empty() && resource == "secrets")
    }

    /// Returns an audit record with the data of the request's head.
    fn begun(&self) -> AuditRecord {
        let record = AuditRecord {
            verb: self.action.verb.clone(),
            dry_run: self.dry_run,
            from: self.from.clone(),
            agent: self.agent.clone(),
            ..AuditRecord::default()
        };
        match &self.action.target {
            Of::Path(path) => AuditRecord { path: path.clone(), ..record },
            Of::Resource { group, resource, subresource, namespace, name } => AuditRecord {
                group: group.clone(),
                resource: match subresource.as_str() {
                    "" => resource.clone(),
                    part => format!("{resource}/{part}"),
                },
                namespace: namespace.clone(),
                name: name.clone(),
                ..record
            },
        }
    }
}

/// Adds time, id, status code and duration to an audit record.
fn ended(
    auth: &AuthLayer,
    record: AuditRecord,
    (began, id): (Timestamp, &str),
    code: u16,
) -> AuditRecord {
    let millis = auth.engine.clock().now().duration_since(began).as_millis();
    let millis = u64::try_from(millis).unwrap_or(0);
    AuditRecord { at: began.to_string(), id: id.to_owned(), code, millis, ..record }
}

/// Returns the namespace of an action. The namespace of a Namespace object is its own name, so that
/// roles in the namespace apply.
fn namespace(plural: &str, given: Option<String>, name: Option<&str>) -> String {
    let itself = || name.filter(|_| plural == "namespaces").map(str::to_owned);
    given.or_else(itself).unwrap_or_default()
}

/// Returns the name in the field selector `metadata.name=NAME` of a list or watch, if any.
fn selected(query: &Query) -> Option<String> {
    let selector = FieldSelector::parse(query.get("fieldSelector")?).ok()?;
    let name = selector.only_name()?;
    let usable = !name.is_empty() && !name.contains(['/', '%']);
    usable.then(|| name.to_owned())
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    Some(text.chars().take(MAX_TEXT_CHARS).collect())
}
