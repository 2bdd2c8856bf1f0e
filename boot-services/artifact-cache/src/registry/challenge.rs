//! Parses the challenge with which a registry requires a token.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Bearer challenge of a registry (RFC 6750 section 3, "Token Authentication Specification" of the
/// distribution project).
#[derive(Debug, PartialEq, Eq)]
pub struct Challenge {
    pub(crate) realm: String,
    pub(crate) service: Option<String>,
    pub(crate) scope: Option<String>,
}

impl Challenge {
    /// Parses a `WWW-Authenticate` field, which may also have challenges of other schemes (RFC 9110
    /// section 11.6.1). `None`: the field has no bearer challenge with the URL of a token service.
    pub fn parse(field: &str) -> Option<Self> {
        const SCHEME: &str = "bearer ";
        let lower = field.to_ascii_lowercase();
        let is_begin = |at: &usize| matches!(lower[..*at].trim_end().as_bytes(), [] | [.., b',']);
        let (at, _) = lower.match_indices(SCHEME).find(|(at, _)| is_begin(at))?;
        let mut rest = &field[at + SCHEME.len()..];
        let (mut realm, mut service, mut scope) = (None, None, None);
        while let Some((name, after)) = rest.split_once('=') {
            let value;
            (value, rest) = parameter(after)?;
            match name.trim_matches([' ', ',', '\t']).to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                "scope" => scope = Some(value),
                _ => {}
            }
        }
        Some(Self { realm: realm?, service, scope })
    }

    /// Returns the URL of the token service, with the parameters `service` and `scope`.
    pub(crate) fn url(&self, repository: &str) -> String {
        let scope = self.scope.clone().unwrap_or_else(|| format!("repository:{repository}:pull"));
        let mark = if self.realm.contains('?') { '&' } else { '?' };
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let service = self.service.as_ref().map(|it| format!("service={}&", encoded(it)));
        let service = service.unwrap_or_default();
        format!("{}{mark}{service}scope={}", self.realm, encoded(&scope))
    }
}

/// Parses a token or quoted string (RFC 9110 section 5.6). Returns its value and the rest of the
/// text.
fn parameter(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        return Some((text[..end].trim().to_owned(), &text[end..]));
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            '"' if !is_escaped => return Some((value, &quoted[at + 1..])),
            '\\' if !is_escaped => is_escaped = true,
            _ => {
                value.push(c);
                is_escaped = false;
            }
        }
    }
    None
}

/// Returns the token of a token service's response, from `token`, `access_token` or both (Docker
/// Hub). Other fields, such as `expires_in`, may have any shape.
pub(crate) fn token(answer: &[u8]) -> Option<String> {
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(answer).ok()?;
    let text = |name| fields.get(name).and_then(serde_json::Value::as_str).map(str::trim);
    let mut found = ["token", "access_token"].into_iter().filter_map(text);
    found.find(|token| !token.is_empty()).map(str::to_owned)
}
