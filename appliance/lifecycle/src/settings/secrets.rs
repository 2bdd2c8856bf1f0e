//! Hides the secret values of a text before the text is shown, and restores them after an edit.

use config::mistakes::bare;
use toml_edit::visit_mut::{VisitMut, visit_table_like_kv_mut};
use toml_edit::{DocumentMut, Item, KeyMut, Value};

use super::edit;

/// Words of secret keys. A key that contains one of these words has a secret value.
const WORDS: [&str; 6] = ["passphrase", "password", "secret", "token", "private", "hash"];
/// Text shown instead of a secret.
const HIDDEN: &str = "(hidden)";
/// Text shown instead of a secret whose value differs from the older text.
const CHANGED: &str = "(hidden, changed)";
/// Text shown instead of a text that cannot be parsed, because its secrets are unknown.
const UNREADABLE: &str =
    "# This text is not valid TOML, so its secrets are unknown: it is not shown.\n";

/// Returns the text with its secret values hidden.
pub fn hidden(text: &str) -> String {
    with(text, |_| HIDDEN)
}

/// Hides the secret values of two texts for a comparison. The new text marks changed secrets.
pub fn hidden_in_both(old: &str, new: &str) -> (String, String) {
    let (before, after) = (edit::leaves(old), edit::leaves(new));
    let word = |path: &str| {
        let changed = before.get(path).is_some_and(|value| Some(value) != after.get(path));
        if changed { CHANGED } else { HIDDEN }
    };
    (hidden(old), with(new, word))
}

/// Returns a text as [`hidden`] shows it, with the hidden values of the text `old`. A text that
/// cannot be parsed is returned as it is.
///
/// # Errors
/// A hidden value has no value in `old`. The text is a sentence with its key.
pub fn restored(text: &str, old: &str) -> Result<String, String> {
    let (before, mut missing) = (edit::leaves(old), None);
    let new = changed(text, |path, value| {
        if value.as_str() != Some(HIDDEN) {
            return None;
        }
        let value = before.get(path).and_then(|value| value.parse().ok());
        if value.is_none() {
            missing = Some(format!("{path} is {HIDDEN:?}, and has no value yet: write its value"));
        }
        value
    });
    missing.map_or(Ok(new.unwrap_or_else(|| text.to_owned())), Err)
}

fn with(text: &str, word: impl Fn(&str) -> &'static str) -> String {
    let hidden = changed(text, |path, _| Some(Value::from(word(path))));
    hidden.unwrap_or_else(|| UNREADABLE.to_owned())
}

/// Replaces secret values by the result of `new`, which gets path and value; `None` keeps a value.
/// Returns `None` for a text that cannot be parsed.
fn changed(text: &str, new: impl FnMut(&str, &Value) -> Option<Value>) -> Option<String> {
    let mut document = bare(text).parse::<DocumentMut>().ok()?;
    SecretVisitor { path: Vec::new(), new }.visit_document_mut(&mut document);
    Some(document.to_string())
}

struct SecretVisitor<N> {
    path: Vec<String>,
    new: N,
}

impl<N: FnMut(&str, &Value) -> Option<Value>> VisitMut for SecretVisitor<N> {
    fn visit_table_like_kv_mut(&mut self, key: KeyMut<'_>, node: &mut Item) {
        let name = key.get().to_owned();
        let secret = WORDS.iter().any(|word| name.to_ascii_lowercase().contains(word));
        self.path.push(name);
        match node {
            Item::Value(value) if secret => {
                if let Some(mut new) = (self.new)(&self.path.join("."), value) {
                    *new.decor_mut() = value.decor().clone();
                    *value = new;
                }
            }
            Item::ArrayOfTables(all) => {
                let own = self.path.pop().unwrap_or_default();
                for (at, table) in all.iter_mut().enumerate() {
                    self.path.push(format!("{own}[{at}]"));
                    self.visit_table_mut(table);
                    self.path.pop();
                }
                self.path.push(own);
            }
            _ => visit_table_like_kv_mut(self, key, node),
        }
        self.path.pop();
    }
}
