//! Conditions for the restart after an update: consent, allowed hours, no running workflow.

use std::sync::Arc;
use std::time::Duration;

use config::Restart;
use jiff::Timestamp;
use status::view::UpdateState;
use tokio_util::sync::CancellationToken;

use super::{UpdateError, Updates, restart};
use crate::settings::LiveSettings;

/// Interval between two checks of the conditions.
const LOOK: Duration = Duration::from_secs(2);

/// Condition for which the restart waits.
#[derive(Debug, PartialEq, Eq)]
enum RestartWait {
    /// All conditions are met.
    Over,
    /// Running workflows, by name.
    Machines(Vec<String>),
    /// Missing consent, or the beginning of the allowed hours, as a phrase.
    Until(String),
}

/// Evaluates the conditions. `at_once` skips all conditions; `agreed` skips consent and hours.
fn waits(
    (at_once, agreed): (bool, bool),
    machines: Vec<String>,
    live: &LiveSettings,
    now: Timestamp,
) -> RestartWait {
    if at_once {
        return RestartWait::Over;
    }
    if !agreed && live.restart == Restart::Ask {
        return RestartWait::Until("until a person runs `tinbox update restart`".to_owned());
    }
    let here = now.to_zoned(live.zone.clone());
    if let Some(hours) = live.hours.filter(|hours| !agreed && !hours.contain(&here)) {
        let zone = live.zone.to_offset_info(now);
        return RestartWait::Until(format!("until {} {}", hours.begin(), zone.abbreviation()));
    }
    if machines.is_empty() { RestartWait::Over } else { RestartWait::Machines(machines) }
}

impl Updates {
    /// Restarts the box after an update was installed and the conditions are met.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let waiting = async {
            self.installed.notified().await;
            while !self.may_restart() {
                tokio::time::sleep(LOOK).await;
            }
            restart();
            std::future::pending::<()>().await;
        };
        shutdown.run_until_cancelled(waiting).await;
    }

    /// Returns true if all conditions are met. The status shows the condition that is not met.
    fn may_restart(&self) -> bool {
        let consent = {
            let now = self.now();
            (now.at_once, now.agreed)
        };
        let machines = self.runs.under_way().into_iter().map(|key| key.name).collect();
        let waits = waits(consent, machines, &self.live.borrow(), self.clock.now());
        let over = waits == RestartWait::Over;
        let (state, names, reason) = match waits {
            RestartWait::Over => (UpdateState::Restarting, Vec::new(), String::new()),
            RestartWait::Machines(names) => (UpdateState::Waiting, names, String::new()),
            RestartWait::Until(phrase) => (UpdateState::Scheduled, Vec::new(), phrase),
        };
        self.step(|update| {
            update.state = state;
            update.waits_for = names.into_iter().map(Into::into).collect();
            update.reason = reason.into();
        });
        over
    }

    /// Agrees to the restart for the installed update, which then waits neither for the allowed
    /// hours nor for consent. With `at_once`, the restart does not wait for workflows.
    ///
    /// # Errors
    /// No installed update waits for a restart.
    pub fn agree(&self, at_once: bool) -> Result<(), UpdateError> {
        let mut now = self.now();
        use UpdateState::{Installed, Scheduled, Waiting};
        let ready = |state| matches!(state, Installed | Scheduled | Waiting);
        if !now.update.as_ref().is_some_and(|update| ready(update.state)) {
            let hint = Some("`tinbox update status` shows the state of the update");
            return Err(UpdateError::unwanted("no update waits for a restart", hint));
        }
        now.agreed = true;
        now.at_once |= at_once;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use config::{Hours, zone};
    use jiff::tz::TimeZone;

    use super::{LiveSettings, Restart, RestartWait, waits};

    #[test]
    fn a_restart_waits_for_a_word_then_its_hours_then_machines() {
        let berlin = zone("Europe/Berlin").unwrap();
        let live = |restart, hours: &str, zone: &TimeZone| LiveSettings {
            zone: zone.clone(),
            hours: Hours::parse(hours),
            restart,
            hold: Vec::new(),
        };
        let (night, day) = ("2026-01-10T01:30:00Z", "2026-01-10T12:00:00Z");
        let until = |text: &str| RestartWait::Until(text.to_owned());
        let word = || until("until a person runs `tinbox update restart`");
        let nuc = || vec!["nuc1".to_owned()];
        let (auto, ask) = (Restart::Auto, Restart::Ask);
        let cases = [
            (auto, "", day, (false, false), vec![], RestartWait::Over),
            (auto, "", day, (false, false), nuc(), RestartWait::Machines(nuc())),
            (auto, "2:00-5:00", day, (false, false), vec![], until("until 02:00 CET")),
            (auto, "2:00-5:00", night, (false, false), vec![], RestartWait::Over),
            (auto, "2:00-5:00", night, (false, false), nuc(), RestartWait::Machines(nuc())),
            (auto, "2:00-5:00", day, (false, true), nuc(), RestartWait::Machines(nuc())),
            (auto, "2:00-5:00", day, (true, true), nuc(), RestartWait::Over),
            (ask, "", day, (false, false), vec![], word()),
            (ask, "2:00-5:00", night, (false, false), vec![], word()),
            (ask, "2:00-5:00", day, (false, true), vec![], RestartWait::Over),
            (ask, "", day, (true, false), nuc(), RestartWait::Over),
        ];
        for (restart, hours, now, consent, machines, want) in cases {
            let live = live(restart, hours, &berlin);
            let found = waits(consent, machines, &live, now.parse().unwrap());
            assert_eq!(found, want, "{restart:?} {hours:?} {now} {consent:?}");
        }
        let live = live(auto, "2:00-5:00", &TimeZone::UTC);
        assert_eq!(
            waits((false, false), vec![], &live, night.parse().unwrap()),
            until("until 02:00 UTC")
        );
    }
}
