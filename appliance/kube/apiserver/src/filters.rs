//! Authentication, authorization and request limits, applied to every request before its handler.
//! Writes, reads of Secrets and requests with an invalid credential are recorded in the audit log.
//!
//! The user comes from the connection's client certificate, otherwise from the bearer token.
//! Impersonation requires a permission. `/version` and the health checks need no authentication.

pub(crate) mod authentication;
mod escalation_check;
mod live_roles;
mod peer;
mod request_info;
mod seat;

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
use crate::wire::response;
use audit_log::AuditLog;
pub use live_roles::Authorizer;
pub(crate) use live_roles::LiveRoles;
pub use peer::Peer;
use request_info::RequestInfo;
pub(crate) use request_info::WrittenObject;
use resources::engine::Engine;
use resources::{Reason, StatusError};
pub(crate) use seat::Seat;

/// Maximum concurrent reads, in total and per client; above the limit, 429.
pub const READS: Limits = Limits { total: 400, each: 200 };
/// Maximum concurrent writes, in total and per client; above the limit, 429.
pub const WRITES: Limits = Limits { total: 200, each: 100 };
/// Maximum concurrent watches, in total and per client; above the limit, 429.
pub const WATCHES: Limits = Limits { total: 2500, each: 1500 };

const MIB: usize = 1024 * 1024;
/// Limits on the bytes of request bodies in memory. Decoded bodies take about ten times as much.
pub const BODIES: ByteLimits = ByteLimits { total: 16 * MIB, each: 8 * MIB, reserve: 4 * MIB };
/// Limits on the bytes of responses that clients have not read yet.
pub const RESPONSES: ByteLimits = ByteLimits { total: 48 * MIB, each: 24 * MIB, reserve: 16 * MIB };

/// Configuration of authentication and audit log.
#[derive(Clone, Default)]
pub struct AuthConfig {
    tokens: Authenticator,
    accounts: Option<ServiceAccountTokens>,
    audit: Option<AuditLog>,
    url: String,
    owned: Option<Owned>,
}

/// Function that returns true if an owner has claimed the box.
type Owned = Arc<dyn Fn() -> bool + Send + Sync>;

/// Message to an unauthenticated client while the box has no owner.
const UNCLAIMED: &str = "this box has no owner yet: claim it at https://<its address>/S with the \
    code that its screen and its serial console show, or by `tinbox box claim <its address>`";

impl From<Authenticator> for AuthConfig {
    /// Accepts only the given tokens: no ServiceAccounts, no audit log. For tests and tools.
    fn from(tokens: Authenticator) -> Self {
        Self { tokens, ..Self::default() }
    }
}

impl AuthConfig {
    /// Opens the files in `state_dir`: the token file, the key of ServiceAccount tokens (created if
    /// missing) and the audit log. `url` is the box's own, for programs that verify its tokens.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written.
    pub fn open(state_dir: &Path, url: &str) -> Result<Self, Error> {
        Self::with_audit(state_dir, url, AuditLog::open(state_dir)?)
    }

    /// Works as [`Self::open`], with an audit log that is already open.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written.
    pub fn with_audit(state_dir: &Path, url: &str, audit: AuditLog) -> Result<Self, Error> {
        Ok(Self {
            tokens: Authenticator::load(state_dir)?,
            accounts: Some(ServiceAccountTokens::new(SigningKey::ensure(state_dir)?)),
            audit: Some(audit),
            url: url.to_owned(),
            owned: None,
        })
    }

    /// Returns the authenticator of the token file; changes of its tokens take effect at once.
    pub fn tokens(&self) -> Authenticator {
        self.tokens.clone()
    }

    /// Writes tokens into Secrets of type `kubernetes.io/service-account-token` until the future is
    /// dropped. Cluster API's guides require such Secrets. `ca_pem` is the box's CA certificate.
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

    /// Returns the configuration with a check for an owner. While `owned` returns false,
    /// unauthenticated clients get 403 with instructions to claim the box (FB-3).
    #[must_use]
    pub fn unclaimed_until(mut self, owned: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.owned = Some(Arc::new(owned));
        self
    }
}

/// Shared state of authentication, authorization and request limits.
pub(crate) struct AuthLayer {
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
    pub responses: Budget,
}

impl AuthLayer {
    pub(crate) fn new(engine: Engine, config: AuthConfig) -> Self {
        Self {
            roles: LiveRoles::new(engine.clone()),
            engine,
            tokens: config.tokens,
            accounts: config.accounts,
            audit: config.audit,
            url: config.url,
            owned: config.owned,
            reads: Shares::new(READS),
            writes: Shares::new(WRITES),
            watches: Shares::new(WATCHES),
            bodies: Budget::new(BODIES),
            responses: Budget::new(RESPONSES),
        }
    }

    pub(crate) fn accounts(&self) -> Option<&ServiceAccountTokens> {
        self.accounts.as_ref()
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the error for an unauthenticated request: 401, or 403 while the box has no owner.
    fn unauthenticated(&self) -> StatusError {
        match &self.owned {
            Some(owned) if !owned() => StatusError::new(Reason::Unclaimed, UNCLAIMED),
            _ => StatusError::new(Reason::Unauthorized, "Unauthorized"),
        }
    }

    /// Returns the user of a bearer token, and the members of `audiences` for which the token is
    /// valid. The error is the reason for a refusal.
    pub(crate) async fn bearer(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), String> {
        let ours = ServiceAccountTokens::audiences();
        if let Some(user) = self.tokens.user(token, self.engine.clock().now()) {
            // Tokens of the file are for this box only.
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

/// User of a request, for the audit record. Handlers use the [`User`] in the request's extensions
/// instead.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// User with whose permissions the request runs.
    pub user: User,
    /// Authenticated user if the request impersonates `user`; `None` without impersonation.
    pub really: Option<User>,
}

/// Key of the client for request and byte limits: its user name, and its address if anonymous.
#[derive(Debug, Clone)]
pub(crate) struct Client(pub Arc<str>);

/// Middleware that authenticates, authorizes, limits and records a request.
pub(crate) async fn apply(
    State(auth): State<Arc<AuthLayer>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let info = RequestInfo::read(&head);
    let id = info.audit_id();
    let began = auth.engine.clock().now();
    let mut caller = None;
    let admitted = admit(&auth, &info, &mut head, &mut caller).await;
    let writes = info.writes();
    let answering = async move {
        let (response, share) = match admitted {
            Ok(share) => (run(next, Request::from_parts(head, body)).await, Some(share)),
            Err(refused) => (response::failure(&refused), None),
        };
        match caller {
            Some(caller) => info.log(&auth, &caller, (began, &id), &response),
            None => info.log_unauthorized(&auth, (began, &id), &response),
        }
        let mut response = seat::hold(response, share);
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().entry("audit-id").or_insert(id);
        }
        response
    };
    if !writes {
        return answering.await;
    }
    // A write continues to its end, and is recorded, even if its client disconnects.
    let answered = tokio::spawn(answering).await;
    answered
        .unwrap_or_else(|error| response::failure(&StatusError::internal("end a write", &error)))
}

/// Returns the handler's response; 500 if the handler panics.
async fn run(next: Next, request: Request) -> Response {
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| {
        // The panic itself is already in the log.
        let why = "Internal error occurred: the request could not be answered";
        response::failure(&StatusError::new(Reason::InternalError, why))
    })
}

/// Authenticates and authorizes a request, takes its slot, and stores the [`User`] in its
/// extensions. Sets `known` after authentication, even if the request is then refused.
async fn admit(
    auth: &AuthLayer,
    info: &RequestInfo,
    head: &mut Parts,
    known: &mut Option<Caller>,
) -> Result<Share, StatusError> {
    let really = match authentication::authenticate(auth, head).await? {
        Some(user) => user,
        None if info.open => User::anonymous(),
        None => return Err(auth.unauthenticated()),
    };
    let client = info.client(&really, head);
    let share = info.lane(auth).enter(&client).ok_or_else(StatusError::too_many_requests)?;
    let caller = Caller { user: really, really: None };
    *known = Some(caller.clone());
    let caller = authentication::impersonate(auth, caller, head).await?;
    *known = Some(caller.clone());
    if !info.open {
        let decision = auth.roles.authorize(&caller.user, &info.action).await?;
        if !decision.allowed {
            return Err(info.forbidden(&caller.user, &decision.reason));
        }
    }
    if let Some(admission) = escalation_check::of(auth, &caller.user, &info.action).await? {
        head.extensions.insert(admission);
    }
    head.extensions.insert(caller.user);
    head.extensions.insert(Client(client.into()));
    Ok(share)
}
