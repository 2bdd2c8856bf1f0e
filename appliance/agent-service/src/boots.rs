//! Binding of boot tokens to boots: a token is valid only in the boot that used it first.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::agents::eviction_limit;

/// Maximum number of stored tokens. For a further token, the quarter that was bound first is
/// dropped. A dropped token is bound again at its next use.
const TOKENS_MAX: usize = 16_384;

/// Maximum length of a boot ID, in bytes; boot IDs of Linux have 36.
const ID_MAX: usize = 64;

/// Last word of a stored line: every call contains the boot ID (`shown`), or only the Hello.
const SHOWN: &str = "shown";
const NAMED: &str = "named";

/// Bound boots, by token.
#[derive(Default)]
pub struct Boots {
    tokens: Mutex<HashMap<String, Boot>>,
    bound: Notify,
}

/// Boot that a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Boot {
    id: String,
    /// True if every call of the agent contains the boot ID.
    is_shown: bool,
    /// Time of the binding, by the monotonic clock.
    bound: Duration,
}

/// Relation of a token to the boot of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// The token is not bound to a boot.
    Unbound,
    /// The token is bound to this boot, but the agent does not send its boot ID with every call.
    Bound,
    /// The token is bound to this boot, and the call contains the boot ID.
    Proven,
    /// The token is bound to another boot, or the call lacks the boot ID that the agent sends with
    /// every call.
    Other,
}

impl Boots {
    fn tokens(&self) -> MutexGuard<'_, HashMap<String, Boot>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the boot ID in a call (`shown`) and in a Hello (`named`) with the token's boot.
    pub fn binding(&self, token: &str, shown: Option<&str>, named: Option<&str>) -> Binding {
        let tokens = self.tokens();
        let Some(boot) = tokens.get(token) else { return Binding::Unbound };
        match shown {
            Some(shown) if shown != boot.id => Binding::Other,
            Some(_) if boot.is_shown => Binding::Proven,
            None if boot.is_shown => Binding::Other,
            Some(_) | None if named.is_some_and(|named| named != boot.id) => Binding::Other,
            Some(_) | None => Binding::Bound,
        }
    }

    /// Binds a token to the boot of a call. A token that is already bound, or a call without a
    /// valid boot ID, changes nothing.
    pub fn bind(&self, token: &str, shown: Option<&str>, named: Option<&str>, now: Duration) {
        let Some(id) = shown.or(named).filter(|id| is_word(id)) else { return };
        let mut tokens = self.tokens();
        if tokens.contains_key(token) {
            return;
        }
        if let Some(limit) = eviction_limit(TOKENS_MAX, tokens.values().map(|boot| boot.bound)) {
            tokens.retain(|_, boot| boot.bound > limit);
        }
        let boot = Boot { id: id.to_owned(), is_shown: shown.is_some(), bound: now };
        tokens.insert(token.to_owned(), boot);
        self.bound.notify_one();
    }

    /// Waits until a token is bound. A binding since the last wait counts.
    pub async fn changed(&self) {
        self.bound.notified().await;
    }

    /// Returns the table as text, with one line `<token> <boot ID> shown` (or `named`) per token.
    pub fn text(&self) -> String {
        self.tokens().iter().fold(String::new(), |mut text, (token, boot)| {
            let word = if boot.is_shown { SHOWN } else { NAMED };
            let _ = writeln!(text, "{token} {} {word}", boot.id);
            text
        })
    }

    /// Adds the bindings of a text from [`Boots::text`]; invalid lines are skipped.
    pub fn restore(&self, text: &str) {
        let mut tokens = self.tokens();
        for line in text.lines().take(TOKENS_MAX) {
            let words: Vec<&str> = line.split(' ').collect();
            let [token, id, word @ (SHOWN | NAMED)] = words[..] else { continue };
            let boot = Boot { id: id.to_owned(), is_shown: word == SHOWN, bound: Duration::ZERO };
            tokens.insert(token.to_owned(), boot);
        }
    }
}

/// Returns true if an ID has 1 to [`ID_MAX`] printable ASCII characters without spaces.
fn is_word(id: &str) -> bool {
    (1..=ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Binding, Boots, ID_MAX, TOKENS_MAX};

    #[test]
    fn a_token_is_bound_to_the_first_boot_that_uses_it() {
        let (boots, now) = (Boots::default(), Duration::ZERO);
        let (one, two) = (Some("one"), Some("two"));
        assert_eq!(boots.binding("t", one, None), Binding::Unbound);
        boots.bind("t", None, None, now);
        assert_eq!(boots.binding("t", one, None), Binding::Unbound, "nothing was shown");
        boots.bind("t", one, one, now);
        boots.bind("t", two, two, now);
        for (shown, named, binding) in [
            (one, one, Binding::Proven),
            (one, None, Binding::Proven),
            (two, None, Binding::Other),
            (None, None, Binding::Other),
            (None, one, Binding::Other),
        ] {
            assert_eq!(boots.binding("t", shown, named), binding, "{shown:?} {named:?}");
        }
        // An agent of an earlier release names its boot only in its Hello.
        boots.bind("early", None, one, now);
        assert_eq!(boots.binding("early", None, None), Binding::Bound);
        assert_eq!(boots.binding("early", None, one), Binding::Bound);
        assert_eq!(boots.binding("early", None, two), Binding::Other);
        assert_eq!(boots.binding("early", two, None), Binding::Other);
    }

    #[test]
    fn a_token_stays_bound_over_a_restart_of_the_box() {
        let (before, now) = (Boots::default(), Duration::ZERO);
        before.bind("a.1", Some("one"), None, now);
        before.bind("b.2", None, Some("two"), now);
        before.bind("c.3", Some("not a word"), None, now);
        before.bind("d.4", Some(&"x".repeat(ID_MAX + 1)), None, now);
        let after = Boots::default();
        after.restore(&format!("damaged\n{}x y z\n", before.text()));
        assert_eq!(after.binding("a.1", Some("one"), None), Binding::Proven);
        assert_eq!(after.binding("a.1", Some("two"), None), Binding::Other);
        assert_eq!(after.binding("b.2", None, Some("two")), Binding::Bound);
        assert_eq!(after.binding("c.3", Some("any"), None), Binding::Unbound);
        assert_eq!(after.binding("d.4", Some("any"), None), Binding::Unbound);
        assert_eq!(after.binding("x", Some("any"), None), Binding::Unbound);
    }

    #[test]
    fn the_tokens_that_were_bound_first_make_room() {
        let boots = Boots::default();
        for number in 0..=TOKENS_MAX {
            let at = Duration::from_secs(number as u64);
            boots.bind(&number.to_string(), Some("boot"), None, at);
        }
        assert_eq!(boots.binding("0", Some("boot"), None), Binding::Unbound);
        let last = TOKENS_MAX.to_string();
        assert_eq!(boots.binding(&last, Some("boot"), None), Binding::Proven);
        assert!(boots.tokens().len() < TOKENS_MAX);
    }
}
