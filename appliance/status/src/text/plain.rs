//! Cleans text from machines and people for logs and screens.

/// Maximum length of a cleaned text, in characters; a longer text is cut and ends with `…`.
pub const TEXT_CHARS_MAX: usize = 200;

/// Returns `text` safe for a log or a terminal: control characters become spaces, and a text over
/// [`TEXT_CHARS_MAX`] characters is cut.
pub fn plain(text: &str) -> String {
    plain_within(text, TEXT_CHARS_MAX)
}

/// Returns `text` as [`plain`] does, with another maximum length in characters.
pub fn plain_within(text: &str, chars_max: usize) -> String {
    let mut chars = text.trim().chars();
    let safe = |char: char| if is_unsafe(char) { ' ' } else { char };
    let mut kept: String = chars.by_ref().take(chars_max).map(safe).collect();
    if chars.next().is_some() {
        kept.push('…');
    }
    kept
}

/// Returns true for a control character, line separator or text direction mark.
fn is_unsafe(char: char) -> bool {
    let turns = ['\u{200e}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    char.is_control() || turns.iter().any(|range| range.contains(&char))
}
