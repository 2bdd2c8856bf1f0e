//! Removal of values that differ from run to run without meaning: addresses, times, identities,
//! revisions.

use std::path::Path;

use regex::Regex;

/// Replaces the values of one run by constant words.
pub struct Normal {
    names: Vec<(String, &'static str)>,
    rules: Vec<(Regex, &'static str)>,
}

/// Regular expressions and replacements, applied in this order.
const RULES: [(&str, &str); 14] = [
    (r"(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", "CERTIFICATE"),
    // A JSON web token.
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "JWT"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[+-]\d{4}|Z)", "TIME"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    // The prefix of a line of klog, with its goroutine or process and its source line.
    (r"(?m)^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ([\w./]+):\d+\]", "$1 $2]"),
    // kubectl's own timeout ended while it requested a watch, not while it waited for events.
    (r#"(?m)^E reflector\.go\] "Failed to watch" err="context deadline exceeded".*\n"#, ""),
    (r#"(resourceVersion"?:\s*"?)\d+"#, "${1}RV"),
    (r"(Resource Version:\s+)\d+", "${1}RV"),
    (r"/tmp/(LIVE|MERGED)-\d+", "/tmp/$1"),
    (r"/tmp/kubectl-edit-\d+", "/tmp/kubectl-edit"),
    // An age, alone in its column.
    (r"(?m)(^|\s)(\d+[smhd]){1,2}(\s|$)", "${1}AGE${3}"),
    // A column is as wide as its widest cell, which may be an age.
    (r"(?m)(\S)[ \t]{2,}", "$1  "),
    (r"(?m)[ \t]+$", ""),
];

impl Normal {
    /// Creates the replacements for a run with the server at `url` in the folder `work`.
    pub fn new(url: &str, work: &Path) -> Self {
        let host = url.trim_start_matches("https://");
        let names = vec![
            (work.display().to_string(), "WORK"),
            (url.to_owned(), "SERVER"),
            (host.to_owned(), "SERVER"),
        ];
        let rules = RULES.map(|(rule, by)| (Regex::new(rule).unwrap(), by));
        Self { names, rules: rules.into() }
    }

    /// Replaces the values in a text.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, by) in &self.names {
            text = text.replace(name, by);
        }
        for (rule, by) in &self.rules {
            text = rule.replace_all(&text, *by).into_owned();
        }
        in_order(&text)
    }
}

/// Sorts the causes of a refusal: a real server visits its fields in no fixed order.
fn in_order(text: &str) -> String {
    let mut lines: Vec<&str> = text.split('\n').collect();
    for causes in lines.chunk_by_mut(|a, b| a.starts_with("* ") && b.starts_with("* ")) {
        causes.sort_unstable();
    }
    lines.join("\n")
}

#[test]
fn what_means_something_stays() {
    let normal = Normal::new("https://127.1.2.3:6443", Path::new("/tmp/x"));
    let text = "NAME   READY   AGE\nnuc-1  3       2m4s\n  indented: 5 apples\n";
    assert_eq!(normal.text(text), "NAME  READY  AGE\nnuc-1  3  AGE\n  indented: 5 apples\n");
    assert_eq!(normal.text("wrong:\n* b\n* a\nend\n"), "wrong:\n* a\n* b\nend\n");
    let late = "E1122 10:11:12.131415   99 reflector.go:204] \"Failed to watch\" err=";
    let text = format!("{late}\"context deadline exceeded\" reflector=\"a\"\n{late}\"EOF\"\n");
    assert_eq!(normal.text(&text), "E reflector.go] \"Failed to watch\" err=\"EOF\"\n");
    let text = "{\"resourceVersion\":\"17\",\"generation\":17} https://127.1.2.3:6443/api";
    assert_eq!(normal.text(text), "{\"resourceVersion\":\"RV\",\"generation\":17} SERVER/api");
}
