//! Process 1's monitor of the supervisor's heartbeat: the deadline of the next heartbeat, and the
//! reason that the owner sees after a missed deadline.

use std::time::{Duration, Instant};

use crate::liveness::heartbeat::HeartbeatMessage;

/// Maximum time without a heartbeat.
const SILENCE: Duration = Duration::from_secs(60);
/// Maximum time until the first heartbeat. At its start, the supervisor opens the stored data and
/// waits for NICs.
const START: Duration = Duration::from_secs(120);

/// Heartbeat state of one run of the supervisor.
#[derive(Debug)]
pub struct SupervisorMonitor {
    deadline: Instant,
    silent_since: Instant,
    stuck: Option<(String, Instant)>,
}

impl SupervisorMonitor {
    /// Begins to monitor a supervisor that was started at `now`.
    pub fn new(now: Instant) -> Self {
        Self { deadline: now + START, silent_since: now, stuck: None }
    }

    /// Records the message `message` received at `now`. Only a heartbeat extends the deadline.
    pub fn receive(&mut self, message: HeartbeatMessage, now: Instant) {
        match message {
            HeartbeatMessage::Beat => {
                *self = Self { deadline: now + SILENCE, silent_since: now, stuck: None };
            }
            HeartbeatMessage::Stuck { what, seconds } => {
                let since = now.checked_sub(Duration::from_secs(seconds)).unwrap_or(now);
                self.stuck = Some((what, since));
            }
        }
    }

    /// Returns the time by which the next heartbeat must arrive.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the reason why the supervisor counts as hanging, as a phrase for the owner.
    pub fn sentence(&self, now: Instant) -> String {
        let seconds = |since| now.duration_since(since).as_secs();
        match &self.stuck {
            Some((what, since)) => {
                format!("the supervisor hangs: {what} stuck {} s", seconds(*since))
            }
            None => {
                format!("the supervisor hangs: no heartbeat for {} s", seconds(self.silent_since))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{SILENCE, START, SupervisorMonitor};
    use crate::liveness::heartbeat::HeartbeatMessage;

    /// Test case: messages by seconds since the start, the expected deadline in seconds, and the
    /// expected reason.
    type Row = (&'static [(u64, Option<(&'static str, u64)>)], u64, &'static str);

    #[test]
    fn a_silence_ends_it_and_the_last_words_say_why() {
        let table: [Row; 5] = [
            (&[], 120, "no heartbeat for 120 s"),
            (&[(30, None)], 90, "no heartbeat for 60 s"),
            (&[(30, None), (100, None)], 160, "no heartbeat for 60 s"),
            // A loop that is stuck from the start gets the longer time.
            (&[(40, Some(("the API", 25)))], 120, "the API stuck 105 s"),
            // A loop that recovered is not the reason.
            (&[(50, Some(("the API", 25))), (55, None)], 115, "no heartbeat for 60 s"),
        ];
        assert_eq!((START.as_secs(), SILENCE.as_secs()), (120, 60));
        for (messages, deadline, why) in table {
            let began = Instant::now();
            let at = |seconds| began + Duration::from_secs(seconds);
            let mut monitor = SupervisorMonitor::new(began);
            for (after, stuck) in messages {
                let message = stuck.map_or(HeartbeatMessage::Beat, |(what, seconds)| {
                    HeartbeatMessage::Stuck { what: what.to_owned(), seconds }
                });
                monitor.receive(message, at(*after));
            }
            assert_eq!(monitor.deadline(), at(deadline), "{messages:?}");
            let sentence = monitor.sentence(at(deadline));
            assert_eq!(sentence, format!("the supervisor hangs: {why}"), "{messages:?}");
        }
    }
}
