//! Progress of a machine that boots the agent.

use jiff::Timestamp;

use super::{EventRecord, Line};
use crate::boot_event::{Stage, reason};

/// Returns the latest boot step, if it was recorded at `since` or later and the agent has not
/// connected yet; `None` if no boot is in progress.
pub fn booting(lines: &[Line], since: Timestamp) -> Option<&'static str> {
    let is_report = |line: &&Line| line.kind == "Hardware" && !line.warning;
    let last = lines.iter().rev().find(is_report).filter(|line| line.at >= since)?;
    let is_system = last.sentence.ends_with(&format!("({})", Stage::System.word()));
    match last.reason.as_str() {
        reason::POWERED_ON => Some("starts"),
        reason::ASKED_FOR_ADDRESS if !is_system => Some("requests an address"),
        reason::GOT_ADDRESS if !is_system => Some("has its address"),
        reason::FETCHED_LOADER => Some("loads iPXE"),
        reason::FETCHED_SCRIPT => Some("loads the agent"),
        reason::FETCHED_KERNEL | reason::FETCHED_INITRD => Some("starts the agent"),
        _ => None,
    }
}

/// Counts the power-ons at `since` or later. The count begins again when an agent starts.
pub fn power_ons(records: &[EventRecord], since: Timestamp) -> usize {
    let mut recent = records.iter().filter(|record| record.at >= since).collect::<Vec<_>>();
    recent.sort_by_key(|record| (record.at, record.revision));
    recent.iter().fold(0, |count, record| match record.reason.as_str() {
        reason::POWERED_ON => count + 1,
        reason::AGENT_STARTED => 0,
        _ => count,
    })
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::booting;
    use crate::history::Line;

    fn line(second: i64, reason: &str, sentence: &str, warning: bool) -> Line {
        Line {
            offset_millis: 0,
            at: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second),
            reason: reason.to_owned(),
            sentence: sentence.to_owned(),
            warning,
            kind: "Hardware".to_owned(),
            name: "nuc1".to_owned(),
            revision: 0,
        }
    }

    #[test]
    fn on_the_way_or_not() {
        let since = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(10);
        let cases = [
            (12, "AskedForAddress", "requested an address (iPXE)", Some("requests an address")),
            (12, "AskedForAddress", "requested an address (operating system)", None),
            (
                12,
                "FetchedScript",
                "fetched the script that boots the agent",
                Some("loads the agent"),
            ),
            (9, "FetchedScript", "fetched the script that boots the agent", None),
            (12, "AgentStarted", "runs agent 0.1.0", None),
        ];
        for (second, reason, sentence, step) in cases {
            let refused = line(20, "Refused", "was refused work", true);
            let lines = [line(second, reason, sentence, false), refused];
            assert_eq!(booting(&lines, since), step, "{second} {sentence}");
        }
        assert_eq!(booting(&[], since), None);
    }
}
