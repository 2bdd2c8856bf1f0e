//! The flaky tests of this machine's last runs. A test that passed only at its retry is reported;
//! the third time in [`RUNS`] runs it counts as failed.

/// Number of runs that the ledger covers.
pub const RUNS: usize = 20;
/// Number of flaky runs of one test, within [`RUNS`], that count as a failure.
pub const LIMIT: usize = 3;

/// The last runs, oldest first: a commit and its flaky tests, one run a line, separated by tabs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    runs: Vec<Vec<String>>,
}

impl Ledger {
    /// Reads the ledger's text; an empty text is an empty ledger.
    pub fn read(text: &str) -> Self {
        let runs = text.lines().filter(|line| !line.is_empty());
        Self { runs: runs.map(|line| line.split('\t').map(str::to_owned).collect()).collect() }
    }

    /// Adds a run and drops the runs beyond [`RUNS`].
    pub fn add(&mut self, commit: &str, flaky: impl IntoIterator<Item = String>) {
        self.runs.push(std::iter::once(commit.to_owned()).chain(flaky).collect());
        let excess = self.runs.len().saturating_sub(RUNS);
        self.runs.drain(..excess);
    }

    /// Number of the last runs in which a test was flaky.
    pub fn count(&self, test: &str) -> usize {
        self.runs.iter().filter(|run| run.iter().skip(1).any(|one| one == test)).count()
    }

    /// Text to store for the next run.
    pub fn text(&self) -> String {
        self.runs.iter().map(|run| run.join("\t") + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_time_is_counted() {
        let mut ledger = Ledger::default();
        for flaky in [&["a"][..], &[], &["a", "b"], &["a"]] {
            ledger.add("c0ffee", flaky.iter().map(|name| (*name).to_owned()));
        }
        assert_eq!((ledger.count("a"), ledger.count("b"), ledger.count("c0ffee")), (3, 1, 0));
        assert_eq!(Ledger::read(&ledger.text()), ledger);
    }

    #[test]
    fn old_runs_are_forgotten() {
        let mut ledger = Ledger::read("");
        ledger.add("1", ["a".to_owned()]);
        for _ in 0..RUNS - 1 {
            ledger.add("2", []);
        }
        assert_eq!(ledger.count("a"), 1);
        ledger.add("3", []);
        assert_eq!(ledger.count("a"), 0);
    }
}
