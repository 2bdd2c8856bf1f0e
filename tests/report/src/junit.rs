//! The results of a run, from cargo-nextest's JUnit report.

use anyhow::{Context as _, Result};
use roxmltree::{Document, Node};

/// End of one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Passed at the first attempt.
    Passed,
    /// Failed, then passed at a retry; with the text of the failure.
    Flaky(String),
    /// Failed at every attempt.
    Failed,
}

/// One test of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The test binary, as cargo-nextest names it: `netboot`, `dhcp::dhcp`.
    pub suite: String,
    /// The test's path in its binary.
    pub name: String,
    /// End of the test.
    pub verdict: Verdict,
}

impl Case {
    /// Suite and name in one word.
    pub fn id(&self) -> String {
        format!("{}/{}", self.suite, self.name)
    }
}

/// All tests of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// The tests, in the order of the report.
    pub cases: Vec<Case>,
}

impl Run {
    /// Reads a JUnit report.
    ///
    /// # Errors
    /// The text is not XML, or a test case lacks its name.
    pub fn read(text: &str) -> Result<Self> {
        let document = Document::parse(text).context("the JUnit report is not valid XML")?;
        let nodes = document.descendants().filter(|node| node.has_tag_name("testcase"));
        Ok(Self { cases: nodes.map(case).collect::<Result<_>>()? })
    }

    /// Number of tests that passed, flaky ones included.
    pub fn passed(&self) -> usize {
        self.cases.len() - self.failed()
    }

    /// Number of tests that failed.
    pub fn failed(&self) -> usize {
        self.cases.iter().filter(|case| case.verdict == Verdict::Failed).count()
    }

    /// The tests that passed only at a retry, with the message of their failure.
    pub fn flaky(&self) -> Vec<(&Case, &str)> {
        let flaky = self.cases.iter().filter_map(|case| match &case.verdict {
            Verdict::Flaky(text) => Some((case, text.as_str())),
            Verdict::Passed | Verdict::Failed => None,
        });
        flaky.collect()
    }
}

fn case(node: Node<'_, '_>) -> Result<Case> {
    let name = node.attribute("name").context("a test case without a name")?.to_owned();
    let suite = node.parent().and_then(|suite| suite.attribute("name")).unwrap_or_default();
    let child =
        |names: [&str; 2]| node.children().find(|one| names.contains(&one.tag_name().name()));
    let verdict = if child(["failure", "error"]).is_some() {
        Verdict::Failed
    } else if let Some(failure) = child(["flakyFailure", "flakyError"]) {
        // The text begins with the message; the output in the elements below repeats it.
        let text = failure.text().unwrap_or_default().trim();
        let message = failure.attribute("message").unwrap_or_default();
        Verdict::Flaky(if text.is_empty() { message } else { text }.to_owned())
    } else {
        Verdict::Passed
    };
    Ok(Case { suite: suite.to_owned(), name, verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="ci" tests="4" failures="1" errors="0">
  <testsuite name="netboot" tests="2" failures="1">
    <testcase name="http::serves" classname="netboot" time="0.1"/>
    <testcase name="http::limits" classname="netboot" time="0.1">
      <failure message="panicked" type="test failure">left: 1</failure>
      <rerunFailure message="panicked" type="test failure"/>
    </testcase>
  </testsuite>
  <testsuite name="scenarios::scenarios" tests="2">
    <testcase name="path::uefi" classname="scenarios"><system-out>x</system-out></testcase>
    <testcase name="path::bios" classname="scenarios">
      <flakyFailure message="no DISCOVER" type="test failure">no DISCOVER after 60 s
        <system-err>late</system-err></flakyFailure>
    </testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn every_kind_of_end_is_read() {
        let run = Run::read(REPORT).unwrap();
        let ids: Vec<String> = run.cases.iter().map(Case::id).collect();
        assert_eq!(
            ids,
            [
                "netboot/http::serves",
                "netboot/http::limits",
                "scenarios::scenarios/path::uefi",
                "scenarios::scenarios/path::bios"
            ]
        );
        assert_eq!((run.passed(), run.failed()), (3, 1));
        let flaky = run.flaky();
        assert_eq!(flaky.len(), 1);
        assert_eq!(flaky[0].0.name, "path::bios");
        assert_eq!(flaky[0].1, "no DISCOVER after 60 s");
    }

    #[test]
    fn what_is_not_a_report_is_refused() {
        for text in ["", "<testsuites>", "<testsuites><testcase/></testsuites>"] {
            assert!(Run::read(text).is_err(), "{text:?}");
        }
    }
}
