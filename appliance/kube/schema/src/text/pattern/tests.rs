use super::*;

fn matches(pattern: &str, text: &str) -> bool {
    let pattern = Pattern::new(pattern);
    assert_eq!(pattern.error(), None, "{}", pattern.text());
    pattern.refusal(text).is_none()
}

#[test]
fn what_go_reads_differently_is_translated() {
    for (pattern, good, bad) in [
        (r"^\d+$", "12", "\u{663}"),
        (r"^\w$", "_", "ä"),
        (r"^\s$", "\t", "\u{a0}"),
        (r"^[\D]$", "x", "1"),
        (r"^[[a]$", "[", "]"),
        (r"^[a&&b]+$", "&", "c"),
        (r"^[a~~c]$", "~", "d"),
        (r"^[]a]$", "]", "b"),
        (r"^[^\d\]]$", "x", "]"),
        (r"^[[:alpha:]_]+$", "a_", "1"),
        (r"^a{,2}$", "a{,2}", "aa"),
        (r"^a{2}$", "aa", "a"),
        (r"^x{$", "x{", "x"),
        (r"^\Qa.b\E+$", "a.bb", "axb"),
        (r"^\101\x42\x{43}$", "ABC", "abc"),
        (r"^\p{Greek}\PL$", "α1", "a1"),
        (r"^\p{^L}$", "1", "a"),
        (r"^(?P<n>a)(?<m>b)$", "ab", "a"),
        (r"^(?i:A)(?-i)b$", "ab", "aB"),
        (r"\bfoo\b", "a foo!", "afoo"),
        (r"^a\Bb$", "ab", "a b"),
        (r"^\<\>\_\-\/$", "<>_-/", "<>"),
        (r"(?)^a$", "a", "b"),
        (r"^(|a)+$", "", "b"),
        (r"^a.c$", "abc", "a\nc"),
        (r"a$", "ba", "a\n"),
    ] {
        assert!(matches(pattern, good), "{pattern} must match {good:?}");
        assert!(!matches(pattern, bad), "{pattern} must not match {bad:?}");
    }
}

#[test]
fn mistakes_are_told_in_go_words() {
    for (pattern, words) in [
        ("[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|+?", "missing argument to repetition operator: `+?`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\xg0", r"invalid escape sequence: `\xg0`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?P<>a)", "invalid named capture: `(?P<>`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
    ] {
        let pattern = Pattern::new(pattern);
        assert_eq!(pattern.error(), Some(format!("error parsing regexp: {words}").as_str()));
    }
    assert!(Pattern::new(&"(".repeat(500)).error().is_some_and(|e| e.contains("too deeply")));
    assert!(Pattern::new(r"((\pL{1000}){1000}){9}").error().is_some_and(|e| e.contains("large")));
}
