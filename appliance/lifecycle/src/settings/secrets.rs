//! Hides the secret values of a text before the text is shown.

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

fn with(text: &str, word: impl Fn(&str) -> &'static str) -> String {
    let Ok(mut document) = bare(text).parse::<DocumentMut>() else {
        return UNREADABLE.to_owned();
    };
    let mut hiding = SecretHider { path: Vec::new(), word };
    hiding.visit_document_mut(&mut document);
    document.to_string()
}

struct SecretHider<W> {
    path: Vec<String>,
    word: W,
}

impl<W: Fn(&str) -> &'static str> VisitMut for SecretHider<W> {
    fn visit_table_like_kv_mut(&mut self, key: KeyMut<'_>, node: &mut Item) {
        let name = key.get().to_owned();
        let secret = WORDS.iter().any(|word| name.to_ascii_lowercase().contains(word));
        self.path.push(name);
        match node {
            Item::Value(value) if secret => {
                let mut shown = Value::from((self.word)(&self.path.join(".")));
                *shown.decor_mut() = value.decor().clone();
                *value = shown;
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
