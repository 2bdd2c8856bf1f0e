//! The prose of a Rust file: comments as a reader sees them, and the contents of string literals.

use std::ops::Range;

use crate::source::{comments, strings};

/// Markers of comments; the longer ones first.
const MARKERS: [&str; 3] = ["///", "//!", "//"];

/// Consecutive comment lines with the same marker.
#[derive(Debug, PartialEq, Eq)]
pub struct Comment {
    /// Offset of the comment's first slash.
    pub at: usize,
    /// Lines of the comment without slashes, joined by line breaks.
    pub text: String,
    marker: &'static str,
}

impl Comment {
    /// First paragraph of the comment, in one line.
    pub fn first_paragraph(&self) -> String {
        let lines = self.text.lines().map(str::trim).take_while(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    }

    /// Lines of the comment outside of code blocks: the rules of prose do not apply to code.
    pub fn prose(&self) -> String {
        let mut is_code = false;
        let mut kept = Vec::new();
        for line in self.text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if !is_code {
                kept.push(line.trim());
            }
        }
        kept.join(" ")
    }
}

/// The comments of a file. A comment behind code on the same line is separate.
pub fn read(text: &str) -> Vec<Comment> {
    let mut found: Vec<Comment> = Vec::new();
    let mut last_line = 0;
    for range in comments(text) {
        let Some((marker, body)) = body(text, &range) else { continue };
        let line = text[..range.start].matches('\n').count() + 1;
        let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let is_alone = text[start..range.start].trim().is_empty();
        match found.last_mut() {
            Some(last) if is_alone && last_line + 1 == line && last.marker == marker => {
                last.text.push('\n');
                last.text.push_str(body);
            }
            _ => found.push(Comment { at: range.start, text: body.to_owned(), marker }),
        }
        last_line = if is_alone { line } else { 0 };
    }
    found
}

fn body<'a>(text: &'a str, range: &Range<usize>) -> Option<(&'static str, &'a str)> {
    let comment = &text[range.clone()];
    let marker = MARKERS.into_iter().find(|marker| comment.starts_with(marker))?;
    Some((marker, comment[marker.len()..].trim()))
}

/// The prose of a file, comments and string literals, each with its offset.
pub fn all(text: &str) -> Vec<(usize, String)> {
    let comments = read(text).into_iter().map(|comment| (comment.at, comment.prose()));
    let literals = strings(text).into_iter().map(|range| (range.start, text[range].to_owned()));
    comments.chain(literals).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_marker_are_one_comment() {
        let text =
            "//! A.\n//! b\n\n/// C d.\n///\n/// E.\nfn f() {} // g\n// h\nlet i = \"// j\";\n";
        let found = read(text);
        let texts: Vec<_> = found.iter().map(|comment| comment.text.as_str()).collect();
        assert_eq!(texts, ["A.\nb", "C d.\n\nE.", "g", "h"]);
        assert_eq!(found[0].first_paragraph(), "A. b");
        assert_eq!(found[1].first_paragraph(), "C d.");
        assert_eq!(all(text).len(), 5);
    }

    #[test]
    fn code_in_a_comment_is_no_prose() {
        let found = read("/// A\n/// ```text\n/// nobody\n/// ```\n/// b.\nfn c() {}\n");
        assert_eq!(found[0].prose(), "A b.");
    }
}
