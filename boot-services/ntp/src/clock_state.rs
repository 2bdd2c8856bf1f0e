//! Quality of this machine's clock, and the values that the NTP server announces for it.

use crate::Timestamp;

/// Announced stratum of a clock without a recent source: higher than that of all synchronized
/// clocks, so that no client prefers it (chrony's `local stratum 10`).
const ALONE: u8 = 10;
/// Maximum drift of a clock after it was set, in parts per million (RFC 5905's PHI).
const DRIFT_PPM: u64 = 15;
/// Maximum stratum of a synchronized clock (RFC 5905 section 7.3).
const STRATUM_MAX: u8 = 15;
/// Maximum root dispersion that a free-running clock announces, in 2^-16 s: 1 s. chrony follows no
/// server with a bound above 3 s, ntpd none above 1.5 s; the stratum shows the quality.
const ALONE_MAX: u32 = 1 << 16;

/// Values from the answer of the server from which the clock was set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Stratum of the server.
    pub stratum: u8,
    /// Leap second that the server announces: 0 for none, 1 for an added second, 2 for a removed
    /// one.
    pub leap: u8,
    /// Reference id of the server: its address in the form of the protocol.
    pub id: [u8; 4],
    /// Time at which the clock was set.
    pub at: Timestamp,
    /// Root delay: round-trip delay to the reference clock, in 2^-16 s.
    pub root_delay: u32,
    /// Root dispersion: error bound of the clock, in 2^-16 s.
    pub root_dispersion: u32,
}

/// Quality of the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClockState {
    /// The clock was never set, and has no battery.
    #[default]
    Unset,
    /// The clock runs freely, on its battery or because its source has not answered for long.
    /// `None`: it was never set from a server.
    Holdover(Option<ServerReport>),
    /// The clock is synchronized to a server.
    Synced(ServerReport),
}

/// Values that the NTP server announces for this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) stratum: u8,
    pub(crate) leap: u8,
    pub(crate) id: [u8; 4],
    pub(crate) reference: Timestamp,
    pub(crate) root_delay: u32,
    pub(crate) root_dispersion: u32,
}

impl ClockState {
    /// Returns the announcement at `now`; `None` if there is no valid time to serve.
    pub(crate) fn announcement(&self, now: Timestamp) -> Option<Announcement> {
        match self {
            Self::Unset => None,
            Self::Synced(report) => {
                let stratum = report.stratum.saturating_add(1);
                (stratum <= STRATUM_MAX).then(|| of(report, now, stratum))
            }
            Self::Holdover(Some(report)) => {
                let announcement = of(report, now, ALONE.max(report.stratum));
                let root_delay = announcement.root_delay.min(ALONE_MAX);
                let root_dispersion = announcement.root_dispersion.min(ALONE_MAX);
                // The announcement is of the day on which it was received.
                Some(Announcement { leap: 0, root_delay, root_dispersion, ..announcement })
            }
            Self::Holdover(None) => Some(Announcement {
                stratum: ALONE,
                leap: 0,
                id: *b"LOCL",
                reference: now,
                root_delay: 0,
                root_dispersion: ALONE_MAX,
            }),
        }
    }
}

fn of(report: &ServerReport, now: Timestamp, stratum: u8) -> Announcement {
    let seconds = now.since(report.at).abs().as_secs();
    let drifted = seconds.saturating_mul(DRIFT_PPM << 16) / 1_000_000;
    let drifted = u32::try_from(drifted).unwrap_or(u32::MAX);
    Announcement {
        stratum,
        leap: report.leap,
        id: report.id,
        reference: report.at,
        root_delay: report.root_delay,
        root_dispersion: report.root_dispersion.saturating_add(drifted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: ServerReport = ServerReport {
        stratum: 2,
        leap: 0,
        id: [10, 0, 0, 1],
        at: Timestamp(0),
        root_delay: 7,
        root_dispersion: 9,
    };

    #[test]
    fn a_guess_is_not_told() {
        assert_eq!(ClockState::Unset.announcement(Timestamp(0)), None);
        let far = ClockState::Synced(ServerReport { stratum: 15, ..REPORT });
        assert_eq!(far.announcement(Timestamp(0)), None, "no client may follow it");
    }

    #[test]
    fn a_clock_is_a_step_behind_who_told_it_and_drifts() {
        let announced = |state: ClockState, seconds: u64| {
            let announcement = state.announcement(Timestamp(seconds << 32)).expect("a time");
            (announcement.stratum, announcement.root_dispersion)
        };
        assert_eq!(announced(ClockState::Synced(REPORT), 0), (3, 9));
        // 15 ppm of 100,000 s is 1.5 s.
        assert_eq!(announced(ClockState::Synced(REPORT), 100_000), (3, 9 + 98_304));
        assert_eq!(announced(ClockState::Holdover(Some(REPORT)), 0), (10, 9));
        assert_eq!(announced(ClockState::Holdover(Some(REPORT)), 1_000_000), (10, ALONE_MAX));
        assert_eq!(announced(ClockState::Holdover(None), 7), (10, ALONE_MAX));
    }
}
