//! Random documents, and random patterns that have a chance to match them.
//!
//! Intended differences (the table in `pattern-differences.md`) are not generated.

use serde_json::{Map, Value, json};

use super::super::merge::random::Random;

/// Names of members: few, so that patterns often match one.
const NAMES: [&str; 5] = ["a", "b", "c", "size", "name"];
/// Strings that share prefixes and letters.
const TEXTS: [&str; 14] = [
    "", "a", "A", "ab", "aB", "abc", "500GB", "512GB", "nvme0n1", "NVME0N1", "true", "4", "a*b",
    "grün",
];
const NUMBERS: [&str; 9] = ["0", "4", "4.0", "40e-1", "-4", "0.1", "1e3", "1000", "16384"];
const SHAPES: [&str; 11] =
    ["*", "a*", "*b", "a*b", "*G*", "5*2GB", "nvme*n1", "*a*b*", "x", "abc", "gr*n"];
const ESCAPED: [&str; 4] = ["a\\*b", "a\\*", "*\\*b", "\\\\"];
const REGEXPS: [&str; 12] = [
    "a",
    "ab|abc",
    "(a|A)(b|B)",
    "5.2GB",
    "5[0-9]2GB",
    "[a-z]b",
    "nvme[0-9]n[0-9]",
    "a~*b",
    "gr.n",
    "[ab-]",
    "a(b(c|d)|e)",
    ".",
];
/// Regular expressions that both sides refuse.
const NO_REGEXPS: [&str; 5] = ["(a", "a)", "[b-a]", "~w", "*a"];

/// One document and some patterns.
pub struct Case {
    pub document: Value,
    pub patterns: Vec<String>,
}

/// Generator of random cases.
pub struct Grammar {
    random: Random,
    /// Value of `exists` in the current pattern.
    exists: bool,
}

impl Grammar {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed), exists: true }
    }

    /// Generates the next case.
    pub fn case(&mut self) -> Case {
        let document = self.document();
        let patterns = (0..=self.random.below(4)).map(|_| self.pattern()).collect();
        Case { document, patterns }
    }

    fn text(&mut self) -> &'static str {
        self.random.pick(&TEXTS)
    }

    fn leaf(&mut self) -> Value {
        match self.random.below(10) {
            0 => Value::Null,
            1 => json!(self.random.chance(50)),
            2..=4 => serde_json::from_str(self.random.pick(&NUMBERS)).unwrap(),
            _ => json!(self.text()),
        }
    }

    /// Random document: leaves at the top level, objects and lists of objects one and two levels
    /// below. Each level has its own names.
    fn document(&mut self) -> Value {
        let mut members = Map::new();
        for name in NAMES {
            if self.random.chance(70) {
                members.insert(name.to_owned(), self.leaves());
            }
        }
        for name in ["one", "two"] {
            if self.random.chance(70) {
                let value = self.below("in", 1);
                members.insert(name.to_owned(), value);
            }
        }
        Value::Object(members)
    }

    /// A leaf or a list of leaves.
    fn leaves(&mut self) -> Value {
        match self.random.below(4) {
            0 => (0..self.random.below(4)).map(|_| self.leaf()).collect(),
            _ => self.leaf(),
        }
    }

    /// A random object or list of objects, with another level below.
    fn below(&mut self, name: &str, depth: usize) -> Value {
        let one = |grammar: &mut Self| {
            let mut members = Map::new();
            for leaf in ["x", "y", "z"] {
                if grammar.random.chance(75) {
                    members.insert(format!("{leaf}{depth}"), grammar.leaves());
                }
            }
            if depth < 2 && grammar.random.chance(60) {
                members.insert(name.to_owned(), grammar.below(name, depth + 1));
            }
            Value::Object(members)
        };
        match self.random.below(3) {
            0 => one(self),
            _ => (0..self.random.below(4)).map(|_| one(self)).collect(),
        }
    }

    fn pattern(&mut self) -> String {
        self.exists = self.random.chance(70);
        let mut members = Map::new();
        for name in NAMES {
            if self.random.chance(15) {
                members.insert(name.to_owned(), self.wanted());
            }
        }
        for name in ["one", "two"] {
            if self.random.chance(25) {
                members.insert(name.to_owned(), self.wanted_below("in", 1));
            }
        }
        if members.is_empty() {
            members.insert(self.random.pick(&NAMES).to_owned(), self.wanted());
        }
        Value::Object(members).to_string()
    }

    fn wanted_below(&mut self, name: &str, depth: usize) -> Value {
        let mut members = Map::new();
        for leaf in ["x", "y", "z"] {
            if self.random.chance(30) {
                members.insert(format!("{leaf}{depth}"), self.wanted());
            }
        }
        if depth < 2 && self.random.chance(30) {
            members.insert(name.to_owned(), self.wanted_below(name, depth + 1));
        }
        Value::Object(members)
    }

    /// Random condition of a leaf; many alternatives, because few would almost never match.
    fn wanted(&mut self) -> Value {
        match self.random.below(12) {
            0 | 1 => json!([{ "exists": self.exists }]),
            2 => {
                let texts: Vec<&str> = (0..=self.random.below(3)).map(|_| self.text()).collect();
                json!([{ "anything-but": texts }])
            }
            3 => json!([{ "regexp": self.random.pick(&REGEXPS) }]),
            4 if self.random.chance(25) => self.odd(),
            _ => (0..=self.random.below(9)).map(|_| self.one()).collect(),
        }
    }

    fn one(&mut self) -> Value {
        match self.random.below(12) {
            0 => json!({ "prefix": self.text() }),
            1 => json!({ "equals-ignore-case": self.text() }),
            2 => json!({ "shellstyle": self.random.pick(&SHAPES) }),
            3 => json!({ "wildcard": self.random.pick(&SHAPES) }),
            4 => json!({ "wildcard": self.random.pick(&ESCAPED) }),
            _ => self.leaf(),
        }
    }

    /// Random condition that is refused in most cases.
    fn odd(&mut self) -> Value {
        match self.random.below(10) {
            8 => json!([{ "regexp": self.random.pick(&NO_REGEXPS) }]),
            9 => json!([{ "wildcard": self.random.pick(&["a**", "a\\", "a\\n"]) }]),
            0 => json!([]),
            1 => json!("a"),
            2 => json!([["a"]]),
            3 => json!([{ "exists": true }, "a"]),
            4 => json!([{ "anything-but": [] }]),
            5 => json!([{ "suffix": "a" }]),
            6 => json!([{ "prefix": 1 }]),
            _ => json!(["a", "b", "ab", 4, null]),
        }
    }
}
