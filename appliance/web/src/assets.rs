//! Style sheets and scripts, each compressed once at its first use.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::response::content;
use page_http::compression::{packed, takes_gzip};
use web_pages::design::{self, CONSOLE_SCRIPT, KEYS_SCRIPT, SCRIPT};

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
/// Browsers ask each time, and mostly get a 304: after an update of the box, an old script with new
/// pages would not work. Chromium does not tell cached style sheets apart by the cookie (`Vary`).
const CACHING: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Script that replaces changed parts of a page.
pub static LIVE: LazyLock<Asset> = LazyLock::new(|| Asset::new(JAVASCRIPT, SCRIPT.to_owned()));
/// Script with the keys of all pages.
pub static KEYS: LazyLock<Asset> = LazyLock::new(|| Asset::new(JAVASCRIPT, KEYS_SCRIPT.to_owned()));
/// Script that shows a serial console.
pub static CONSOLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new(JAVASCRIPT, CONSOLE_SCRIPT.to_owned()));
/// Style sheet of each choice of [`design::THEMES`].
static STYLES: LazyLock<[Asset; 3]> =
    LazyLock::new(|| design::THEMES.map(|(theme, _)| Asset::new(CSS, design::style(theme))));

/// Returns the style sheet for the choice `theme`; an unknown choice gives the first one.
pub fn style(theme: &str) -> &'static Asset {
    let at = design::THEMES.iter().position(|(name, _)| *name == theme).unwrap_or_default();
    &STYLES[at]
}

/// File that pages refer to, plain and compressed with gzip.
pub struct Asset {
    kind: &'static str,
    plain: Encoded,
    gzip: Option<Encoded>,
}

/// One encoding of a file, with its strong entity tag (RFC 9110 section 8.8.3).
struct Encoded {
    tag: String,
    body: Bytes,
}

impl Asset {
    fn new(kind: &'static str, text: String) -> Self {
        let hash = design::hash(&text);
        let gzip = packed(text.as_bytes()).filter(|it| it.len() < text.len());
        let gzip = gzip.map(|body| Encoded { tag: format!("\"{hash:016x}-gzip\""), body });
        let plain = Encoded { tag: format!("\"{hash:016x}\""), body: text.into() };
        Self { kind, plain, gzip }
    }

    /// Returns the response to a request with `headers`: the file, or 304 if the client has it in
    /// the encoding that it accepts.
    pub fn response(&self, headers: &HeaderMap) -> Response<axum::body::Body> {
        let gzip = self.gzip.as_ref().filter(|_| takes_gzip(headers));
        let sent = gzip.unwrap_or(&self.plain);
        let is_known = has_tag(headers, &sent.tag);
        let mut answer = match is_known {
            true => content(StatusCode::NOT_MODIFIED, self.kind, ""),
            false => content(StatusCode::OK, self.kind, sent.body.clone()),
        };
        let fields = answer.headers_mut();
        fields.insert(CACHE_CONTROL, CACHING);
        fields.insert(VARY, HeaderValue::from_static("accept-encoding"));
        fields.extend(HeaderValue::from_str(&sent.tag).ok().map(|tag| (ETAG, tag)));
        if gzip.is_some() && !is_known {
            fields.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        answer
    }
}

/// Returns true if `If-None-Match` has `tag`, or any tag (RFC 9110 section 13.1.2: the comparison
/// is weak).
fn has_tag(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == tag)
}

#[cfg(test)]
mod tests;
