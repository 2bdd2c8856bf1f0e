//! Plain language: the lines of a file that break its rules.

use std::ops::Range;

use crate::prose::{self, Comment};
use crate::source::{Source, find_words};

/// First words of a comment that make it a clause; a noun or a verb must come first.
const CLAUSES: [&str; 10] =
    ["What", "Whatever", "Whether", "How", "Who", "Whose", "Whom", "Which", "Where", "Why"];
/// Maximum number of words of a comment that only repeats the name below it.
const BRIEF_WORDS: usize = 3;
/// Words for people, which are not used for programs and data.
const PEOPLE: [&str; 12] = [
    "nobody",
    "somebody",
    "everybody",
    "anybody",
    "nobody's",
    "somebody's",
    "whoever",
    "stranger",
    "strangers",
    "told",
    "heard",
    "believes",
];
/// Forms of "to be" in the phrase that the rule `is-no` forbids in prose.
const BEING: [&str; 4] = ["is no ", "are no ", "was no ", "were no "];
/// Words before these forms that make a plain sentence: "there is no such file".
const THERE: [&str; 2] = ["there", "There"];
/// British spellings, as parts of names and of prose.
const BRITISH: [&str; 10] = [
    "behaviour",
    "catalogue",
    "centre",
    "colour",
    "enrolment",
    "enrolling",
    "favour",
    "honour",
    "licence",
    "neighbour",
];
/// Type names without a noun.
const BARE: [&str; 24] = [
    "Asked", "Begun", "Chosen", "Found", "Given", "Heard", "Held", "Kept", "Known", "Left", "Made",
    "Met", "Named", "Refused", "Said", "Seen", "Shown", "Sought", "Taken", "Told", "Took",
    "Undone", "Untold", "Wanted",
];

/// A rule of plain language.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Key of the rule in the table of ratchets.
    pub name: &'static str,
    /// Advice how to repair a breach.
    pub cure: &'static str,
    find: fn(&Source<'_>) -> Vec<usize>,
}

impl Rule {
    /// Lines that break the rule, from 1; a line with two breaches is listed twice.
    pub fn lines(self, source: &Source<'_>) -> Vec<usize> {
        (self.find)(source).into_iter().map(|at| source.line(at)).collect()
    }
}

/// The rules of plain language, one for each table of ratchets.
pub const RULES: [Rule; 6] = [
    Rule {
        name: "clauses",
        cure: "begin the comment with a noun or a verb in the third person",
        find: clauses,
    },
    Rule {
        name: "brief",
        cure: "say the unit, the limit, the source or the reason, or delete the comment",
        find: brief,
    },
    Rule { name: "people", cure: "things are not people: see the glossary", find: people },
    Rule {
        name: "is-no",
        cure: "write \"is not a valid X\" or \"expected X, found Y\"",
        find: is_no,
    },
    Rule { name: "spelling", cure: "spell as Americans do", find: spelling },
    Rule { name: "bare", cure: "name the type with a noun", find: bare },
];

fn clauses(source: &Source<'_>) -> Vec<usize> {
    let is_clause = |comment: &Comment| {
        let first = comment.text.split([' ', '\n', ',']).next().unwrap_or_default();
        CLAUSES.contains(&first)
    };
    prose::read(&source.file.text).iter().filter(|c| is_clause(c)).map(|c| c.at).collect()
}

fn brief(source: &Source<'_>) -> Vec<usize> {
    let is_brief = |comment: &Comment| {
        let text = comment.first_paragraph();
        let is_prose = text.starts_with(char::is_alphabetic) && text.ends_with('.');
        is_prose && comment.text.split_whitespace().count() <= BRIEF_WORDS
    };
    prose::read(&source.file.text).iter().filter(|c| is_brief(c)).map(|c| c.at).collect()
}

fn people(source: &Source<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, text) in prose::all(&source.file.text) {
        let text = text.to_lowercase();
        let words = text.split(|char: char| !char.is_alphanumeric() && char != '\'');
        found.extend(words.filter(|word| PEOPLE.contains(word)).map(|_| at));
    }
    found
}

fn is_no(source: &Source<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, text) in prose::all(&source.file.text) {
        for phrase in BEING {
            let hits = text.match_indices(phrase).filter(|(start, _)| {
                let before = text[..*start].trim_end();
                before.len() < *start && !THERE.iter().any(|word| before.ends_with(word))
            });
            // "is no longer" and "is no more" are plain.
            let hits = hits.filter(|(start, _)| {
                let after = &text[start + phrase.len()..];
                !after.starts_with("longer") && !after.starts_with("more")
            });
            found.extend(hits.map(|_| at));
        }
    }
    found
}

fn spelling(source: &Source<'_>) -> Vec<usize> {
    let text = source.file.text.to_ascii_lowercase();
    BRITISH.iter().flat_map(|word| text.match_indices(word).map(|(at, _)| at)).collect()
}

fn bare(source: &Source<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    for keyword in ["struct", "enum", "type"] {
        for at in find_words(&source.code, keyword) {
            let name = identifier(&source.code, at + keyword.len());
            if BARE.contains(&&source.code[name.clone()]) {
                found.push(name.start);
            }
        }
    }
    found
}

/// Range of the identifier after a keyword.
fn identifier(code: &str, from: usize) -> Range<usize> {
    let start = from + code[from..].len() - code[from..].trim_start().len();
    let rest = &code[start..];
    let end = rest.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(rest.len());
    start..start + end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn broken(text: &str) -> Vec<&'static str> {
        let tree = Tree::of(vec![("a/src/b.rs".to_owned(), text.to_owned())]);
        let source = Source::new(&tree.files[0]);
        let hits = RULES.into_iter().flat_map(|rule| vec![rule.name; rule.lines(&source).len()]);
        hits.collect()
    }

    #[test]
    fn each_rule_finds_its_breaches() {
        for (text, rule) in [
            ("/// What is kept of a lease.\nstruct A;", "clauses"),
            ("/// The time.\nstruct A;", "brief"),
            ("/// Name that a machine told the box.\nstruct A;", "people"),
            ("fn a() { b(\"{c} is no address\") }", "is-no"),
            ("/// Name of a screen's color.\nfn colour_of() {}", "spelling"),
            ("/// Lease that a client still has.\nstruct Held {}", "bare"),
        ] {
            assert_eq!(broken(text), [rule], "{text}");
        }
    }

    #[test]
    fn plain_language_breaks_none() {
        for text in [
            "/// Returns the lease of a MAC.\nfn lease() {}",
            "fn a() { b(\"there is no file {c}\") }",
            "/// Bytes that are no longer used.\nstruct Holder;",
            "/// Frames of the NIC.\n///\n/// ```text\n/// nobody is\n/// ```\nfn a() {}",
            "// 1 2\nfn a() {}",
        ] {
            assert_eq!(broken(text), [""; 0], "{text}");
        }
    }
}
