//! Random templates and random data for them, over the whole language.
//!
//! Intended differences (the table in `template-differences.md`) are not generated: refused
//! functions, values in random order, text that is not valid UTF-8, and sizes beyond our limits.

mod data;
mod patterns;
mod pieces;

use serde_json::Value;

use super::super::merge::random::Random;
use super::calls::{CALLS, Kind};

/// Maximum nesting of expressions and actions.
const DEPTH: usize = 3;
/// Verbs of `printf`, with flags and widths.
const VERBS: [&str; 24] = [
    "%v",
    "%d",
    "%s",
    "%q",
    "%x",
    "%X",
    "%t",
    "%T",
    "%5d",
    "%-6s|",
    "%05d",
    "%+v",
    "%.2f",
    "%8.3f",
    "%e",
    "%g",
    "%#v",
    "%c",
    "%U",
    "%o",
    "%b",
    "%[1]v",
    "%[2]*[1]d",
    "%%",
];
/// Texts that are valid YAML as a whole, and some that are invalid from the start: Go's parser
/// ignores text after the first value.
const YAML: [&str; 16] = [
    "\"\"",
    "\"a: 1\\nb: [x, 0600, 1.5]\"",
    "\"yes\"",
    "\"0o17\"",
    "\"- a\\n- b: ~\"",
    "(toYaml .)",
    "(toYaml .list)",
    "\"{a: 1, b: no}\"",
    "\"[\"",
    "\"a: |\\n  x\\n  y\\n\"",
    "\"1e3\"",
    "\"'q'\"",
    "\"a: &x {k: 1}\\nb: *x\"",
    "(toJson .)",
    "\"2024-01-02\"",
    "(toYaml .map)",
];
/// Functions that change their first argument.
const WRITERS: [&str; 4] = ["set", "merge", "mergeOverwrite", "mustMerge"];
/// Texts with a special meaning for at least one function.
const TEXTS: [&str; 40] = [
    "",
    "a",
    "abc",
    "Hello World",
    "foo-bar_baz",
    "HTTPServer2xx",
    " lead",
    "trail ",
    "a,b,c",
    "/dev/sda",
    "/dev/nvme0n1",
    "/dev/disk/by-id/x",
    "255.255.255.0",
    "10.0.0.1",
    "1",
    "42",
    "-7",
    "3.14",
    "0x1F",
    "010",
    "1e3",
    "true",
    "null",
    "yes",
    "2024-01-02",
    "a: b",
    "# x",
    "- a\\n- b",
    "k: 1\\nl: [x, 2.5]",
    "{\\\"a\\\": [1, null, \\\"x\\\"]}",
    "l1\\nl2\\n",
    "[0-9]+",
    "a(b*)c",
    "^x",
    "<&>\\\"'",
    "aGVsbG8=",
    "NBSWY3DP",
    "1h30m",
    "a/b/../c.txt",
    "%d and %s",
];

/// A template and its data.
pub struct Case {
    /// Text of the template.
    pub template: String,
    /// Value of the dot.
    pub data: Value,
}

/// Makes cases from a seed.
pub struct Grammar {
    random: Random,
    /// Number of variables in scope.
    variables: usize,
    /// Number of open loops.
    loops: usize,
}

impl Grammar {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed), variables: 0, loops: 0 }
    }

    /// Generates the next case.
    pub fn case(&mut self) -> Case {
        self.variables = 0;
        let data = self.data();
        let mut template = String::new();
        if self.random.chance(20) {
            let body = self.nodes(1);
            template.push_str(&format!("{{{{ define \"t\" }}}}{body}{{{{ end }}}}"));
        }
        self.variables = 0;
        template.push_str(&self.nodes(DEPTH));
        if self.random.chance(8) {
            template = self.mutated(&template);
        }
        Case { template, data }
    }

    /// Removes or inserts a few characters.
    fn mutated(&mut self, template: &str) -> String {
        let mut chars: Vec<char> = template.chars().collect();
        for _ in 0..=self.random.below(3) {
            let at = self.random.below(chars.len().max(1));
            if self.random.chance(50) && at < chars.len() {
                chars.remove(at);
            } else {
                let c = self.random.pick(&['{', '}', ' ', '"', '|', '(', ')', '.', '$', '-', ':']);
                chars.insert(at.min(chars.len()), c);
            }
        }
        chars.into_iter().collect()
    }

    fn nodes(&mut self, depth: usize) -> String {
        let variables = self.variables;
        let mut out = String::new();
        for _ in 0..=self.random.below(3) {
            out.push_str(&self.node(depth));
        }
        self.variables = variables;
        out
    }

    fn open(&mut self) -> &'static str {
        if self.random.chance(10) { "{{- " } else { "{{ " }
    }

    fn close(&mut self) -> &'static str {
        if self.random.chance(10) { " -}}" } else { " }}" }
    }

    fn action(&mut self, inner: &str) -> String {
        format!("{}{inner}{}", self.open(), self.close())
    }

    fn node(&mut self, depth: usize) -> String {
        if self.random.chance(8) {
            return self.special();
        }
        match self.random.below(if depth == 0 { 8 } else { 16 }) {
            0 => self.random.pick(&[" text ", "\n", "a: b\n", "  - x\n"]).to_owned(),
            1..=5 => {
                let pipe = self.pipe(depth.min(2));
                self.action(&pipe)
            }
            6 => {
                let pipe = self.pipe(1);
                let name = self.variables;
                self.variables += 1;
                self.action(&format!("$v{name} := {pipe}"))
            }
            7 if self.variables > 0 => {
                let (name, pipe) = (self.random.below(self.variables), self.pipe(1));
                self.action(&format!("$v{name} = {pipe}"))
            }
            7 => "{{/* nothing */}}".to_owned(),
            8..=10 => self.branch("if", depth),
            11 => self.branch("with", depth),
            12 | 13 => self.range(depth),
            14 => self.action("template \"t\" .map"),
            _ if self.loops > 0 => {
                let word = self.random.pick(&["break", "continue"]);
                format!("{{{{ {word} }}}}")
            }
            _ => self.action("print"),
        }
    }

    fn branch(&mut self, word: &str, depth: usize) -> String {
        let (pipe, body) = (self.pipe(1), self.nodes(depth - 1));
        let mut out = format!("{}{body}", self.action(&format!("{word} {pipe}")));
        if self.random.chance(30) {
            let (pipe, body) = (self.pipe(1), self.nodes(depth - 1));
            out.push_str(&format!("{}{body}", self.action(&format!("else {word} {pipe}"))));
        }
        if self.random.chance(40) {
            let body = self.nodes(depth - 1);
            out.push_str(&format!("{}{body}", self.action("else")));
        }
        out.push_str(&self.action("end"));
        out
    }

    fn range(&mut self, depth: usize) -> String {
        let over = match self.random.below(4) {
            0 => ".list".to_owned(),
            1 => format!("{}", self.random.below(4)),
            2 => ".map".to_owned(),
            _ => self.pipe(1),
        };
        let variables = self.variables;
        let head = match self.random.below(3) {
            0 => format!("range {over}"),
            1 => {
                self.variables += 1;
                format!("range $v{variables} := {over}")
            }
            _ => {
                self.variables += 2;
                format!("range $v{variables}, $v{} := {over}", variables + 1)
            }
        };
        let head = self.action(&head);
        self.loops += 1;
        let body = self.nodes(depth - 1);
        self.loops -= 1;
        self.variables = variables;
        let otherwise = if self.random.chance(30) {
            format!("{{{{ else }}}}{}", self.nodes(depth - 1))
        } else {
            String::new()
        };
        format!("{head}{body}{otherwise}{}", self.action("end"))
    }

    fn pipe(&mut self, depth: usize) -> String {
        let mut pipe = self.command(depth);
        while self.random.chance(25) {
            let call = self.call(depth, true);
            pipe = format!("{pipe} | {call}");
        }
        pipe
    }

    fn command(&mut self, depth: usize) -> String {
        if depth > 0 && self.random.chance(70) {
            return self.call(depth, false);
        }
        let kind = self.random.pick(&[Kind::Any, Kind::Text, Kind::Int, Kind::Map, Kind::List]);
        self.word(kind, 0)
    }

    /// A random call; without its last argument where a pipe supplies it.
    fn call(&mut self, depth: usize, piped: bool) -> String {
        if self.random.chance(10) {
            let (verb, other) = (self.random.pick(&VERBS), self.random.pick(&VERBS));
            let (a, b) = (self.word(Kind::Any, 0), self.word(Kind::Any, 0));
            return format!("printf \"{verb} {other}\" {a} {b}");
        }
        let (name, fixed, rest) = self.random.pick(CALLS);
        if WRITERS.contains(&name) {
            // A map that contains itself overflows Go's stack, so only constants are put into a
            // map.
            let target = self.random.pick(&[".map", "(dict)", "(dict \"a\" 1 \"z\" 2)", "nil"]);
            let constants = match name {
                "set" => "\"x\" 3",
                _ => {
                    "(dict \"a\" 2 \"b\" (dict \"x\" 1)) (dict \"b\" (dict \"y\" 2) \"c\" (list 1))"
                }
            };
            return if piped { "len".to_owned() } else { format!("{name} {target} {constants}") };
        }
        if name == "fromYaml" {
            let text = self.random.pick(&YAML);
            return if piped { "len".to_owned() } else { format!("fromYaml {text}") };
        }
        let mut kinds = fixed.to_vec();
        if let Some(kind) = rest {
            kinds.extend(std::iter::repeat_n(kind, self.random.below(3)));
        }
        if piped {
            kinds.pop();
        }
        // Rarely one argument too many or too few.
        if self.random.chance(2) {
            kinds.push(Kind::Any);
        }
        let words: Vec<String> =
            kinds.into_iter().map(|kind| self.word(kind, depth.saturating_sub(1))).collect();
        // The order of a map's keys and values is random in Go.
        match name {
            "keys" | "values" if piped => "len".to_owned(),
            "keys" => format!("sortAlpha (keys {})", words.join(" ")),
            "values" => format!("len (values {})", words.join(" ")),
            _ => format!("{name} {}", words.join(" ")),
        }
    }

    /// A random word of this type, or rarely of another type.
    fn word(&mut self, kind: Kind, depth: usize) -> String {
        if depth > 0 && self.random.chance(35) {
            let call = self.call(depth, false);
            return format!("({call})");
        }
        let kind = match kind {
            Kind::Any => {
                self.random.pick(&[Kind::Text, Kind::Int, Kind::Float, Kind::Map, Kind::List])
            }
            kind => kind,
        };
        if self.random.chance(6) {
            let others = ["nil", ".", ".none", "1.5", "true", "'a'", ".missing", "$", ".map.a"];
            return self.random.pick(&others).to_owned();
        }
        if self.variables > 0 && self.random.chance(12) {
            return format!("$v{}", self.random.below(self.variables));
        }
        match kind {
            Kind::Text => match self.random.below(4) {
                0 => self.random.pick(&[".text", ".Hardware.UserData", "(index .texts 1)"]).into(),
                _ => format!("\"{}\"", self.random.pick(&TEXTS)),
            },
            Kind::Int => {
                let family = "(index .Hardware.Interfaces 0).DHCP.IP.Family";
                self.random.pick(&["0", "1", "2", "3", "5", "7", "-1", "0x10", family]).to_owned()
            }
            Kind::Float => {
                self.random.pick(&["1.5", "0.1", "2e3", ".number", "-0.25", "3.0"]).to_owned()
            }
            Kind::Bool => self.random.pick(&["true", "false", ".flag"]).to_owned(),
            Kind::Map => {
                let maps = [
                    ".map",
                    "(dict \"a\" 1 \"b\" \"x\")",
                    "(dict)",
                    ".Hardware",
                    "(dict \"a\" (dict \"x\" 0))",
                ];
                self.random.pick(&maps).to_owned()
            }
            _ => {
                let lists = [
                    ".list",
                    ".texts",
                    "(list 1 2 3)",
                    "(list)",
                    "(list \"b\" \"a\" nil)",
                    "(splitList \",\" \"z,y,x\")",
                    "(until 3)",
                    "(list 1 1.0 \"1\" true)",
                ];
                self.random.pick(&lists).to_owned()
            }
        }
    }
}
