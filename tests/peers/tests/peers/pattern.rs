//! Patterns against Quamina itself: random patterns over random documents. Both sides must agree
//! for each pattern: match, no match, or refusal.
//!
//! Quamina's answers for the default run are stored in `tests/peers/pattern-answers.txt`, so that
//! this run needs no Quamina. `PATTERN_SEED` runs Quamina on other cases, `PATTERN_CASES` on more.
//! `UPDATE=1` runs it on the default cases and rewrites the stored answers.

mod grammar;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use ::event_pattern::{Event, Pattern};
use serde_json::{Value, json};

use grammar::{Case, Grammar};

/// Seed of the default run; another seed finds other differences.
const SEED: u64 = 1;
/// Cases per run, default of `PATTERN_CASES`.
const CASES: usize = 4_000;
/// Differences that the test prints before it stops.
const TOLD: usize = 15;
/// Answers per line of the file.
const LINE: usize = 96;

/// Quamina: a process that answers each line with one line.
struct Oracle {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Self {
        let program = peers::built("pattern-oracle", &[]).unwrap().remove(0);
        let piped = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = piped.unwrap();
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, questions, answers }
    }

    /// Returns one letter for each pattern: `+` match, `-` no match, `x` refused.
    fn ask(&mut self, case: &Case) -> String {
        let mut letters = vec!['-'; case.patterns.len()];
        loop {
            let left: Vec<usize> = (0..letters.len()).filter(|at| letters[*at] != 'x').collect();
            let patterns: Vec<&String> = left.iter().map(|at| &case.patterns[*at]).collect();
            let question = json!({ "patterns": patterns, "document": case.document });
            writeln!(self.questions, "{question}").unwrap();
            let mut line = String::new();
            self.answers.read_line(&mut line).unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            let place = |at: &Value| left[usize::try_from(at.as_u64().unwrap()).unwrap()];
            if let Some(at) = answer.get("refused") {
                letters[place(at)] = 'x';
                continue;
            }
            assert!(answer.get("error").is_none(), "{answer} to {question}");
            for at in answer["fits"].as_array().unwrap() {
                letters[place(at)] = '+';
            }
            return letters.into_iter().collect();
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

fn ours(case: &Case) -> String {
    let event = Event::new(&case.document).unwrap();
    let letter = |text: &String| match Pattern::parse(text) {
        Ok(pattern) if pattern.fits(&event).unwrap() => '+',
        Ok(_) => '-',
        Err(_) => 'x',
    };
    case.patterns.iter().map(letter).collect()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pattern-answers.txt")
}

/// Source of Quamina's answers.
enum Answers {
    Quamina(Box<Oracle>),
    /// Rest of the stored answers.
    File(String),
}

impl Answers {
    fn of(&mut self, case: &Case) -> String {
        match self {
            Self::Quamina(oracle) => oracle.ask(case),
            Self::File(rest) => {
                let count = case.patterns.len();
                assert!(rest.len() >= count, "{} has too few answers: UPDATE=1", file().display());
                rest.drain(..count).collect()
            }
        }
    }
}

#[test]
fn random_patterns_fit_as_in_quamina() {
    let (own_seed, own_cases) = (number("PATTERN_SEED"), number("PATTERN_CASES"));
    let updates = golden::updates();
    let seed = own_seed.unwrap_or(SEED);
    let cases = own_cases.map_or(CASES, |cases| usize::try_from(cases).unwrap());
    println!("PATTERN_SEED={seed} PATTERN_CASES={cases}");
    let mut answers = if own_seed.is_some() || own_cases.is_some() || updates {
        Answers::Quamina(Box::new(Oracle::start()))
    } else {
        let text = std::fs::read_to_string(file()).unwrap();
        Answers::File(text.split_whitespace().collect())
    };
    let mut grammar = Grammar::new(seed);
    let (mut told, mut all) = (Vec::new(), String::new());
    for at in 0..cases {
        let case = grammar.case();
        let (theirs, ours) = (answers.of(&case), ours(&case));
        if theirs != ours {
            let Case { patterns, document } = &case;
            told.push(format!(
                "case {at}: {document}\n  {}\n  Quamina {theirs}\n  ours    {ours}",
                patterns.join("\n  ")
            ));
        }
        all.push_str(&theirs);
        if told.len() >= TOLD {
            break;
        }
    }
    assert!(told.is_empty(), "PATTERN_SEED={seed}\n{}", told.join("\n"));
    let count = |letter| all.chars().filter(|it| *it == letter).count();
    let (fit, refused) = (count('+'), count('x'));
    println!("{} patterns: {fit} fit, {refused} are refused", all.len());
    assert!(fit * 8 > all.len(), "only {fit} of {} patterns fit", all.len());
    assert!(refused * 5 < all.len(), "{refused} of {} patterns are refused", all.len());
    if updates {
        let lines = all.as_bytes().chunks(LINE).map(|line| std::str::from_utf8(line).unwrap());
        std::fs::write(file(), lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    }
}
