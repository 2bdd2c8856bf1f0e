//! The serial console of a box that is firmware: who has no screen on it reads there what to do.
//!
//! The code is written here and never to the log: what is logged is kept and passed on.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use panel::serial::Serial;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::ViewSource;

/// Between two looks at what changed.
const LOOK: Duration = Duration::from_secs(3);

/// Writes what changed for as long as the box runs. Standard output is the console: process 1 made
/// it so.
pub async fn run(source: Arc<dyn ViewSource>, shutdown: CancellationToken) {
    // A terminal that holds its line back stops the writer: nothing else of the box may wait for
    // it.
    let (lines, mut waiting) = mpsc::channel::<Vec<String>>(1);
    std::thread::spawn(move || {
        while let Some(lines) = waiting.blocking_recv() {
            // A console that is gone comes back with a restart only.
            let _ = write(&lines);
        }
    });
    let saying = async {
        let mut serial = Serial::default();
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            // What changes meanwhile is said when the line is free.
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
