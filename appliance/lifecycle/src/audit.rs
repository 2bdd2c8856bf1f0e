//! Audit log of the box, except API requests: pages, panel, keyboard, power button and process 1.

use std::sync::Arc;

use audit_log::AuditLog;
use rbac::AuditRecord;
use stdx::Clock;
use web::PageRequest;

/// User name in audit records for actions at the box itself, which need no credential.
const LOCAL: &str = "local";
/// HTTP status codes that the audit log uses for success and failure of a local action.
const DONE: u16 = 200;
const FAILED: u16 = 500;

/// Writer of audit records. Cheap to clone.
#[derive(Clone)]
pub struct Audit {
    log: AuditLog,
    clock: Arc<dyn Clock>,
}

impl Audit {
    /// Creates a writer that records to `log`, with the time of `clock`.
    pub fn new(log: AuditLog, clock: Arc<dyn Clock>) -> Self {
        Self { log, clock }
    }

    /// Returns the log, for the API.
    pub fn log(&self) -> AuditLog {
        self.log.clone()
    }

    /// Records a request to the pages. Rejected requests are recorded as anonymous, rate-limited.
    pub fn page(&self, request: &PageRequest) {
        let user = match request.user.as_str() {
            _ if !request.accepted => rbac::ANONYMOUS,
            "" => LOCAL,
            user => user,
        };
        let record = AuditRecord {
            user: user.to_owned(),
            verb: request.method.to_ascii_lowercase(),
            path: request.path.clone(),
            detail: request.detail.clone(),
            code: request.code,
            from: request.from.map(|from| from.to_string()).unwrap_or_default(),
            agent: request.agent.clone(),
            ..self.begun()
        };
        if request.accepted {
            self.log.record(&record);
        } else {
            self.log.refused(record, self.clock.steady());
        }
    }

    /// Records an action at `place`, such as `panel`. The HTTP code is 200 if `is_done`, else 500.
    pub fn local(&self, place: &str, verb: &str, detail: &str, is_done: bool) {
        self.log.record(&AuditRecord {
            user: LOCAL.to_owned(),
            verb: verb.to_owned(),
            detail: detail.to_owned(),
            code: if is_done { DONE } else { FAILED },
            from: place.to_owned(),
            ..self.begun()
        });
    }

    fn begun(&self) -> AuditRecord {
        let at = self.clock.now().to_string();
        AuditRecord { at, id: stdx::random_hex(16), ..AuditRecord::default() }
    }
}
