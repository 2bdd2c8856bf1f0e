//! Templates against Go's own engine with Tinkerbell's functions: random templates over random
//! data. Both sides must render the same text, or both refuse.
//!
//! `TEMPLATE_SEED` selects the cases, and `TEMPLATE_CASES` their number.

mod calls;
mod grammar;
mod published;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use grammar::{Case, Grammar};

/// Seed of the default run; another seed finds other differences.
const SEED: u64 = 1;
/// Cases per run, default of `TEMPLATE_CASES`.
const CASES: usize = 20_000;
/// Differences that the test prints before it stops.
const TOLD: usize = 15;
/// Errors of the box's engine for cases that Go renders: intermediate text that is not valid UTF-8,
/// and numbers of unusual length.
const LIMITS: [&str; 2] =
    ["this would cut a character in two", "a decimal number of more than 38 digits"];
/// One case of this many may end with an error of [`LIMITS`].
const LIMITED_ONE_IN: usize = 10_000;
/// Memory limit of the Go process (`GOMEMLIMIT`).
const MEMORY: &str = "512MiB";

/// The oracle: a process that answers each line with one line.
struct Oracle {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Cases that Go renders and the box's engine refuses with one of [`LIMITS`].
    limited: usize,
}

/// Result of one engine for a case.
#[derive(Debug, PartialEq)]
enum Outcome {
    Text(String),
    /// Error message, which is not compared.
    Refused(String),
    /// Text that is not valid UTF-8, which the box's engine never returns.
    Binary,
}

impl Oracle {
    fn start() -> Self {
        let program = peers::built("template-oracle", &[]).unwrap().remove(0);
        let mut process = Command::new(program)
            .env("GOMEMLIMIT", MEMORY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, questions, answers, limited: 0 }
    }

    fn ask(&mut self, case: &Case) -> Outcome {
        let question = json!({ "template": case.template, "data": case.data });
        writeln!(self.questions, "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line)
            .unwrap_or_else(|why| panic!("{why}: {line:?} to {question}"));
        match (answer["error"].as_str(), answer["binary"].as_bool()) {
            (Some(error), _) => Outcome::Refused(error.to_owned()),
            (None, Some(true)) => Outcome::Binary,
            _ => Outcome::Text(answer["output"].as_str().unwrap().to_owned()),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // The process may have ended already; a failure here has no effect.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn ours(case: &Case) -> Outcome {
    match template::render(&case.template, &case.data) {
        Ok(text) => Outcome::Text(text),
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

/// Describes the difference of a case, if there is one.
fn difference(oracle: &mut Oracle, case: &Case) -> Option<String> {
    let (theirs, ours) = (oracle.ask(case), ours(case));
    let same = match (&theirs, &ours) {
        (Outcome::Text(_), Outcome::Refused(why)) => {
            let is_limit = LIMITS.iter().any(|limit| why.ends_with(limit));
            oracle.limited += usize::from(is_limit);
            is_limit
        }
        (Outcome::Text(theirs), Outcome::Text(ours)) => theirs == ours,
        (Outcome::Refused(_) | Outcome::Binary, Outcome::Refused(_)) => true,
        _ => false,
    };
    let Case { template, data } = case;
    (!same).then(|| format!("{template:?}\n  data {data}\n  Go   {theirs:?}\n  ours {ours:?}"))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn random_templates_render_as_in_go() {
    let seed = number("TEMPLATE_SEED").unwrap_or(SEED);
    let cases = number("TEMPLATE_CASES").map_or(CASES, |cases| usize::try_from(cases).unwrap());
    println!("TEMPLATE_SEED={seed} TEMPLATE_CASES={cases}");
    let mut oracle = Oracle::start();
    let mut grammar = Grammar::new(seed);
    let mut rendered = 0;
    let mut told = Vec::new();
    for at in 0..cases {
        let case = grammar.case();
        told.extend(difference(&mut oracle, &case).map(|why| format!("case {at}: {why}")));
        rendered += usize::from(matches!(ours(&case), Outcome::Text(_)));
        if told.len() >= TOLD {
            break;
        }
    }
    assert!(told.is_empty(), "TEMPLATE_SEED={seed}\n{}", told.join("\n"));
    let limited = oracle.limited;
    println!("{rendered} of {cases} rendered, {limited} beyond what ours is made for");
    assert!(limited * LIMITED_ONE_IN <= cases, "{limited} of {cases} cases met a limit");
    assert!(rendered * 5 > cases, "only {rendered} of {cases} cases rendered");
}

#[test]
fn published_templates_render_as_in_go() {
    let mut oracle = Oracle::start();
    for (name, template) in published::TEMPLATES {
        let case = Case { template: (*template).to_owned(), data: published::data() };
        assert_eq!(difference(&mut oracle, &case), None, "{name}");
        assert!(matches!(ours(&case), Outcome::Text(_)), "{name}: {:?}", ours(&case));
    }
}
