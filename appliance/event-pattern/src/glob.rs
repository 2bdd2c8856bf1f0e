//! Glob patterns: strings with stars, which match any text.

/// Texts between the stars; a pattern without a star has one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<String>);

impl Glob {
    /// Parses the pattern kinds `wildcard` (`has_escapes`: `\*` and `\\` are literal) and
    /// `shellstyle` (without escapes). Returns `None` for two adjacent stars, or `\` before another
    /// character.
    pub fn parse(text: &str, has_escapes: bool) -> Option<Self> {
        let mut parts = vec![String::new()];
        let mut after_star = false;
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            let literal = match char {
                '*' if after_star => return None,
                '*' => {
                    parts.push(String::new());
                    after_star = true;
                    continue;
                }
                '\\' if has_escapes => chars.next().filter(|next| matches!(next, '*' | '\\'))?,
                other => other,
            };
            after_star = false;
            if let Some(part) = parts.last_mut() {
                part.push(literal);
            }
        }
        Some(Self(parts))
    }

    /// Returns true if the whole `text` matches. Each part matches at its first occurrence.
    pub fn fits(&self, text: &str) -> bool {
        let (Some((first, rest)), Some(last)) = (self.0.split_first(), self.0.last()) else {
            return false;
        };
        if rest.is_empty() {
            return text == first;
        }
        let Some(text) = text.strip_prefix(first.as_str()) else { return false };
        let Some(mut text) = text.strip_suffix(last.as_str()) else { return false };
        for part in &rest[..rest.len() - 1] {
            match text.find(part.as_str()) {
                Some(at) => text = &text[at + part.len()..],
                None => return false,
            }
        }
        true
    }
}
