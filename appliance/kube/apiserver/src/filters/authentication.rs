//! Authentication (sender of a request) and impersonation (user as whom the request runs).

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use rbac::{User, impersonation};

use super::{AuthLayer, Caller, Peer};
use crate::auth::ServiceAccountTokens;
use resources::StatusError;

/// Maximum length of an `Authorization` header in bytes; a longer header is ignored.
const MAX_HEADER: usize = 16 * 1024;

/// Returns the user of the connection's certificate, otherwise of the bearer token; `None` without
/// a valid certificate or token.
///
/// # Errors
/// 429 if the user has too many connections.
pub(super) async fn authenticate(
    auth: &AuthLayer,
    head: &Parts,
) -> Result<Option<User>, StatusError> {
    let peer = head.extensions.get::<Arc<Peer>>();
    let user = match peer.and_then(|peer| peer.user()) {
        Some(user) => Some(user.clone()),
        None => match bearer(&head.headers) {
            Some(token) => {
                let audiences = ServiceAccountTokens::audiences();
                match auth.bearer(token, &audiences).await {
                    Ok((user, _)) => Some(user),
                    Err(why) => {
                        tracing::debug!(why, "a bearer token was refused");
                        None
                    }
                }
            }
            None => None,
        },
    };
    if let (Some(peer), Some(user)) = (peer, &user)
        && !peer.authenticate(user)
    {
        return Err(StatusError::too_many_requests());
    }
    Ok(user)
}

/// Returns the token of an `Authorization: Bearer` header; `None` without such a header.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION).filter(|header| header.len() <= MAX_HEADER)?;
    let (scheme, token) = header.to_str().ok()?.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case("Bearer ").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// Returns the caller with the user of the impersonation headers, or unchanged without such
/// headers. 403 if the caller may not impersonate the user.
pub(super) async fn impersonate(
    auth: &AuthLayer,
    caller: Caller,
    head: &Parts,
) -> Result<Caller, StatusError> {
    let headers = head.headers.iter();
    // A value that is not text must not hide the header.
    let headers =
        headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap_or("\u{fffd}")));
    let asked = impersonation::read(headers).map_err(StatusError::bad_request)?;
    let Some(asked) = asked else { return Ok(caller) };
    for need in &asked.needs {
        let decision = auth.roles.authorize(&caller.user, need).await?;
        if !decision.allowed {
            return Err(StatusError::denied(&caller.user, need, &decision.reason));
        }
    }
    Ok(Caller { user: asked.user, really: Some(caller.user) })
}

#[cfg(test)]
mod tests {
    use super::bearer;
    use http::HeaderMap;
    use http::header::AUTHORIZATION;

    #[test]
    fn headers() {
        for (header, expected) in [
            ("Bearer x", Some("x")),
            ("bearer  x ", Some("x")),
            ("Bearer ", None),
            ("", None),
            ("x", None),
            ("Basic YTpi", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, header.parse().unwrap());
            assert_eq!(bearer(&headers), expected, "{header}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
