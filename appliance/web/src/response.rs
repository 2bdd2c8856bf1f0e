//! Builders of responses, and the security headers of every response.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};

/// Name of the session cookie. `__Host-` limits it to this host and TLS; scripts cannot read it.
pub const COOKIE: &str = "__Host-tinbox";
/// Name of the cookie with the chosen colors. It holds no secret.
pub const THEME: &str = "__Host-theme";
/// Lifetime of the choice of colors in seconds: one year.
const THEME_SECONDS: u32 = 31_536_000;
/// Content security policy: resources are loaded from, and forms sent to, this box only.
const CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
                   connect-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                   base-uri 'none'";

/// Adds the security headers that every response has.
pub fn harden(headers: &mut HeaderMap) {
    for (name, value) in [
        ("content-security-policy", CSP),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry("cache-control").or_insert(HeaderValue::from_static("no-store"));
}

/// Creates a response with a body of the content type `kind`.
pub fn content(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub fn html(status: StatusCode, page: String) -> Response<Body> {
    content(status, "text/html; charset=utf-8", page)
}

/// Creates a plain-text response for programs.
pub fn text(status: StatusCode, sentence: &str) -> Response<Body> {
    content(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

/// Creates a redirect (303) to `path`, which the browser requests by GET.
pub fn see(path: &str) -> Response<Body> {
    let mut answer = content(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    if let Ok(path) = HeaderValue::from_str(path) {
        answer.headers_mut().insert(LOCATION, path);
    }
    answer
}

/// Adds the cookie with the chosen colors to `answer`.
pub fn with_theme(mut answer: Response<Body>, theme: &'static str) -> Response<Body> {
    let cookie =
        format!("{THEME}={theme}; Path=/; Secure; SameSite=Strict; Max-Age={THEME_SECONDS}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}

/// Adds the session cookie to `answer`; an empty token deletes the cookie.
pub fn with_cookie(mut answer: Response<Body>, token: &str) -> Response<Body> {
    let end = if token.is_empty() { "; Max-Age=0" } else { "" };
    let cookie = format!("{COOKIE}={token}; Path=/; Secure; HttpOnly; SameSite=Strict{end}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.headers_mut().insert(SET_COOKIE, cookie);
    }
    answer
}
