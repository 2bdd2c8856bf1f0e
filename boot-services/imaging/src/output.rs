//! What an action's programs print: every line to the log, the last to whoever asks what went
//! wrong.

use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::Meter;

/// Longest line of a program's that is told; the rest of it is left out.
const LINE: usize = 1000;
/// Lines that a failure repeats, and the least that reading one takes of memory.
const LAST_LINES: usize = 5;

/// The last lines of a program.
#[derive(Debug, Default)]
pub struct LastLines(Mutex<Vec<String>>);

impl LastLines {
    /// In one line.
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

/// Every line to the log and, the last of them, to whoever asks what went wrong.
pub async fn tell(
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
