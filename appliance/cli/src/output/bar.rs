//! Progress of the current operation: one updated line on a terminal, else a line for each 10 %.

use std::io::Write as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use status::progress::Progress;

use crate::error::Error;
use crate::output::Printer;

/// Bytes between two printed lines if the total is unknown.
const STEP_BYTES: u64 = 256 << 20;

/// Progress display on standard error, which does not mix with lines on standard output.
pub struct Bar {
    bar: Option<ProgressBar>,
    steps: Steps,
}

impl Bar {
    /// Creates the display: one updated line if `live`, else separate lines.
    pub fn new(live: bool) -> Bar {
        let bar = live.then(|| {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(ProgressStyle::with_template("{wide_msg}").expect("it is a template"))
        });
        Bar { bar, steps: Steps::default() }
    }

    /// Shows the progress on the terminal.
    pub fn show(&mut self, progress: &Progress) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("{}  {}", gauge(progress), progress.line())),
            None => {
                if self.steps.is_due(progress) {
                    // A closed standard error must not stop the work.
                    let _ = writeln!(std::io::stderr().lock(), "{}", progress.line());
                }
            }
        }
    }

    /// Shows the reason of a wait; without a terminal, on a separate line.
    pub fn note(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => {
                let _ = writeln!(std::io::stderr().lock(), "{text}");
            }
        }
    }

    /// Prints a line of the result above the progress line.
    pub fn line(&self, printer: &Printer, line: &str) -> Result<(), Error> {
        match &self.bar {
            Some(bar) => bar.suspend(|| printer.line(line)),
            None => printer.line(line),
        }
    }

    /// Removes the progress line.
    pub fn clear(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns a bar of ten cells; empty if the total is unknown.
fn gauge(progress: &Progress) -> String {
    let Some(percent) = progress.percent() else { return String::new() };
    let full = usize::from(percent) / 10;
    format!("{}{}", "█".repeat(full), "░".repeat(10 - full))
}

/// State that decides if a progress line must be printed.
#[derive(Default)]
struct Steps {
    action: String,
    step: Option<u64>,
}

impl Steps {
    fn is_due(&mut self, progress: &Progress) -> bool {
        let step = match progress.percent() {
            Some(percent) => u64::from(percent) / 10,
            None => progress.bytes_done / STEP_BYTES,
        };
        if self.action != progress.action {
            self.action.clone_from(&progress.action);
            self.step = None;
        }
        let due = self.step != Some(step);
        self.step = Some(step);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Steps, gauge};

    fn at(action: &str, done: u64) -> Progress {
        let (action, message) = (action.to_owned(), String::new());
        Progress { action, message, bytes_done: done, bytes_total: 100, millis: 1 }
    }

    #[test]
    fn a_line_every_tenth() {
        let mut steps = Steps::default();
        let due = |steps: &mut Steps, action| {
            (0..=100).filter(|done| steps.is_due(&at(action, *done))).collect::<Vec<_>>()
        };
        let tenths = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
        assert_eq!(due(&mut steps, "a"), tenths);
        assert_eq!(due(&mut steps, "b"), tenths);
        assert!(!steps.is_due(&at("b", 100)));
    }

    #[test]
    fn gauges_have_one_length() {
        for done in 0..=100 {
            assert_eq!(gauge(&at("a", done)).chars().count(), 10);
        }
        assert_eq!(gauge(&Progress::default()), "");
    }
}
