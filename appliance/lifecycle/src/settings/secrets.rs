//! Secrets of a text hidden, so that it can be shown.

use config::mistakes::bare;
use toml_edit::visit_mut::{VisitMut, visit_table_like_kv_mut};
use toml_edit::{DocumentMut, Item, KeyMut, Value};

use super::edit;

/// A key with one of these in it has a secret for its value.
const WORDS: [&str; 6] = ["passphrase", "password", "secret", "token", "private", "hash"];
/// What stands in its place.
const HIDDEN: &str = "(hidden)";
/// The same in the newer of two texts, where it is another secret.
const CHANGED: &str = "(hidden, changed)";
/// What is shown of a text that cannot be read: nobody knows where in it the secrets are.
const UNREADABLE: &str = "# This text is no TOML, so its secrets are not known: it is not shown.\n";

/// The text to show.
pub fn hidden(text: &str) -> String {
    with(text, |_| HIDDEN)
}

/// Two texts to compare: a secret that changed is seen to have changed.
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
    let mut hiding = Hiding { path: Vec::new(), word };
    hiding.visit_document_mut(&mut document);
    document.to_string()
}

struct Hiding<W> {
    path: Vec<String>,
    word: W,
}

impl<W: Fn(&str) -> &'static str> VisitMut for Hiding<W> {
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
