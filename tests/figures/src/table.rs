//! Figures compared with those of peers, with goals.

/// Factor by which a goal may be missed before the run fails: shared machines are noisy.
const SLACK: f64 = 1.3;

/// One figure: our value, the best peer's value, and the goal.
#[derive(Debug, Clone)]
struct Line {
    ours: f64,
    peer: f64,
    goal: Goal,
}

/// Goal of a figure, as the ratio of ours to the peer's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// More is better; minimum ratio.
    AtLeast(f64),
    /// Less is better; maximum ratio.
    AtMost(f64),
    /// The figure has no goal, and is only printed.
    None,
}

/// All figures of a run.
#[derive(Debug, Default)]
pub struct Table {
    lines: Vec<Line>,
}

impl Table {
    /// Adds a figure, and prints it. `beside` is the name and the value of the peer.
    pub fn add(&mut self, what: &str, ours: f64, beside: (&'static str, f64), goal: Goal) {
        let (peer_name, peer) = beside;
        if self.lines.is_empty() {
            let ratio = "ratio";
            println!("{:44}{:>10}{:>10}  {:14}{ratio:>7}  goal", "", "tinbox", "peer", "who");
        }
        let line = Line { ours, peer, goal };
        let verdict = match goal {
            Goal::AtLeast(least) => format!("≥ {}: {}", short(least), line.verdict()),
            Goal::AtMost(most) => format!("≤ {}: {}", short(most), line.verdict()),
            Goal::None => String::new(),
        };
        let ratio = line.ratio();
        println!("{what:44}{ours:>10.3}{peer:>10.3}  {peer_name:14}{ratio:>6.2}x  {verdict}");
        self.lines.push(line);
    }

    /// Prints the number of met goals; returns the number of goals missed by more than the slack.
    pub fn sum_up(&self) -> usize {
        let wanted = self.lines.iter().filter(|line| line.goal != Goal::None);
        let met = wanted.clone().filter(|line| line.is_met(1.0)).count();
        let missed = wanted.clone().filter(|line| !line.is_met(SLACK)).count();
        println!("{met} of {} goals met, {missed} missed beyond slack", wanted.count());
        missed
    }
}

/// Rounds a computed goal to two decimals for printing.
fn short(goal: f64) -> f64 {
    (goal * 100.0).round() / 100.0
}

impl Line {
    fn ratio(&self) -> f64 {
        self.ours / self.peer
    }

    fn is_met(&self, slack: f64) -> bool {
        match self.goal {
            Goal::AtLeast(least) => self.ratio() * slack >= least,
            Goal::AtMost(most) => self.ratio() <= most * slack,
            Goal::None => true,
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.is_met(1.0), self.is_met(SLACK)) {
            (true, _) => "met",
            (false, true) => "missed within slack",
            (false, false) => "MISSED",
        }
    }
}

/// Median; of an even number of figures the lower of the two middle ones, of no figures NaN.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::{Goal, Line, Table, median};

    fn line(ours: f64, goal: Goal) -> Line {
        Line { ours, peer: 10.0, goal }
    }

    #[test]
    fn a_goal_is_met_missed_a_little_or_missed() {
        assert_eq!(line(9.0, Goal::AtLeast(0.9)).verdict(), "met");
        assert_eq!(line(8.0, Goal::AtLeast(0.9)).verdict(), "missed within slack");
        assert_eq!(line(6.0, Goal::AtLeast(0.9)).verdict(), "MISSED");
        assert_eq!(line(5.0, Goal::AtMost(0.5)).verdict(), "met");
        assert_eq!(line(6.0, Goal::AtMost(0.5)).verdict(), "missed within slack");
        assert_eq!(line(7.0, Goal::AtMost(0.5)).verdict(), "MISSED");
        assert_eq!(line(f64::NAN, Goal::AtMost(0.5)).verdict(), "MISSED");
        let mut table = Table::default();
        table.add("a", 7.0, ("peer", 10.0), Goal::AtMost(0.5));
        table.add("b", 7.0, ("peer", 10.0), Goal::None);
        assert_eq!(table.sum_up(), 1);
    }

    #[test]
    fn the_median_is_no_outlier() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }
}
