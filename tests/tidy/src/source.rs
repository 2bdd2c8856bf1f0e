//! Scanner of Rust files for the laws: code without comments and literals, functions with their
//! spans, and items of tests. It is not a parser: the laws need only tokens and brackets, which are
//! stable over all versions of the language.

pub mod expressions;
mod items;
mod mask;

pub use items::Function;
pub use mask::{comments, mask, strings};

use std::ops::{Range, RangeInclusive};

use crate::tree::File;

/// A scanned Rust file.
#[derive(Debug)]
pub struct Source<'a> {
    /// The file that was scanned.
    pub file: &'a File,
    /// Text of the file with comments, strings and characters blanked; offsets and lines do not
    /// change.
    pub code: String,
    /// Functions of the file, in order of their first lines; a nested function is listed too.
    pub functions: Vec<Function>,
    /// Lines of each item under `cfg(test)`, from 1.
    pub tests: Vec<RangeInclusive<usize>>,
    /// Offset of each line's first byte.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Scans a Rust file.
    pub fn new(file: &'a File) -> Self {
        let code = mask(&file.text);
        let functions = items::functions(&code);
        let tests = items::test_items(&code).into_iter().map(|item| item.lines).collect();
        let breaks = code.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        Self { file, code, functions, tests, lines }
    }

    /// Checks whether a line belongs to tests only.
    pub fn is_test(&self, line: usize) -> bool {
        self.file.is_test || self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// The innermost function around a line.
    pub fn function_at(&self, line: usize) -> Option<&Function> {
        self.functions.iter().rfind(|function| function.lines.contains(&line))
    }

    /// Checks whether a line's time is virtual: its function pauses the clock, or the function
    /// helps tests that all pause the clock.
    pub fn is_virtual(&self, line: usize) -> bool {
        let is_paused = |function: &Function| {
            let text = &self.code[self.head(function)];
            text.contains("start_paused") || text.contains("time::pause()")
        };
        let mut around = self.functions.iter().filter(|function| function.lines.contains(&line));
        if around.clone().any(is_paused) {
            return true;
        }
        // A test without a paused clock runs in real time.
        if around.any(|function| self.is_tokio_test(function)) {
            return false;
        }
        let mut tests = self.functions.iter().filter(|function| self.is_tokio_test(function));
        tests.clone().any(is_paused) && tests.all(is_paused)
    }

    /// Checks whether a function is a `tokio::test`.
    pub fn is_tokio_test(&self, function: &Function) -> bool {
        self.code[self.head(function)].contains("#[tokio::test")
    }

    /// A function with its attributes.
    fn head(&self, function: &Function) -> Range<usize> {
        let start = self.offset(*function.lines.start());
        let above = self.code[..start].rfind([';', '{', '}']).map_or(0, |at| at + 1);
        above..function.body().end
    }

    /// The offset of a line's first byte.
    pub fn offset(&self, line: usize) -> usize {
        self.lines.get(line - 1).copied().unwrap_or(self.code.len())
    }

    /// The line of an offset, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    /// The name of the innermost function around a line, or of the constant outside functions.
    pub fn item_name(&self, line: usize) -> &str {
        if let Some(function) = self.function_at(line) {
            return &function.name;
        }
        let end = self.offset(line + 1).min(self.code.len());
        let above = &self.code[..end];
        let start = ["const ", "static "]
            .iter()
            .filter_map(|word| find_words(above, word).last().map(|at| at + word.len()));
        let name = start.max().map_or("", |start| &above[start..]);
        name.split(|char: char| !char.is_alphanumeric() && char != '_').next().unwrap_or_default()
    }

    /// The innermost loop around an offset, its head included.
    pub fn loop_at(&self, at: usize) -> Option<&str> {
        let function = self.function_at(self.line(at))?;
        items::loops(&self.code, function)
            .into_iter()
            .rfind(|inside| inside.contains(&at))
            .map(|inside| &self.code[inside])
    }

    /// Offsets of a word or a phrase in the code of tests.
    pub fn in_tests(&self, phrase: &str) -> Vec<usize> {
        let found = find_words(&self.code, phrase);
        found.filter(|at| self.is_test(self.line(*at))).collect()
    }

    /// Lines of the code with a word or a phrase, from 1. The phrase must not be part of a longer
    /// word.
    pub fn lines_with(&self, phrase: &str) -> Vec<usize> {
        let find = |(number, line)| find_word(line, phrase).map(|_| number + 1);
        self.code.lines().enumerate().filter_map(find).collect()
    }

    /// Checks whether a line is inside a loop of its function.
    pub fn is_in_loop(&self, line: usize) -> bool {
        self.function_at(line).is_some_and(|function| {
            let loops = items::loops(&self.code, function);
            loops
                .iter()
                .any(|inside| (self.line(inside.start)..=self.line(inside.end - 1)).contains(&line))
        })
    }
}

/// The modules that a file declares for tests only, as paths without `.rs`.
pub fn test_modules(file: &File) -> Vec<String> {
    let folder = match file.path.rsplit_once('/') {
        Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder.to_owned(),
        _ => file.path.trim_end_matches(".rs").to_owned(),
    };
    let items = items::test_items(&mask(&file.text));
    items.into_iter().filter_map(|item| Some(format!("{folder}/{}", item.module?))).collect()
}

/// The offset of a phrase that is not part of a longer word.
pub fn find_word(line: &str, phrase: &str) -> Option<usize> {
    find_words(line, phrase).next()
}

/// The offsets of a phrase where it is not part of a longer word.
pub fn find_words<'a>(line: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let (first, last) = (phrase.as_bytes().first(), phrase.as_bytes().last());
    line.match_indices(phrase).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).and_then(|at| line.as_bytes().get(at));
        let after = line.as_bytes().get(at + phrase.len());
        !(is_word(first) && is_word(before) || is_word(last) && is_word(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        assert_eq!(find_word("a todo!( b", "todo!("), Some(2));
        assert_eq!(find_word("mastodo!(", "todo!("), None);
        assert_eq!(find_word("unsafe_code unsafe", "unsafe"), Some(12));
        assert_eq!(find_word("x.unwrap()", ".unwrap()"), Some(1));
        assert_eq!(find_word("x.unwrap_or()", ".unwrap()"), None);
    }

    #[test]
    fn loops_are_seen_in_their_function_only() {
        let text = "fn a() {\n    while x() {\n        b();\n    }\n    c();\n}\n\
                    fn d() { loop {\n        if y { e() }\n } }\n";
        let file = File { path: "a.rs".into(), text: text.into(), is_test: false };
        let source = Source::new(&file);
        let inside: Vec<usize> = (1..=9).filter(|&line| source.is_in_loop(line)).collect();
        assert_eq!(inside, [2, 3, 4, 7, 8, 9]);
    }
}
