//! Regular expressions composed of pieces, and the texts they are matched against.

use super::Grammar;

/// Texts that patterns are matched against.
const SUBJECTS: [&str; 14] = [
    "",
    "foo bar_baz",
    "a1b22c333",
    "aéb b ß",
    "Ωmega αβγ",
    "日本 nihon",
    "A-Z a.z",
    "l1\\nl2\\n",
    "((x))[y]{z}",
    "$1 $$ ${a}",
    "aaa",
    "ſK k S",
    "\\t\\x00\\x7f",
    "Straße 7",
];
const ATOMS: [&str; 33] = [
    "a",
    "b",
    "1",
    "é",
    ".",
    "\\b",
    "\\B",
    "^",
    "$",
    "\\d",
    "\\w",
    "\\s",
    "\\p{Greek}",
    "\\p{^Lu}",
    "\\p{Nope}",
    "\\p{L",
    "[a-c]",
    "[^a]",
    "[\\d_]",
    "[[:alpha:]]",
    "[[:^space:]x]",
    "[+--]",
    "[]a]",
    "[a-]",
    "[",
    "\\x41",
    "\\x{e9}",
    "\\101",
    "\\Qa.b\\E",
    "\\<",
    "\\A",
    "\\z",
    "&&",
];
/// Atoms that need much memory: a pattern has at most [`LARGE_MAX`] of them.
const LARGE: [&str; 12] = [
    "\\D",
    "\\W",
    "\\S",
    "\\pL",
    "\\PN",
    "\\P{Han}",
    "\\p{lower case}",
    "\\p{Lu}",
    "\\p{letter}",
    "\\p{Any}",
    "[\\p{Lu}é-ü]",
    "[^\\PL]",
];
const LARGE_MAX: usize = 3;
/// Repetition operators; only atoms have counts.
const REPETITIONS: [&str; 12] =
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{2,}", "**", "{a}"];
const GROUPS: [&str; 9] =
    ["(", "(?:", "(?i)(", "(?i:", "(?s-i:", "(?P<n>", "(?<m>", "(?U:", "(?ii:"];
const REPLACEMENTS: [&str; 10] =
    ["", "x", "<$0>", "$1", "${1}y", "$1y", "${n}", "$n-$$", "${1", "$ $10 ${ 1}"];

impl Grammar {
    pub(super) fn about_pattern(&mut self) -> String {
        let (pattern, subject) = (self.pattern(2, &mut 0), self.random.pick(&SUBJECTS));
        let replacement = self.random.pick(&REPLACEMENTS);
        let count = self.random.pick(&["-1", "-1", "0", "1", "2"]);
        let call = match self.random.below(8) {
            0 => format!("regexMatch `{pattern}` \"{subject}\""),
            1 => format!("mustRegexMatch `{pattern}` \"{subject}\""),
            2 => format!("regexFind `{pattern}` \"{subject}\""),
            3 | 4 => format!("regexFindAll `{pattern}` \"{subject}\" {count} | join \"|\""),
            5 => format!("regexReplaceAll `{pattern}` \"{subject}\" \"{replacement}\""),
            6 => format!("regexReplaceAllLiteral `{pattern}` \"{subject}\" \"{replacement}\""),
            _ => format!("regexSplit `{pattern}` \"{subject}\" {count} | join \"|\""),
        };
        self.action(&call)
    }

    fn pattern(&mut self, depth: usize, large: &mut usize) -> String {
        let mut pattern = String::new();
        for at in 0..=self.random.below(4) {
            if at > 0 && self.random.chance(12) {
                pattern.push('|');
            }
            let is_group = depth > 0 && self.random.chance(20);
            if is_group {
                pattern.push_str(self.random.pick(&GROUPS));
                pattern.push_str(&self.pattern(depth - 1, large));
                pattern.push(')');
            } else if *large < LARGE_MAX && self.random.chance(20) {
                *large += 1;
                pattern.push_str(self.random.pick(&LARGE));
            } else {
                pattern.push_str(self.random.pick(&ATOMS));
            }
            if self.random.chance(30) {
                let repetition = self.random.pick(&REPETITIONS);
                pattern.push_str(if is_group { "*" } else { repetition });
            }
        }
        pattern
    }
}
