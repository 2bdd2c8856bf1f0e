//! Serial console of a firmware box: the status as text, for a user without a screen.
//!
//! The claim code is never written to the log, because log entries are stored and forwarded.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use panel::serial::Serial;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::ViewSource;

/// Interval of checks for changes.
const LOOK: Duration = Duration::from_secs(3);

/// Writes status changes until shutdown. Standard output is the console that process 1 opened.
pub async fn run(source: Arc<dyn ViewSource>, shutdown: CancellationToken) {
    // A terminal with flow control can block the writer: no other part of the box may wait for it.
    let (lines, mut waiting) = mpsc::channel::<Vec<String>>(1);
    std::thread::spawn(move || {
        while let Some(lines) = waiting.blocking_recv() {
            // A console that is gone returns only after a restart.
            let _ = write(&lines);
        }
    });
    let saying = async {
        let mut serial = Serial::default();
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            // Changes in the meantime are written when the line is free.
            let Ok(place) = lines.reserve().await else { break };
            place.send(serial.lines(&source.view().await));
        }
        std::future::pending::<()>().await;
    };
    shutdown.run_until_cancelled(saying).await;
}

fn write(lines: &[String]) -> io::Result<()> {
    let mut console = io::stdout().lock();
    for line in lines {
        writeln!(console, "{line}")?;
    }
    console.flush()
}
