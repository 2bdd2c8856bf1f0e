//! What a form says, read. Whatever it does not say stays as it is.

use std::collections::HashMap;

use status::view::Role;

use super::{Card, Times};

/// Characters of a field.
const FIELD_CHARS_MAX: usize = 100;

type Fields = HashMap<String, String>;

fn field(fields: &Fields, name: &str) -> Option<String> {
    let text = fields.get(name)?.trim();
    Some(text.chars().filter(|char| !char.is_control()).take(FIELD_CHARS_MAX).collect())
}

/// A role by its word.
pub fn role(word: &str) -> Option<Role> {
    let all = [Role::Management, Role::Provisioning, Role::Both, Role::Unused];
    all.into_iter().find(|role| role.word() == word)
}

/// The cards as somebody wants them.
pub fn cards(cards: Vec<Card>, fields: &Fields) -> Vec<Card> {
    let read = |card: Card| {
        let said = |what: &str| field(fields, &format!("{what}.{}", card.name));
        let wanted = said("role").and_then(|word| role(&word));
        Card {
            role: wanted.unwrap_or(card.role),
            mode: said("mode").unwrap_or_else(|| card.mode.clone()),
            own: said("own").unwrap_or_else(|| card.own.clone()),
            pool: said("pool").unwrap_or_else(|| card.pool.clone()),
            confirm: said("confirm").unwrap_or_default().to_ascii_lowercase(),
            ..card
        }
    };
    cards.into_iter().map(read).collect()
}

/// The times as somebody wants them.
pub fn times(fields: &Fields) -> Times {
    let said = |name: &str| field(fields, name).unwrap_or_default();
    Times { zone: said("zone"), from: said("from"), to: said("to"), ask: said("restart") == "ask" }
}
