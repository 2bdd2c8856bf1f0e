//! Difference of the clocks of a management cluster and of the box. Pure functions.

use jiff::{SignedDuration, Timestamp};

/// Differences from which the text changes, the largest first. The text must not change with each
/// second, because each change is a write of the status.
///
/// Cluster API creates certificates that are valid from five minutes before their creation
/// (`util/secret/certificates.go`). Above that, a machine with the time of the box refuses them.
const STEPS: [(SignedDuration, &str); 4] = [
    (SignedDuration::from_hours(365 * 24), "a year"),
    (SignedDuration::from_hours(24), "a day"),
    (SignedDuration::from_hours(1), "an hour"),
    (SignedDuration::from_mins(5), "five minutes"),
];

/// Returns a sentence about a difference of the clocks of a management cluster and of the box;
/// `None` if it does no harm.
pub fn difference(theirs: Timestamp, own: Timestamp) -> Option<String> {
    let skew = theirs.duration_since(own);
    let (_, amount) = STEPS.iter().find(|(least, _)| skew.abs() >= *least)?;
    let direction = if skew.is_negative() { "behind" } else { "ahead of" };
    Some(format!(
        "the clock of the management cluster is more than {amount} {direction} that of the box; \
         certificates and tokens of one may be invalid for the other: set both clocks by NTP"
    ))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::difference;

    #[test]
    fn a_difference_that_invalidates_certificates_is_reported_in_steps() {
        let hour = 3600;
        for (theirs, message) in [
            (0, None),
            (299, None),
            (-299, None),
            (300, Some("is more than five minutes ahead of that of the box; certificates")),
            (-300, Some("more than five minutes behind")),
            (hour - 1, Some("five minutes ahead")),
            (hour, Some("an hour ahead")),
            (-30 * hour, Some("a day behind")),
            (10 * 365 * 24 * hour, Some("a year ahead")),
        ] {
            let (own, other) = (1_000_000_000, 1_000_000_000 + theirs);
            let at = |second| Timestamp::from_second(second).unwrap();
            let text = difference(at(other), at(own));
            assert_eq!(text.is_some(), message.is_some(), "{theirs}");
            let text = text.unwrap_or_default();
            assert!(text.contains(message.unwrap_or_default()), "{theirs}: {text}");
        }
    }
}
