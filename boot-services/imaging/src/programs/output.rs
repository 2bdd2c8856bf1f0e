//! Output of an action's programs. Each line goes to the log and to the box; the error of a failed
//! program has the last lines.

use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::Meter;

/// Maximum length of an output line in bytes; the rest of the line is dropped.
const LINE: usize = 1000;
/// Number of last lines in the error of a failed program.
const LAST_LINES: usize = 5;

/// Last output lines of a program, at most five.
#[derive(Debug, Default)]
pub struct LastLines(Mutex<Vec<String>>);

impl LastLines {
    /// Joins the lines to one text, separated by ` / `.
    pub fn joined(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).join(" / ")
    }

    fn push(&self, line: String) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.push(line);
        let surplus = last.len().saturating_sub(LAST_LINES);
        last.drain(..surplus);
    }
}

/// Reads a pipe to its end. Sends each line to the log and the meter, and stores the last lines in
/// `last`.
pub async fn log_lines(
    pipe: Option<impl AsyncRead + Unpin>,
    program: &str,
    meter: &Meter,
    last: &LastLines,
) {
    let Some(pipe) = pipe else { return };
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while let Ok(chunk) = reader.fill_buf().await {
        let (count, ended) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (chunk.len(), chunk.is_empty()),
        };
        let room = LINE.saturating_sub(line.len());
        line.extend_from_slice(&chunk[..count.min(room)]);
        reader.consume(count);
        if ended {
            let text = String::from_utf8_lossy(&line);
            let text: String = text.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
            if !text.trim().is_empty() {
                tracing::info!(program, said = %text, "output");
                meter.say(text.clone());
                meter.print(text.clone());
                last.push(text);
            }
            line.clear();
        }
        if count == 0 {
            return;
        }
    }
}
