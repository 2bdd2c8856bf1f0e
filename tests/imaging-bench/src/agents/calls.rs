//! Durations of agent calls, by kind.

use std::collections::BTreeMap;
use std::time::Duration;

/// RPC of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Hello, including the connection and its TLS handshake.
    Hello,
    /// GetAction that returned an action; without an action, the box deliberately delays the
    /// answer.
    Work,
    /// ReportActionStatus; its answer means that the report is durable.
    Report,
    /// ReportProgress, which is not stored durably.
    Progress,
}

impl Call {
    pub const ALL: [Self; 4] = [Self::Hello, Self::Work, Self::Report, Self::Progress];

    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "Hello, connecting",
            Self::Work => "GetAction",
            Self::Report => "ReportActionStatus",
            Self::Progress => "ReportProgress",
        }
    }
}

/// Durations of calls, in milliseconds.
#[derive(Debug, Default)]
pub struct Calls(BTreeMap<Call, Vec<f64>>);

/// Count and percentiles of durations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub count: usize,
    pub p50: f64,
    pub p99: f64,
    pub most: f64,
}

impl Calls {
    pub fn add(&mut self, call: Call, took: Duration) {
        self.0.entry(call).or_default().push(took.as_secs_f64() * 1e3);
    }

    pub fn merge(&mut self, others: Self) {
        for (call, times) in others.0 {
            self.0.entry(call).or_default().extend(times);
        }
    }

    /// Percentiles of one kind of call.
    pub fn of(&self, call: Call) -> Spread {
        spread(self.0.get(&call).cloned().unwrap_or_default())
    }

    /// Percentiles of all kinds together.
    pub fn all(&self) -> Spread {
        spread(self.0.values().flatten().copied().collect())
    }
}

/// Percentiles of any durations, by nearest rank.
pub fn spread(mut times: Vec<f64>) -> Spread {
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100);
        times.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    };
    Spread { count: times.len(), p50: at(50), p99: at(99), most: at(100) }
}

#[cfg(test)]
mod tests {
    use super::{Spread, spread};

    #[test]
    fn percentiles_are_times_that_were_taken() {
        let times = (1..=200).rev().map(f64::from).collect();
        assert_eq!(spread(times), Spread { count: 200, p50: 100.0, p99: 198.0, most: 200.0 });
        assert_eq!(spread(vec![7.0]), Spread { count: 1, p50: 7.0, p99: 7.0, most: 7.0 });
        assert!(spread(Vec::new()).p99.is_nan());
    }
}
