//! Syntax checks of names, with upstream's messages (apimachinery `pkg/api/validate/content`).

/// Maximum length of a DNS label, in bytes.
const MAX_LABEL: usize = 63;
/// Maximum length of a DNS subdomain, in bytes.
const MAX_SUBDOMAIN: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
     'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
     '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
     'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// Returns the mistakes in `text` as an RFC 1123 subdomain.
pub fn subdomain_mistakes(text: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    if text.len() > MAX_SUBDOMAIN {
        mistakes.push(too_long(MAX_SUBDOMAIN));
    }
    if !text.split('.').all(is_label) {
        mistakes.push(SUBDOMAIN.to_owned());
    }
    mistakes
}

/// Returns the mistakes in `text` as an RFC 1035 label.
pub fn label_mistakes(text: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    if text.len() > MAX_LABEL {
        mistakes.push(too_long(MAX_LABEL));
    }
    if !is_label(text) || text.starts_with(|c: char| c.is_ascii_digit()) {
        mistakes.push(LABEL_1035.to_owned());
    }
    mistakes
}

const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
     characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
     '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
     and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
     used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
     characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
     'MyValue',  or 'my_value',  or '12345', regex used for validation is \
     '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Returns the mistakes in `text` as an RFC 1123 label.
pub fn dns_label_mistakes(text: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    if text.len() > MAX_LABEL {
        mistakes.push(too_long(MAX_LABEL));
    }
    if !is_label(text) {
        mistakes.push(LABEL_1123.to_owned());
    }
    mistakes
}

fn is_qualified_part(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(|byte| is_inner(*byte))
}

/// Returns the mistakes in `text` as a label's key: a name, with or without a domain before `/`.
pub fn qualified_mistakes(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let mut mistakes = Vec::new();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            match *prefix {
                "" => mistakes.push("prefix part must be non-empty".to_owned()),
                prefix => {
                    let wrong = subdomain_mistakes(prefix);
                    mistakes.extend(wrong.iter().map(|wrong| format!("prefix part {wrong}")));
                }
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        mistakes.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL {
        mistakes.push(format!("name part {}", too_long(MAX_LABEL)));
    }
    if !is_qualified_part(name) {
        mistakes.push(format!("name part {QUALIFIED}"));
    }
    mistakes
}

/// Returns the mistakes in `text` as a label's value.
pub fn label_value_mistakes(text: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    if text.len() > MAX_LABEL {
        mistakes.push(too_long(MAX_LABEL));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        mistakes.push(LABEL_VALUE.to_owned());
    }
    mistakes
}

/// Returns the mistakes in `text` as a URL path segment, or as its prefix if `is_whole` is false.
pub fn path_segment_mistakes(text: &str, is_whole: bool) -> Vec<String> {
    if is_whole && matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    let illegal = ["/", "%"].into_iter().filter(|part| text.contains(part));
    illegal.map(|part| format!("may not contain '{part}'")).collect()
}
