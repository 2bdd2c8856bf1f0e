//! Reports of a suite: Ginkgo's JUnit file, or the output of Go's or Rust's tests.

use std::collections::BTreeMap;

/// Results of a suite.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Full names of the tests that passed.
    pub passed: Vec<String>,
    /// Full names of the tests that failed, and their output.
    pub failed: BTreeMap<String, String>,
}

impl Outcome {
    /// Reads Ginkgo's JUnit report: one element per test, with its attributes on the same line and
    /// its output in the lines after it.
    pub fn of_ginkgo(xml: &str) -> Self {
        let mut outcome = Self::default();
        for element in xml.split("<testcase ").skip(1) {
            let head = element.lines().next().unwrap_or_default();
            let name = attribute(head, "name");
            match attribute(head, "status").as_str() {
                "passed" if name.starts_with("[It]") => outcome.passed.push(name),
                "passed" | "skipped" | "pending" => {}
                _ => {
                    outcome.failed.insert(name, said(element));
                }
            }
        }
        outcome
    }

    /// Reads the output of Go's tests with `-test.v`: a line where the output of each test begins,
    /// and a line with its result. Of a test with subtests only the subtests are counted, unless
    /// the test failed although all its subtests passed.
    pub fn of_go(text: &str) -> Self {
        let mut ends = BTreeMap::new();
        let mut words: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut current = "";
        for line in text.lines() {
            let line = line.trim_start();
            if let Some(name) = GO_TURNS.iter().find_map(|turn| line.strip_prefix(turn)) {
                current = name.trim();
                ends.entry(current).or_insert(End::None);
            } else if let Some((end, name)) = go_end(line) {
                ends.insert(name, end);
            } else {
                words.entry(current).or_default().push(line);
            }
        }
        let mut outcome = Self::default();
        for (name, end) in &ends {
            let within = |other: &str| other.strip_prefix(name).is_some_and(|x| x.starts_with('/'));
            let mut inner = ends.iter().filter(|(other, _)| within(other)).map(|(_, end)| end);
            match end {
                End::Passed if inner.next().is_none() => outcome.passed.push((*name).to_owned()),
                End::Failed | End::None if !inner.any(|end| *end != End::Passed) => {
                    let said = words.get(name).map(|lines| first(lines.iter().copied()));
                    outcome.failed.insert((*name).to_owned(), said.unwrap_or_default());
                }
                _ => {}
            }
        }
        outcome
    }

    /// Adds the tests of another outcome.
    pub fn merge(&mut self, other: Self) {
        self.passed.extend(other.passed);
        self.failed.extend(other.failed);
    }

    /// Reads the output of Rust's tests: a line per test, and the output of all failed tests at the
    /// end.
    pub fn of_rust(text: &str) -> Self {
        let mut outcome = Self::default();
        for line in text.lines() {
            let end = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
            match end {
                Some((name, "ok")) => outcome.passed.push(name.to_owned()),
                Some((name, "FAILED")) => {
                    let head = format!("---- {name} stdout ----\n");
                    let said = text.split_once(&head).map_or("", |(_, rest)| rest);
                    let said = said.split_once("\n\n").map_or(said, |(said, _)| said);
                    outcome.failed.insert(name.to_owned(), said.trim().to_owned());
                }
                _ => {}
            }
        }
        outcome
    }
}

/// Result of a Go test; a panic leaves it without a result line.
#[derive(Debug, PartialEq, Eq)]
enum End {
    None,
    Passed,
    Failed,
    Skipped,
}

/// Prefixes of Go's lines before the output of a test.
const GO_TURNS: [&str; 3] = ["=== RUN ", "=== CONT ", "=== NAME "];

fn go_end(line: &str) -> Option<(End, &str)> {
    let (end, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
    let end = match end {
        "PASS" => End::Passed,
        "FAIL" => End::Failed,
        "SKIP" => End::Skipped,
        _ => return None,
    };
    Some((end, rest.rsplit_once(" (")?.0))
}

/// First lines of a failed test's output, at most 12.
fn first<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.take(12).collect::<Vec<_>>().join("\n")
}

/// First lines of the message of a failed test.
fn said(element: &str) -> String {
    let text = element.split_once("message=\"").map_or("", |(_, rest)| rest);
    let text = text.split_once('"').map_or("", |(text, _)| text);
    first(plain(text).lines())
}

fn attribute(line: &str, name: &str) -> String {
    let from = line.split_once(&format!("{name}=\"")).map_or("", |(_, rest)| rest);
    plain(from.split_once('"').map_or("", |(value, _)| value))
}

fn plain(text: &str) -> String {
    let text = text.replace("&#34;", "\"").replace("&#39;", "'").replace("&lt;", "<");
    text.replace("&gt;", ">").replace("&#xA;", "\n").replace("&#x9;", "\t").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn ginkgos_report_is_counted_test_by_test() {
        let xml = "<testsuites tests=\"4\">\n\
            <testcase name=\"[BeforeSuite]\" classname=\"s\" status=\"passed\" time=\"1\">\n\
            <testcase name=\"[It] a &#34;b&#34;\" classname=\"s\" status=\"passed\" time=\"1\">\n\
            <testcase name=\"[It] c\" classname=\"s\" status=\"failed\" time=\"1\">\n\
            <failure message=\"1 &lt; 2&#xA;is so\" type=\"failed\">trace</failure>\n\
            <testcase name=\"[It] d\" classname=\"s\" status=\"skipped\" time=\"1\">\n\
            <testcase name=\"[It] e\" classname=\"s\" status=\"panicked\" time=\"1\">\n";
        let outcome = Outcome::of_ginkgo(xml);
        assert_eq!(outcome.passed, ["[It] a \"b\""]);
        let failed: Vec<_> = outcome.failed.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(failed, [("[It] c", "1 < 2\nis so"), ("[It] e", "")]);
    }

    #[test]
    fn gos_tests_are_counted_by_the_innermost() {
        let text = "=== RUN   TestA\n=== RUN   TestA/one\n=== RUN   TestA/two\n    \
            a_test.go:1: 1 < 2\n        is so\n=== NAME  TestA\n    a_test.go:2: then\n\
            --- FAIL: TestA (1.00s)\n    --- PASS: TestA/one (0.10s)\n    \
            --- FAIL: TestA/two (0.20s)\n=== RUN   TestB\n=== RUN   TestB/one\n    \
            b_test.go:3: no\n--- FAIL: TestB (0.00s)\n    --- PASS: TestB/one (0.00s)\n\
            === RUN   TestC\n--- SKIP: TestC (0.00s)\n=== RUN   TestD\npanic: x\n";
        let outcome = Outcome::of_go(text);
        assert_eq!(outcome.passed, ["TestA/one", "TestB/one"]);
        let failed: Vec<_> = outcome.failed.iter().map(|(a, b)| (&**a, &**b)).collect();
        let two = "a_test.go:1: 1 < 2\nis so";
        assert_eq!(failed, [("TestA/two", two), ("TestB", ""), ("TestD", "panic: x")]);
    }

    #[test]
    fn rusts_tests_are_counted_by_their_lines() {
        let text = "running 3 tests\ntest a::one ... ok\ntest a::two ... FAILED\n\
            test a::three ... ignored\n\nfailures:\n\n---- a::two stdout ----\nError: x\ny\n\n\
            failures:\n    a::two\n";
        let outcome = Outcome::of_rust(text);
        assert_eq!(outcome.passed, ["a::one"]);
        let failed: Vec<_> = outcome.failed.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(failed, [("a::two", "Error: x\ny")]);
    }
}
