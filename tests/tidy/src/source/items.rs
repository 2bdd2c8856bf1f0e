//! Spans of functions, loops and the items of tests, found by matching brackets in masked code.

use std::ops::{Range, RangeInclusive};

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Identifier after the keyword `fn`.
    pub name: String,
    /// Lines from the keyword `fn` to the last brace, counted from 1.
    pub lines: RangeInclusive<usize>,
    body: Range<usize>,
}

impl Function {
    /// Number of lines, with signature and braces.
    pub fn length(&self) -> usize {
        self.lines.end() - self.lines.start() + 1
    }

    /// Offsets of the body, braces included.
    pub fn body(&self) -> Range<usize> {
        self.body.clone()
    }
}

/// An item under `cfg(test)`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TestItem {
    /// Lines from the item's attribute to the item's end, counted from 1.
    pub lines: RangeInclusive<usize>,
    /// Module name, when the item is a module in another file; `None` otherwise.
    pub module: Option<String>,
}

/// The functions of masked code.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, word) in words(code).filter(|(_, word)| *word == "fn") {
        // `fn(u8) -> u8` is a type, `fn $name` a macro's.
        let Some(name) = code[at + word.len()..].trim_start().split(is_punctuation).next() else {
            continue;
        };
        if name.is_empty() {
            continue;
        }
        if let Some(body) = body(code, at) {
            let lines = line(code, at)..=line(code, body.end - 1);
            found.push(Function { name: name.to_owned(), lines, body });
        }
    }
    found
}

/// The loops in a function, from keyword to last brace.
pub(super) fn loops(code: &str, function: &Function) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let inside = &code[..function.body.end];
    for (at, word) in words(inside).filter(|(at, _)| *at > function.body.start) {
        if matches!(word, "loop" | "while" | "for")
            && let Some(body) = body(inside, at)
        {
            found.push(at..body.end);
        }
    }
    found
}

/// The items of masked code that carry `cfg(test)`, alone or among other conditions.
pub(super) fn test_items(code: &str) -> Vec<TestItem> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("#[cfg(") {
        let Some(attribute) = bracketed(code, at + 1) else { continue };
        let condition = &code[at..attribute.end];
        let means_tests = words(condition).any(|(_, word)| word == "test");
        if !means_tests || condition.contains("not(") {
            continue;
        }
        let (end, is_declaration) = item_end(code, attribute.end);
        let item = &code[attribute.end..end];
        let mut names = words(item).map(|(_, word)| word).skip_while(|word| *word != "mod").skip(1);
        let module = names.next().filter(|_| is_declaration).map(str::to_owned);
        found.push(TestItem { lines: line(code, at)..=line(code, end.saturating_sub(1)), module });
    }
    found
}

/// The end of the item after an attribute, and true if a semicolon ends the item.
fn item_end(code: &str, from: usize) -> (usize, bool) {
    let mut at = from;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b';' => return (at + 1, true),
            b'{' => return (bracketed(code, at).map_or(code.len(), |block| block.end), false),
            b'(' | b'[' => at = bracketed(code, at).map_or(code.len(), |block| block.end),
            _ => at += 1,
        }
    }
    (code.len(), false)
}

/// Range of the block that belongs to the keyword at `at`, or `None` when a semicolon comes first.
fn body(code: &str, at: usize) -> Option<Range<usize>> {
    let mut open = at;
    loop {
        match code.as_bytes().get(open)? {
            b'{' => return bracketed(code, open),
            b';' | b'}' => return None,
            b'(' | b'[' => open = bracketed(code, open)?.end,
            _ => open += 1,
        }
    }
}

/// Range from the bracket at `open` to the end of the closing bracket.
pub(super) fn bracketed(code: &str, open: usize) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    for (index, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(open..index + 1);
        }
    }
    None
}

fn is_punctuation(char: char) -> bool {
    !char.is_alphanumeric() && char != '_'
}

/// The words of masked code with their offsets.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = code.as_ptr() as usize;
    code.split(is_punctuation)
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - start, word))
}

fn line(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::mask;

    #[test]
    fn functions_are_measured_from_fn_to_brace() {
        let code = mask(
            "trait T { fn declared(&self); }\n\
             fn one() {}\n\
             pub const fn two<F: Fn(u8)>(\n    f: F,\n    g: fn(u8) -> u8,\n) -> [u8; 3]\n\
             where\n    F: Copy,\n{\n    fn inner() { \"}\"; }\n    // }\n}\n",
        );
        let found = functions(&code);
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.lines.clone())).collect();
        assert_eq!(found, [("one", 2..=2), ("two", 3..=12), ("inner", 10..=10)]);
    }

    #[test]
    fn test_items_end_where_they_end() {
        let code = mask(
            "#[cfg(test)]\nmod tests;\n\
             #[cfg(all(test, unix))]\n#[allow(dead_code)]\nmod inner {\n    fn a() {}\n}\n\
             #[cfg(not(test))]\nmod real;\n\
             #[cfg(test)]\nuse std::{a, b};\n\
             #[cfg(feature = \"test\")]\nmod other;\n",
        );
        let found = test_items(&code);
        let lines: Vec<_> = found.iter().map(|item| item.lines.clone()).collect();
        assert_eq!(lines, [1..=2, 3..=7, 10..=11]);
        let modules: Vec<_> = found.iter().filter_map(|item| item.module.as_deref()).collect();
        assert_eq!(modules, ["tests"]);
    }
}
