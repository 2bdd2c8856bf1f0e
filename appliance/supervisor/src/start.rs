//! Steps of the supervisor's start, for the progress display (FB-6).

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use status::view::BootStep;

/// Step of the supervisor's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Starts the certificates and the API.
    Api,
    /// Reads all stored objects.
    Objects,
    /// Opens the boot files for machines.
    BootFiles,
    /// Starts DHCP, agents and pages.
    Services,
}

/// Steps, each with its name and its usual duration in milliseconds on the smallest supported box.
const STEPS: [(Step, &str, u64); 4] = [
    (Step::Api, "starting the API", 1_500),
    (Step::Objects, "reading what is stored", 3_000),
    (Step::BootFiles, "opening the boot files", 6_000),
    (Step::Services, "starting the services", 2_000),
];

/// Progress of the supervisor's start.
#[derive(Default)]
pub struct Start(Mutex<StepTimes>);

/// Start time of each step, and a flag for the end of the last step.
#[derive(Default)]
struct StepTimes {
    steps: Vec<Instant>,
    done: bool,
}

impl Start {
    /// Begins `step`, and ends the steps before it.
    pub fn begin(&self, step: Step) {
        let mut began = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = STEPS.iter().position(|(known, ..)| *known == step).unwrap_or(0);
        let now = Instant::now();
        began.steps.resize(at, now);
        began.steps.push(now);
    }

    /// Marks the start as complete: all services run.
    pub fn done(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).done = true;
    }

    /// Returns the steps with their times, or an empty list after the start is complete.
    pub fn steps(&self) -> Vec<BootStep> {
        let began = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if began.done { Vec::new() } else { steps(&began.steps, Instant::now()) }
    }
}

fn steps(began: &[Instant], now: Instant) -> Vec<BootStep> {
    let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let step = |(at, (_, name, usual_millis)): (usize, &(Step, &str, u64))| {
        let end = began.get(at + 1);
        let took = began.get(at).map(|from| millis(*end.unwrap_or(&now) - *from));
        let (name, usual_millis) = ((*name).into(), *usual_millis);
        BootStep { name, usual_millis, took_millis: took, done: end.is_some() }
    };
    STEPS.iter().enumerate().map(step).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use status::view::{StatusView, headline};

    use super::{Start, Step, steps};

    #[test]
    fn a_start_says_what_it_is_at() {
        let now = Instant::now();
        let began = [9, 8].map(|ago| now - Duration::from_secs(ago));
        let view = StatusView { boot: steps(&began, now), ..StatusView::default() };
        assert_eq!(view.boot[0].took_millis, Some(1_000));
        assert!(view.boot[0].done && !view.boot[1].done && view.boot[2].took_millis.is_none());
        let expected =
            "Starting: taking longer than usual (usually 3 s, now 8 s): reading what is stored";
        assert_eq!(headline(&view).sentence(), expected);
    }

    #[test]
    fn a_start_ends() {
        let start = Start::default();
        start.begin(Step::Api);
        start.begin(Step::BootFiles);
        let names: Vec<bool> = start.steps().iter().map(|step| step.done).collect();
        assert_eq!(names, [true, true, false, false]);
        start.done();
        assert!(start.steps().is_empty());
    }
}
