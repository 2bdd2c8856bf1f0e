//! What a suite reported: Ginkgo's JUnit file, or the lines of Rust's tests.

use std::collections::BTreeMap;

/// What a suite reported.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The full names of the tests that passed.
    pub passed: Vec<String>,
    /// The full names of those that failed, and what they said.
    pub failed: BTreeMap<String, String>,
}

impl Outcome {
    /// Reads Ginkgo's JUnit report: one element a test, its attributes on the same line, what it
    /// said in the lines behind.
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

    /// Reads what Rust's tests say: a line a test, and what the failed ones said below them all.
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

/// The first lines of what a failed test said.
fn said(element: &str) -> String {
    let text = element.split_once("message=\"").map_or("", |(_, rest)| rest);
    let text = text.split_once('"').map_or("", |(text, _)| text);
    plain(text).lines().take(12).collect::<Vec<_>>().join("\n")
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
