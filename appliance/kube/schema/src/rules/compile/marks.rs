//! Upper bound of the number of operators in a rule, computed before parsing because the parser
//! recurses on each operator.

use std::sync::LazyLock;

use regex::Regex;

/// Text between operators: comments, strings, quoted names, numbers and words (cel-go's grammar,
/// `parser/gen/CEL.g4`).
static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let escape = concat!(
        r#"\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|"#,
        r"u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})",
    );
    let quoted = |quote: char| {
        let raw =
            format!(r"[rR](?:{quote}{{3}}(?s:.)*?{quote}{{3}}|{quote}[^{quote}\n\r]*{quote})");
        let long = format!(r"{quote}{{3}}(?:{escape}|[^\\])*?{quote}{{3}}");
        let short = format!(r"{quote}(?:{escape}|[^\\{quote}\n\r])*{quote}");
        format!("{raw}|{long}|{short}")
    };
    let texts = format!("[bB]?(?:{}|{})", quoted('\''), quoted('"'));
    let numbers = r"(?:0x[0-9a-fA-F]+|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)[uU]?";
    let names = r"`[A-Za-z0-9_./ -]+`|[A-Za-z_][A-Za-z0-9_]*";
    Regex::new(&format!(r"^(?://[^\n]*|{texts}|{numbers}|{names})")).ok()
});

/// Counts the operators as CEL's lexer finds them. After a quote without a valid string, the lexer
/// behaves differently, so every later operator character counts.
pub(super) fn marks(text: &str) -> usize {
    let is_mark = |c: &char| c.is_ascii_punctuation() && !matches!(c, '_' | '\'' | '"' | '\\');
    let mut marks = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = WORDS.as_ref().and_then(|words| words.find(rest)).map(|word| word.as_str());
        let length = match word {
            Some(word) => {
                marks += usize::from(word == "in");
                word.len()
            }
            None if matches!(c, '\'' | '"' | '`') => {
                return marks + rest.matches("in").count() + rest.chars().filter(is_mark).count();
            }
            None => {
                marks += usize::from(is_mark(&c));
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::marks;

    #[test]
    fn operators_are_counted_as_the_lexer_finds_them() {
        for (text, count) in [
            ("self.a + 1", 2),
            (r#"'+ + +' + "- \" -""#, 1),
            ("//'\n1+1+1", 2),
            ("'a//b' + 1 // + + +", 1),
            (r"r'\'==''+1", 3),
            (r"bR'\' + 1", 1),
            (r"bar'\'' + 1", 1),
            (r"1e5r'\' + 1", 1),
            ("'''a'\n+'b''' + 1", 1),
            ("`a//b` + 1", 1),
            ("1 in 2 in 3", 2),
            // A text that the lexer cannot parse does not count as a text.
            (r"'\q + +' + 1", 3),
            ("'+\n+' + 1", 3),
            ("\"+ in +", 3),
        ] {
            assert_eq!(marks(text), count, "{text}");
        }
    }
}
