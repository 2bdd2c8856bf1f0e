//! Output of the demos, on a terminal and in a log.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Read, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, ensure};

/// Exit code of a program; prints an error with its cause on standard error.
pub fn exit(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The terminal: lines scroll up, the progress of every machine stays in the last line.
pub struct Screen {
    live: bool,
    bars: Mutex<BTreeMap<String, String>>,
}

impl Screen {
    /// A screen without a progress bar.
    pub fn new() -> Self {
        Self { live: std::io::stdout().is_terminal(), bars: Mutex::default() }
    }

    /// Runs a command and shows each line of its output after `name` and `mark`. On a terminal, a
    /// line with a percentage moves the progress bar of `name` instead.
    ///
    /// # Errors
    /// It cannot be run, or fails.
    pub fn relay(&self, mut command: Command, name: &str, mark: char) -> anyhow::Result<()> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        thread::scope(|scope| {
            scope.spawn(|| self.lines(err, name, mark));
            self.lines(out, name, mark);
        });
        ensure!(child.wait()?.success(), "{name} did not get through");
        Ok(())
    }

    fn lines(&self, from: Option<impl Read>, name: &str, mark: char) {
        for line in from.into_iter().flat_map(|from| BufReader::new(from).lines()) {
            let Ok(line) = line else { return };
            match percent(&line) {
                Some(percent) if self.live => self.progress(name, percent),
                _ => self.line(&format!("{name} {mark} {line}")),
            }
        }
    }

    fn line(&self, text: &str) {
        let bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        if self.live {
            print!("\r\x1b[K{text}\n{}", last_line(&bars));
        } else {
            println!("{text}");
        }
        let _ = std::io::stdout().flush();
    }

    fn progress(&self, name: &str, percent: usize) {
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        if percent >= 100 {
            bars.remove(name);
        } else {
            let full = percent / 5;
            let bar =
                format!("{name} [{}{}] {percent:3} %", "#".repeat(full), " ".repeat(20 - full));
            bars.insert(name.to_owned(), bar);
        }
        print!("\r\x1b[K{}", last_line(&bars));
        let _ = std::io::stdout().flush();
    }
}

fn last_line(bars: &BTreeMap<String, String>) -> String {
    let bars: Vec<&str> = bars.values().map(String::as_str).collect();
    bars.join("  ")
}

/// Percentage in a line: 27 in `stream-image 27 %, 42 MiB of 154 MiB`.
fn percent(line: &str) -> Option<usize> {
    let (before, _) = line.split_once(" %")?;
    before.rsplit(' ').next()?.parse().ok().filter(|percent| *percent <= 100)
}

impl Default for Screen {
    fn default() -> Self {
        Self::new()
    }
}

/// Prints a heading with an empty line before it.
pub fn say(text: &str) {
    println!("\n== {text}");
}

/// Prints a command as a user would type it, and runs the command with its output on the terminal.
///
/// # Errors
/// It cannot be run, or fails.
pub fn show_run(text: &str, command: &mut Command) -> anyhow::Result<()> {
    show(text);
    let status = command.status().with_context(|| format!("cannot run {text}"))?;
    ensure!(status.success(), "failed: {text}");
    Ok(())
}

/// Prints a command as a user would type it.
pub fn show(command: &str) {
    println!("$ {command}");
}
