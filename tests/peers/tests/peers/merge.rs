//! Server-side apply against Kubernetes' own code: random objects with random sequences of writes;
//! both sides execute every write.
//!
//! `MERGE_SEED` selects other sequences, and `MERGE_LIVES` their number.

mod kinds;
mod life;
pub mod random;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use structured_merge::{ApplyError, FieldManager, Schema, Set};

use kinds::{KIND, VERSIONS, models};
use life::{Life, Step};
use random::Random;

/// Default value of `MERGE_SEED`.
const SEED: u64 = 1;
/// Objects per run, default of `MERGE_LIVES`; each object is written [`life::STEPS`] times.
const LIVES: usize = 400;
/// Lower bound of times from the oracle's own clock; times of the test are earlier.
const ORACLE_CLOCK: &str = "2025";

/// The oracle: a process that answers each line with one line.
struct Oracle {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Self {
        let program = peers::built("merge-oracle", &[]).unwrap().remove(0);
        let mut process =
            Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, questions, answers }
    }

    fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.questions, "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?} to {question}"))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // The oracle may have ended already; a failure here has no effect.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

type Schemas = BTreeMap<String, Arc<Schema>>;

/// Every way in which an object of the kind may merge: two schemas between which a definition may
/// change, and no schema.
fn schemas(oracle: &mut Oracle) -> Vec<(i64, Schemas)> {
    let mut all = Vec::new();
    for (index, changed) in [false, true].into_iter().enumerate() {
        let models = models(changed);
        let answer = oracle.ask(&json!({ "models": models }));
        assert_eq!(answer["error"], Value::Null);
        let schema = |version: &str, root: &str| {
            let schema = Schema::from_openapi(&models, root).unwrap();
            (version.to_owned(), Arc::new(schema))
        };
        let schemas = [schema(VERSIONS[0], "Thing1"), schema(VERSIONS[1], "Thing2")];
        all.push((i64::try_from(index).unwrap(), schemas.into()));
    }
    let deduced = Arc::new(Schema::deduced());
    let deduced = VERSIONS.map(|version| (version.to_owned(), deduced.clone()));
    all.push((-1, deduced.into()));
    all
}

/// Parts of an outcome that are compared.
#[derive(Debug, PartialEq)]
struct Outcome {
    object: Value,
    error: String,
    causes: Vec<String>,
}

fn ours(step: &Step, schemas: &Schemas, now: Timestamp) -> Outcome {
    let reset = Set::of(step.reset.iter().map(|name| structured_merge::Path::fields(&[name])));
    let manager = FieldManager {
        api_version: &step.version,
        kind: KIND,
        subresource: &step.subresource,
        schemas,
        reset: &reset,
    };
    let live = (!step.live.is_null()).then_some(&step.live);
    let result = if step.apply {
        manager.apply(live, &step.object, &step.manager, step.force, now)
    } else {
        let mut new = step.object.clone();
        manager.update(live, &mut new, &step.manager, now).map(|()| new)
    };
    match result {
        Ok(object) => Outcome { object, error: String::new(), causes: Vec::new() },
        Err(refused) => {
            let mut causes = Vec::new();
            if let ApplyError::Conflicts(conflicts) = &refused {
                causes.extend(
                    conflicts.listed().iter().map(|one| format!("{} {}", one.field, one.message())),
                );
            }
            causes.sort();
            let error = comparable(step, &refused.to_string());
            Outcome { object: Value::Null, error, causes }
        }
    }
}

fn theirs(oracle: &mut Oracle, step: &Step, schema: i64, now: Timestamp) -> Outcome {
    let reset: Vec<_> = step.reset.iter().map(|name| vec![name]).collect();
    let mut answer = oracle.ask(&json!({
        "schema": schema,
        "op": if step.apply { "apply" } else { "update" },
        "apiVersion": step.version,
        "kind": KIND,
        "subresource": step.subresource,
        "reset": reset,
        "live": step.live,
        "object": step.object,
        "manager": step.manager,
        "force": step.force,
    }));
    let mut object = answer["object"].take();
    if let Some(entries) = object.pointer_mut("/metadata/managedFields") {
        for entry in entries.as_array_mut().unwrap() {
            if entry["time"].as_str().is_some_and(|time| time > ORACLE_CLOCK) {
                entry["time"] = json!(now.to_string());
            }
        }
    }
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let causes = answer["causes"].as_array().cloned().unwrap_or_default();
    let mut causes: Vec<_> = causes
        .iter()
        .map(|cause| format!("{} {}", text(cause, "field"), text(cause, "message")))
        .collect();
    causes.sort();
    Outcome { object, error: comparable(step, &text(&answer, "error")), causes }
}

/// Of a failed update only the fact of the failure is visible, so errors of updates are not
/// compared.
fn comparable(step: &Step, error: &str) -> String {
    if step.apply || error.is_empty() { error.to_owned() } else { "failed".to_owned() }
}

/// Reduces both messages to their constant part when one lists several mismatches. Go iterates its
/// maps in another order each time, and stops at the first undeclared field.
fn align(ours: &mut Outcome, theirs: &mut Outcome) {
    const MANY: &str = "errors:";
    if ![&ours.error, &theirs.error].iter().any(|error| error.contains(MANY)) {
        return;
    }
    for outcome in [ours, theirs] {
        let end = [MANY, ": ."].iter().filter_map(|mark| outcome.error.find(mark)).min();
        outcome.error.truncate(end.unwrap_or(usize::MAX));
        outcome.error.truncate(outcome.error.trim_end_matches([':', ' ']).len());
    }
}

#[test]
fn writes_come_out_as_kubernetes_has_them() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("MERGE_SEED").unwrap_or(SEED);
    let lives = number("MERGE_LIVES").map_or(LIVES, |lives| usize::try_from(lives).unwrap());
    println!("MERGE_SEED={seed} MERGE_LIVES={lives}");
    let mut oracle = Oracle::start();
    let schemas = schemas(&mut oracle);
    let mut random = Random(seed);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for at in 0..lives {
        let mut life = Life::new(&mut random);
        for second in 0..life::STEPS {
            // The definition may change while its objects exist.
            let (index, schemas) = &schemas[life.schema(&mut random)];
            let step = life.step(&mut random);
            let now = Timestamp::from_second(1_577_836_800 + second).unwrap();
            let mut ours = ours(&step, schemas, now);
            let mut theirs = theirs(&mut oracle, &step, *index, now);
            align(&mut ours, &mut theirs);
            assert_eq!(
                ours,
                theirs,
                "ours is left; MERGE_SEED={seed}, life {at}, step {second}: {}",
                serde_json::to_string_pretty(&json!({
                    "live": step.live, "object": step.object, "manager": step.manager,
                    "apply": step.apply, "force": step.force, "version": step.version,
                    "schema": index,
                }))
                .unwrap()
            );
            let outcome = match (step.apply, ours.error.is_empty(), ours.causes.is_empty()) {
                (true, true, _) => "applied",
                (true, _, false) => "conflicts",
                (true, ..) => "unfit configurations",
                (false, true, _) => "updated",
                (false, ..) => "untracked updates",
            };
            *seen.entry(outcome).or_default() += 1;
            life.take(ours.object);
        }
    }
    println!("{seen:?}");
    for outcome in ["applied", "conflicts", "unfit configurations", "updated"] {
        assert!(seen.get(outcome).is_some_and(|times| *times > lives / 10), "too few {outcome}");
    }
}
