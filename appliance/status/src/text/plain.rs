//! Cleans text of machines and people for display.

/// The longest text taken over from a machine into a sentence, in characters.
pub const TEXT_CHARS_MAX: usize = 200;

/// `text` as it may stand in a log and on a terminal: control characters become spaces, and what is
/// over [`TEXT_CHARS_MAX`] is cut.
pub fn plain(text: &str) -> String {
    let mut chars = text.trim().chars();
    let safe = |char: char| if is_unsafe(char) { ' ' } else { char };
    let mut kept: String = chars.by_ref().take(TEXT_CHARS_MAX).map(safe).collect();
    if chars.next().is_some() {
        kept.push('…');
    }
    kept
}

/// Characters that move a cursor or turn the direction of text.
fn is_unsafe(char: char) -> bool {
    let turns = ['\u{200e}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    char.is_control() || turns.iter().any(|range| range.contains(&char))
}
