//! Limit on audit records of requests with an invalid credential.

use std::time::Duration;

/// Maximum audit records per minute of requests with an invalid credential. Every client can send
/// such requests; without a limit, their records would displace others in the size-limited log.
pub const REFUSED_A_MINUTE: u32 = 30;
const MINUTE: Duration = Duration::from_secs(60);

/// Counter of the records of refused requests in the current minute.
#[derive(Debug, Default)]
pub struct RefusedRecords {
    began: Duration,
    kept: u32,
    omitted: u64,
}

impl RefusedRecords {
    /// Counts a refused request at the monotonic time `now`. Returns `None` if the request gets no
    /// record; otherwise the number of refused requests without a record since the last record.
    pub fn admit(&mut self, now: Duration) -> Option<u64> {
        if now.saturating_sub(self.began) >= MINUTE {
            (self.began, self.kept) = (now, 0);
        }
        if self.kept >= REFUSED_A_MINUTE {
            self.omitted = self.omitted.saturating_add(1);
            return None;
        }
        self.kept += 1;
        Some(std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{REFUSED_A_MINUTE, RefusedRecords};

    #[test]
    fn refused_clients_do_not_push_other_records_out_and_are_counted() {
        let mut records = RefusedRecords::default();
        let at = |seconds: u64| Duration::from_secs(1000 + seconds);
        let kept = (0..10_000).filter(|_| records.admit(at(0)).is_some()).count();
        assert_eq!(kept, REFUSED_A_MINUTE as usize);
        let omitted = 10_000 - u64::from(REFUSED_A_MINUTE);
        assert_eq!(records.admit(at(61)), Some(omitted));
        assert_eq!(records.admit(at(62)), Some(0));
    }
}
