//! The way in: every request is known, allowed and counted before anything else sees it, and, when
//! it writes, reads Secrets or shows a wrong credential, recorded after.
//!
//! Identity is that of the connection's client certificate, or of the bearer token; acting as
//! somebody else takes permission. `/version` and the health checks answer everybody.

mod admission;
mod audit_log;
mod held;
pub(crate) mod identity;
mod live_roles;
mod peer;
mod request;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt as _;
use http::HeaderValue;
use http::request::Parts;
use rbac::{Limits, Share, Shares, User};

use crate::auth::{Authenticator, Error, ServiceAccountTokens, SigningKey, TokenSecrets};
use crate::budget::{Budget, ByteLimits};
use crate::facade::answer;
pub use audit_log::AuditLog;
pub(crate) use held::Seat;
pub(crate) use live_roles::LiveRoles;
pub use peer::Peer;
use request::Asked;
pub(crate) use request::Written;
use resources::engine::Engine;
use resources::{Reason, StatusError};

/// Reads being answered at one time.
pub const READS: Limits = Limits { total: 400, each: 200 };
/// Writes being answered at one time.
pub const WRITES: Limits = Limits { total: 200, each: 100 };
/// Watches running at one time.
pub const WATCHES: Limits = Limits { total: 2500, each: 1500 };

const MIB: usize = 1024 * 1024;
/// Bytes of requests that are read or carried out at one time. What is made of them takes some ten
/// times as much.
pub const BODIES: ByteLimits = ByteLimits { total: 16 * MIB, each: 8 * MIB, reserve: 4 * MIB };
/// Bytes of answers that clients have not taken yet.
pub const ANSWERS: ByteLimits = ByteLimits { total: 48 * MIB, each: 24 * MIB, reserve: 16 * MIB };

/// What is needed to let callers in, beside the engine.
#[derive(Clone, Default)]
pub struct Gate {
    tokens: Authenticator,
    accounts: Option<ServiceAccountTokens>,
    audit: Option<AuditLog>,
    url: String,
    owned: Option<Owned>,
}

/// Whether somebody owns the box.
type Owned = Arc<dyn Fn() -> bool + Send + Sync>;

/// What a stranger is told whose box this may become.
const UNCLAIMED: &str = "this box has no owner yet: claim it at https://<its address>/S with the \
    code that its screen and its serial console show, or by `tinbox box claim <its address>`";

impl From<Authenticator> for Gate {
    /// Only the tokens of the file: no ServiceAccounts, no record. For tests and tools.
    fn from(tokens: Authenticator) -> Self {
        Self { tokens, ..Self::default() }
    }
}

impl Gate {
    /// What lies in `state_dir`: the token file, the key of ServiceAccount tokens (made where it is
    /// missing) and the audit log. `url` is the box's own, for those who check its tokens.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn open(state_dir: &Path, url: &str) -> Result<Self, Error> {
        Self::with_audit(state_dir, url, AuditLog::open(state_dir)?)
    }

    /// The same with an audit log that is open already.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn with_audit(state_dir: &Path, url: &str, audit: AuditLog) -> Result<Self, Error> {
        Ok(Self {
            tokens: Authenticator::load(state_dir)?,
            accounts: Some(ServiceAccountTokens::new(SigningKey::ensure(state_dir)?)),
            audit: Some(audit),
            url: url.to_owned(),
            owned: None,
        })
    }

    /// The tokens that it takes; what is changed of them counts at once.
    pub fn tokens(&self) -> Authenticator {
        self.tokens.clone()
    }

    /// Fills the Secrets that hold tokens of ServiceAccounts, for as long as it is polled. Clients
    /// that follow Cluster API's guides wait for such a Secret. `ca_pem` is the box's authority.
    pub fn fill_token_secrets(
        &self,
        engine: Engine,
        ca_pem: &str,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (accounts, ca_pem) = (self.accounts.clone(), ca_pem.to_owned());
        async move {
            if let Some(accounts) = accounts {
                TokenSecrets { engine, accounts, ca_pem }.run().await;
            }
        }
    }

    /// Until `owned` says so, strangers are told how to become the owner (FB-3).
    #[must_use]
    pub fn unclaimed_until(mut self, owned: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.owned = Some(Arc::new(owned));
        self
    }
}

/// The gate at work.
pub(crate) struct Door {
    pub engine: Engine,
    pub roles: LiveRoles,
    tokens: Authenticator,
    accounts: Option<ServiceAccountTokens>,
    audit: Option<AuditLog>,
    url: String,
    owned: Option<Owned>,
    reads: Shares,
    writes: Shares,
    watches: Shares,
    pub bodies: Budget,
    pub answers: Budget,
}

impl Door {
    pub(crate) fn new(engine: Engine, gate: Gate) -> Self {
        Self {
            roles: LiveRoles::new(engine.clone()),
            engine,
            tokens: gate.tokens,
            accounts: gate.accounts,
            audit: gate.audit,
            url: gate.url,
            owned: gate.owned,
            reads: Shares::new(READS),
            writes: Shares::new(WRITES),
            watches: Shares::new(WATCHES),
            bodies: Budget::new(BODIES),
            answers: Budget::new(ANSWERS),
        }
    }

    pub(crate) fn accounts(&self) -> Option<&ServiceAccountTokens> {
        self.accounts.as_ref()
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The answer to who is nobody known.
    fn stranger(&self) -> StatusError {
        match &self.owned {
            Some(owned) if !owned() => StatusError::new(Reason::Unclaimed, UNCLAIMED),
            _ => StatusError::new(Reason::Unauthorized, "Unauthorized"),
        }
    }

    /// The user behind a bearer token, and for which of `audiences` it is.
    pub(crate) async fn bearer(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), String> {
        let ours = ServiceAccountTokens::audiences();
        if let Some(user) = self.tokens.user(token) {
            // Made by this box for itself.
            let common = audiences.iter().filter(|one| ours.contains(one));
            let common: Vec<String> = common.cloned().collect();
            return match common.is_empty() {
                true => Err("the token is not for these audiences".to_owned()),
                false => Ok((user, common)),
            };
        }
        match &self.accounts {
            Some(accounts) if rbac::jwt::is_token(token) => {
                accounts.user(&self.engine, token, audiences).await
            }
            _ => Err("invalid bearer token".to_owned()),
        }
    }
}

/// Sender of a request, for the record of the request. Handlers find only the user, in the
/// request's extensions.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// As whom the request acts.
    pub user: User,
    /// Who sent it, where that is another.
    pub really: Option<User>,
}

/// The client in whose share of places and bytes a request is counted.
#[derive(Debug, Clone)]
pub(crate) struct Client(pub Arc<str>);

/// Lets known callers do what they may.
pub(crate) async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let asked = Asked::read(&head);
    let id = asked.audit_id();
    let began = door.engine.clock().now();
    let mut caller = None;
    let admitted = admit(&door, &asked, &mut head, &mut caller).await;
    let writes = asked.writes();
    let answering = async move {
        let (response, share) = match admitted {
            Ok(share) => (run(next, Request::from_parts(head, body)).await, Some(share)),
            Err(refused) => (answer::failure(&refused), None),
        };
        match caller {
            Some(caller) => asked.tell(&door, &caller, (began, &id), &response),
            None => asked.tell_refused(&door, (began, &id), &response),
        }
        let mut response = held::hold(response, share);
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().entry("audit-id").or_insert(id);
        }
        response
    };
    if !writes {
        return answering.await;
    }
    // A write goes on to its end, and into the record, when its client does not wait for it.
    let answered = tokio::spawn(answering).await;
    answered.unwrap_or_else(|error| answer::failure(&StatusError::internal("end a write", &error)))
}

/// The handler's answer; 500 where it panics.
async fn run(next: Next, request: Request) -> Response {
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| {
        // The panic itself is in the log already.
        let why = "Internal error occurred: the request could not be answered";
        answer::failure(&StatusError::new(Reason::InternalError, why))
    })
}

/// Everything between a request and its handler. Sets `known` as soon as the sender is known, also
/// when the request is then refused; leaves the [`User`] in the request when it is admitted.
async fn admit(
    door: &Door,
    asked: &Asked,
    head: &mut Parts,
    known: &mut Option<Caller>,
) -> Result<Share, StatusError> {
    let really = match identity::authenticate(door, head).await? {
        Some(user) => user,
        None if asked.open => User::anonymous(),
        None => return Err(door.stranger()),
    };
    let client = asked.client(&really, head);
    let share = asked.lane(door).enter(&client).ok_or_else(StatusError::too_many_requests)?;
    let caller = Caller { user: really, really: None };
    *known = Some(caller.clone());
    let caller = identity::impersonate(door, caller, head).await?;
    *known = Some(caller.clone());
    if !asked.open {
        let decision = door.roles.authorize(&caller.user, &asked.action).await?;
        if !decision.allowed {
            return Err(asked.forbidden(&caller.user, &decision.reason));
        }
    }
    if let Some(admission) = admission::of(door, &caller.user, &asked.action).await? {
        head.extensions.insert(admission);
    }
    head.extensions.insert(caller.user);
    head.extensions.insert(Client(client.into()));
    Ok(share)
}
