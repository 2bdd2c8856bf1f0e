//! Warnings in the box's responses (RFC 7234 section 5.5, as Kubernetes uses it).

use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use http::header::WARNING;
use status::plain;

/// Maximum number of different warnings that one program shows.
const SHOWN_MAX: usize = 16;
/// Warnings that were shown already; a warning is shown only once.
static SHOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Shows the warnings of a response that were not shown yet.
pub fn show_new(headers: &HeaderMap, show: super::ShowWarning) {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for text in headers
        .get_all(WARNING)
        .iter()
        .filter_map(|it| text(&String::from_utf8_lossy(it.as_bytes())))
    {
        if shown.len() < SHOWN_MAX && !shown.contains(&text) {
            show(&text);
            shown.push(text);
        }
    }
}

/// Returns the text of a header value such as `299 - "text"`; `None` for another code.
fn text(value: &str) -> Option<String> {
    let quoted = value.strip_prefix("299 ")?.split_once(' ')?.1.strip_prefix('"')?;
    let (mut text, mut chars) = (String::new(), quoted.chars());
    loop {
        match chars.next()? {
            '"' => return Some(plain(&text)),
            '\\' => text.push(chars.next()?),
            char => text.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_warning_is_what_stands_in_quotes() {
        let parsed = |value| text(value);
        assert_eq!(parsed("299 - \"be careful\"").as_deref(), Some("be careful"));
        assert_eq!(parsed("299 box-7f3a \"be careful\" \"date\"").as_deref(), Some("be careful"));
        let quotes = parsed(r#"299 - "found \"1m\" in \\""#);
        assert_eq!(quotes.as_deref(), Some(r#"found "1m" in \"#));
        for other in ["", "299", "110 - \"old\"", "299 - be careful", "299 - \"open"] {
            assert_eq!(parsed(other), None, "{other:?}");
        }
    }
}
