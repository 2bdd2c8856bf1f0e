//! Output of an action's programs. Every line goes to the log, and the last lines go into the error
//! of a failed program.

use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::Meter;

/// Maximum length of a printed line, in bytes. The rest of the line is dropped.
const LINE: usize = 1000;
/// Number of last lines that the error of a failed program repeats.
const LAST_LINES: usize = 5;

/// The last lines that a program printed.
#[derive(Debug, Default)]
pub struct LastLines(Mutex<Vec<String>>);

impl LastLines {
    /// Returns the lines as a single line, separated by ` / `.
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

/// Sends every line to the log, and keeps the last lines for an error.
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
