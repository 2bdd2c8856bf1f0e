//! A walk through a page: its commands, one after the other.

use std::collections::VecDeque;

use docs::markdown::blocks;
use docs::page::root;
use docs::typed_lines::{TypedLine, to_run};

use crate::Terminal;

/// A walk through one page. All commands have run when [`Walk::end`] returns.
pub struct Walk {
    terminal: Terminal,
    lines: VecDeque<TypedLine>,
    replacements: Vec<Replacement>,
}

struct Replacement {
    text: String,
    by: String,
    is_used: bool,
}

impl Walk {
    /// Begins a walk through the page at `path`, from the root of the tree.
    pub fn through(path: &str, terminal: Terminal) -> Self {
        Self { terminal, lines: to_run(path).into(), replacements: Vec::new() }
    }

    /// The terminal of the walk.
    pub fn terminal(&mut self) -> &mut Terminal {
        &mut self.terminal
    }

    /// Replaces a text in all later commands: a value that differs for each person.
    pub fn replace(&mut self, text: &str, by: &str) {
        self.replacements.retain(|it| it.text != text);
        let (text, by) = (text.to_owned(), by.to_owned());
        self.replacements.push(Replacement { text, by, is_used: false });
    }

    /// Runs the commands before the next one that begins with `start`.
    pub fn until(&mut self, start: &str) {
        assert!(self.lines.iter().any(|it| it.text.starts_with(start)), "no command: {start}");
        while let Some(typed) = self.lines.pop_front_if(|it| !it.text.starts_with(start)) {
            self.run(&typed);
        }
    }

    /// Runs the commands up to the first one that begins with `start`, and stops that one by
    /// Control-C when its output has `shown`.
    pub fn is_stopped(&mut self, start: &str, shown: &str) {
        self.until(start);
        let typed = self.lines.pop_front().unwrap();
        let line = self.replaced(&typed.text);
        let ended = self.terminal.run_until(&line, Some(shown));
        let (page, number) = (&typed.page, typed.line);
        assert!(ended.output.contains(shown), "{page}:{number}: `{line}`: {}", ended.output);
    }

    /// Runs the commands before the first one that begins with `start`. Returns that command for
    /// the caller, which runs it until the end of the walk.
    pub fn server(&mut self, start: &str) -> String {
        self.until(start);
        let typed = self.lines.pop_front().unwrap();
        self.replaced(&typed.text)
    }

    /// Runs the remaining commands, and checks that each replacement was used.
    pub fn end(mut self) {
        while let Some(typed) = self.lines.pop_front() {
            self.run(&typed);
        }
        let unused = self.replacements.iter().filter(|it| !it.is_used).map(|it| &it.text);
        let unused: Vec<&String> = unused.collect();
        assert!(unused.is_empty(), "no command has {unused:?}");
    }

    fn run(&mut self, typed: &TypedLine) {
        let line = self.replaced(&typed.text);
        let ended = self.terminal.run(&line);
        let (page, number) = (&typed.page, typed.line);
        println!("{page}:{number}: {line}\n{}", ended.output);
        assert!(ended.success, "{page}:{number}: `{line}` fails: {}", ended.output);
    }

    fn replaced(&mut self, text: &str) -> String {
        let mut line = text.to_owned();
        for it in &mut self.replacements {
            it.is_used |= line.contains(&it.text);
            line = line.replace(&it.text, &it.by);
        }
        line
    }
}

/// Returns the text of code block `number` (from 0) among a page's code blocks in `language`.
pub fn block(path: &str, language: &str, number: usize) -> String {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let of_language = blocks(&text).into_iter().filter(|it| it.language == language);
    let block = of_language.map(|it| it.text).nth(number);
    block.unwrap_or_else(|| panic!("{path} has no block {number} of {language}"))
}
