//! YAML of a template before rendering, with placeholders for the output of template actions.

/// Placeholder for the output of a template action: a private-use character of Unicode.
pub(super) const HOLE: char = '\u{e000}';

/// Replaces each `{{…}}` with [`HOLE`]. A line with only template actions becomes empty, because
/// such a line is a condition or a loop, or prints a whole block. Line numbers stay unchanged.
///
/// Returns `None` for a template action without an end.
pub(super) fn of(template: &str) -> Option<String> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        text.push_str(&rest[..start]);
        let action = &rest[start..];
        let length = action_length(action)?;
        text.push(HOLE);
        // A comment or a long pipeline may span several lines.
        text.extend(action[..length].chars().filter(|char| *char == '\n'));
        rest = &action[length..];
    }
    text.push_str(rest);
    let lines = text.split('\n').map(|line| {
        let only_actions =
            line.contains(HOLE) && line.chars().all(|char| char == HOLE || char.is_whitespace());
        if only_actions { "" } else { line }
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the length in bytes from `{{` to its `}}`. Quoted text and comments may contain `}}`.
fn action_length(action: &str) -> Option<usize> {
    let body = action.get(2..)?;
    let trimmed = body.strip_prefix('-').unwrap_or(body).trim_start();
    if trimmed.starts_with("/*") {
        let end = action.find("*/")? + 2;
        return Some(end + action[end..].find("}}")? + 2);
    }
    let mut quote = None;
    let mut escaped = false;
    for (at, char) in action.char_indices().skip(2) {
        match quote {
            _ if escaped => escaped = false,
            Some(mark) if char == mark => quote = None,
            Some('"' | '\'') if char == '\\' => escaped = true,
            Some(_) => {}
            None if matches!(char, '"' | '\'' | '`') => quote = Some(char),
            None if action[at..].starts_with("}}") => return Some(at + 2),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn lines_stay_where_they_are() {
        let template = "a: {{ .x }}\n{{- if eq .y \"}}\" }}\nb: \"{{ `}}` }}-1\"\n{{ end }}\n\
                        {{/* a }}\n comment */}}\nc: 1\n";
        let holes = "a: \u{e000}\n\nb: \"\u{e000}-1\"\n\n\n\nc: 1\n";
        assert_eq!(of(template).unwrap(), holes);
        assert_eq!(of("a: {{ .x"), None);
        assert_eq!(of("plain: {a: b}").unwrap(), "plain: {a: b}");
    }
}
