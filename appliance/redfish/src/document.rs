//! Resource of a Redfish service: JSON that may lack any field (DSP0266 §7).

use serde_json::Value;

/// Maximum length of a path, in bytes.
const PATH_BYTES_MAX: usize = 512;
/// Maximum members of a collection or elements of an array that are used.
const MEMBERS_MAX: usize = 1024;

/// Resource with its path and its version.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Path on the server: `/redfish/v1/Systems/1`.
    pub path: String,
    /// Version for `If-Match`: header `ETag`, else the field `@odata.etag`.
    pub etag: Option<String>,
    /// Content of the resource, an object.
    pub json: Value,
}

impl Document {
    /// Reads a response body. Bytes that are not UTF-8 are replaced: some firmware writes names in
    /// Latin-1. JSON deeper than 128 levels is refused.
    ///
    /// # Errors
    /// The body is not a JSON object; the error is a clause.
    pub fn parse(path: &str, etag: Option<String>, body: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{feff}');
        let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !json.is_object() {
            return Err("expected a JSON object".to_owned());
        }
        let field = json.get("@odata.etag").and_then(Value::as_str).map(str::to_owned);
        let is_header = |text: &String| {
            !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        let etag = etag.filter(is_header).or(field.filter(is_header));
        Ok(Self { path: path.to_owned(), etag, json })
    }

    /// Returns the text at a JSON pointer; `None` if it is missing, empty or not text.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        text(&self.json, pointer)
    }

    /// Returns the truth value at a JSON pointer.
    pub fn flag(&self, pointer: &str) -> Option<bool> {
        self.json.pointer(pointer).and_then(Value::as_bool)
    }

    /// Returns the number at a JSON pointer. Some firmware writes numbers as text.
    pub fn number(&self, pointer: &str) -> Option<f64> {
        number(&self.json, pointer)
    }

    /// Returns the texts of an array.
    pub fn texts(&self, pointer: &str) -> Vec<&str> {
        let items = self.items(pointer);
        items.into_iter().filter_map(Value::as_str).collect()
    }

    /// Returns the elements of an array; empty without the array.
    pub fn items(&self, pointer: &str) -> Vec<&Value> {
        let items = self.json.pointer(pointer).and_then(Value::as_array);
        items.map(|items| items.iter().take(MEMBERS_MAX).collect()).unwrap_or_default()
    }

    /// Returns the path of the resource that the object at a JSON pointer refers to.
    pub fn link(&self, pointer: &str) -> Option<String> {
        self.json.pointer(pointer).and_then(reference)
    }

    /// Returns the paths of the resources that an array refers to.
    pub fn links(&self, pointer: &str) -> Vec<String> {
        self.items(pointer).into_iter().filter_map(reference).collect()
    }

    /// Returns the last segment of the path, which is the identifier of most resources.
    pub fn name(&self) -> &str {
        last_segment(&self.path)
    }
}

/// Returns the text at a JSON pointer; `None` if it is missing, empty or not text.
pub fn text<'a>(json: &'a Value, pointer: &str) -> Option<&'a str> {
    json.pointer(pointer).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// Returns the number at a JSON pointer, also one that is written as text.
pub fn number(json: &Value, pointer: &str) -> Option<f64> {
    let value = json.pointer(pointer)?;
    let written = || value.as_str().and_then(|text| text.trim().parse().ok());
    value.as_f64().or_else(written).filter(|number: &f64| number.is_finite())
}

/// Returns the path that an object with `@odata.id` refers to. Some firmware writes `href`.
pub fn reference(json: &Value) -> Option<String> {
    let text = text(json, "/@odata.id").or(text(json, "/href"))?;
    path(text)
}

/// Returns a path of the server in the form of an HTTP request. A URL of another server is not a
/// path, so a response cannot lead a request elsewhere.
pub fn path(text: &str) -> Option<String> {
    let text = text.split_once('#').map_or(text, |(path, _)| path);
    let is_path = text.starts_with('/') && !text.starts_with("//") && text.len() <= PATH_BYTES_MAX;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_valid = is_path && is_plain && text.parse::<http::uri::PathAndQuery>().is_ok();
    is_valid.then(|| text.to_owned())
}

/// Returns the path of a header `Location`, with or without scheme and host. The path is used on
/// the server that sent the header only.
pub fn location(text: &str) -> Option<String> {
    match text.split_once("://") {
        Some((_, rest)) => path(&rest[rest.find('/')?..]),
        None => path(text),
    }
}

/// Returns the last segment of a path.
pub fn last_segment(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Document, location, path};

    #[test]
    fn missing_and_odd_fields_are_none() {
        let body = br#"{"A": {"B": " x "}, "N": "3.5", "E": "", "L": [{"@odata.id": "/a"}, {}, 7],
            "@odata.etag": "W/\"1\""}"#;
        let read = Document::parse("/redfish/v1/Systems/1/", None, body).unwrap();
        assert_eq!((read.text("/A/B"), read.text("/E"), read.text("/A")), (Some("x"), None, None));
        assert_eq!(
            (read.number("/N"), read.number("/A/B"), read.flag("/N")),
            (Some(3.5), None, None)
        );
        assert_eq!((read.links("/L"), read.links("/A")), (vec!["/a".to_owned()], vec![]));
        assert_eq!((read.etag.as_deref(), read.name()), (Some("W/\"1\""), "1"));
        for body in [&b"[]"[..], b"", b"<html>", &b"[".repeat(9000)] {
            assert!(Document::parse("/", None, body).is_err());
        }
    }

    #[test]
    fn only_paths_of_the_server_are_followed() {
        assert_eq!(path("/redfish/v1/A#/B").as_deref(), Some("/redfish/v1/A"));
        for other in ["http://other/redfish", "//other/redfish", "", "a", "/a b", "/a\r\nX: y"] {
            assert_eq!(path(other), None, "{other:?}");
        }
        assert_eq!(location("https://bmc:1/a/b").as_deref(), Some("/a/b"));
        assert_eq!((location("https://bmc"), location("/a").as_deref()), (None, Some("/a")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Document::parse("/", None, &bytes);
            let text = String::from_utf8_lossy(&bytes);
            let found = [path(&text), location(&text)];
            prop_assert!(found.into_iter().flatten().all(|path| path.starts_with('/')));
            let _ = crate::Reason::read(&bytes).to_string();
        }
    }
}
