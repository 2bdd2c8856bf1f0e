//! Fits text into lines: cuts, wraps, and replaces characters that the fonts do not have.

/// Replacement of a character without a glyph.
const NO_GLYPH: char = '?';

/// Converts `text` to ISO 8859-1, the character set of the fonts. Punctuation becomes the nearest
/// character, combining marks are removed, and every other character becomes `?`.
pub fn glyphs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => {}
            '\u{ad}' | '\u{feff}' => {}
            '\u{a0}' => out.push(' '),
            ' '..='~' | '\u{a1}'..='\u{ff}' => out.push(char),
            '–' | '—' | '−' | '‐' | '‑' => out.push('-'),
            '‘' | '’' => out.push('\''),
            '“' | '”' | '„' => out.push('"'),
            '…' => out.push_str(".."),
            '•' => out.push('\u{b7}'),
            '→' => out.push('>'),
            _ if char.is_control() => out.push(' '),
            _ => out.push(NO_GLYPH),
        }
    }
    out
}

/// Cuts `text` to at most `columns` characters; a cut text ends with two dots.
pub fn fit(text: &str, columns: usize) -> String {
    let text = glyphs(text);
    let length = text.chars().count();
    if length <= columns {
        return text;
    }
    let mark = columns.min(2);
    let mut cut: String = text.chars().take(columns - mark).collect();
    cut.extend(std::iter::repeat_n('.', mark));
    cut
}

/// Cuts a name to at most `columns` characters. The middle of a longer name is removed, because
/// names of machines differ at their ends.
pub fn fit_name(name: &str, columns: usize) -> String {
    let name = glyphs(name);
    let length = name.chars().count();
    if length <= columns || columns < 3 {
        return name.chars().take(columns).collect();
    }
    let tail = columns / 2;
    let head = columns - tail - 1;
    let mut cut: String = name.chars().take(head).collect();
    cut.push('~');
    cut.extend(name.chars().skip(length - tail));
    cut
}

/// Returns a line of `columns` characters with a text at each end; `left` is cut if necessary.
pub fn pair(left: &str, right: &str, columns: usize) -> String {
    let right = fit(right, columns);
    let taken = right.chars().count();
    let room = columns.saturating_sub(taken + usize::from(taken > 0));
    let left = fit(left, room);
    let gap = columns - taken - left.chars().count();
    format!("{left}{:gap$}{right}", "")
}

/// Wraps `text` to lines of at most `columns` characters, between words where possible. A text
/// longer than `rows` lines is cut and ends with two dots.
pub fn wrap(text: &str, columns: usize, rows: usize) -> Vec<String> {
    if columns == 0 || rows == 0 {
        return Vec::new();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in glyphs(text).split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let used = line.chars().count();
        if used > 0 && used + 1 + word.len() > columns {
            lines.push(std::mem::take(&mut line));
        }
        while word.len() > columns {
            lines.push(word.drain(..columns).collect());
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    if lines.len() > rows {
        lines.truncate(rows);
        if let Some(last) = lines.last_mut() {
            let cut = fit(&format!("{last:columns$}.."), columns);
            let kept = cut.trim_end_matches('.').trim_end();
            *last = format!("{kept}..").chars().take(columns).collect();
        }
    }
    lines
}
