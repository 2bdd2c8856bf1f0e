//! CPU time of each suite, from the lines that `tinbox-test-runner` appended: suite and
//! milliseconds, separated by a tab.

use std::collections::BTreeMap;

/// Time and number of one suite's tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time of the tests and of all processes that they started and reaped, in milliseconds.
    pub milliseconds: u64,
    /// Number of test attempts, with retries.
    pub tests: u64,
}

/// One line of the log.
pub fn line(suite: &str, milliseconds: u64) -> String {
    format!("{suite}\t{milliseconds}\n")
}

/// Sums the CPU time of the log by suite, the largest first. An incomplete line of a killed runner
/// is skipped.
pub fn sum(log: &str) -> Vec<(String, Spent)> {
    let mut suites: BTreeMap<&str, Spent> = BTreeMap::new();
    for line in log.lines() {
        let Some((suite, time)) = line.split_once('\t') else { continue };
        let Ok(milliseconds) = time.parse::<u64>() else { continue };
        let spent = suites.entry(suite).or_default();
        spent.milliseconds += milliseconds;
        spent.tests += 1;
    }
    let mut sums: Vec<_> =
        suites.into_iter().map(|(suite, spent)| (suite.to_owned(), spent)).collect();
    sums.sort_by(|a, b| b.1.milliseconds.cmp(&a.1.milliseconds).then_with(|| a.0.cmp(&b.0)));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_summed_and_sorted() {
        let log = [line("dhcp", 40), line("firmware::firmware", 900), line("dhcp", 60)].concat();
        let sums = sum(&(log + "firmware::firm"));
        assert_eq!(
            sums,
            [
                ("firmware::firmware".to_owned(), Spent { milliseconds: 900, tests: 1 }),
                ("dhcp".to_owned(), Spent { milliseconds: 100, tests: 2 }),
            ]
        );
    }
}
