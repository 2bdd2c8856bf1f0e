//! Single requests, from the tables of `tests/peers/requests`, to the box and to a real
//! kube-apiserver. Status and document of each answer must be equal. `python/send_requests.py`
//! removes values that differ from run to run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use peers::{Cluster, ClusterConfig, Kubectl, Tinboxd, built, run};
use serde_json::Value;

use crate::clients::define;

/// Known difference between the two answers to a request.
#[derive(Clone, Copy, PartialEq)]
enum Difference {
    /// The two answers are equal.
    Nothing,
    /// The messages differ; status, reason and fields are equal.
    Words,
    /// The answers differ as a whole.
    Answer,
}

/// Line prefixes after a request whose answers differ.
const DIFFERENCES: [(&str, Difference); 2] =
    [("words differ: ", Difference::Words), ("differs: ", Difference::Answer)];

/// A request of a table.
struct Request {
    text: String,
    difference: Difference,
}

fn read(table: &Path) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for (at, line) in fs::read_to_string(table).unwrap().lines().enumerate() {
        let is_request = line.split_once(" /").is_some_and(|(method, _)| {
            !method.is_empty() && method.chars().all(|char| char.is_ascii_uppercase())
        });
        if is_request {
            requests.push(Request { text: line.to_owned(), difference: Difference::Nothing });
        } else if let Some((_, known)) = DIFFERENCES.iter().find(|(head, _)| line.starts_with(head))
        {
            requests.last_mut().expect("a difference follows a request").difference = *known;
        } else {
            let is_remark = line.is_empty() || line.starts_with('#');
            assert!(is_remark, "{}:{}: neither request nor remark", table.display(), at + 1);
        }
    }
    requests
}

/// The answers to all requests of a table, one a line.
fn send(table: &Path, kubectl: &Kubectl) -> Vec<String> {
    let mut command = Command::new(built("python", &[]).unwrap().remove(0));
    kubectl.lend(&mut command);
    command.arg(folder().join("python/send_requests.py")).arg(table);
    let printed = run(command, "").unwrap();
    assert!(printed.success, "{}: {}{}", table.display(), printed.out, printed.err);
    printed.out.lines().map(str::to_owned).collect()
}

fn difference(real: &str, ours: &str) -> Difference {
    if real == ours {
        Difference::Nothing
    } else if without_words(real) == without_words(ours) {
        Difference::Words
    } else {
        Difference::Answer
    }
}

/// An answer without its messages.
fn without_words(answer: &str) -> Option<(&str, Value)> {
    let (status, document) = answer.split_once(' ')?;
    let mut document: Value = serde_json::from_str(document).ok()?;
    document.as_object_mut()?.remove("message");
    if let Some(causes) = document.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.iter_mut().filter_map(Value::as_object_mut).for_each(|cause| {
            cause.remove("message");
        });
        causes.sort_by_key(Value::to_string);
    }
    Some((status, document))
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn single_requests_are_answered_as_by_a_real_server() {
    let entries = fs::read_dir(folder().join("requests")).unwrap();
    let mut tables: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    tables.sort();
    let send_all = |kubectl: Kubectl| -> Vec<Vec<String>> {
        define(&kubectl);
        tables.iter().map(|table| send(table, &kubectl)).collect()
    };
    let cluster = Cluster::start(&ClusterConfig::default()).unwrap();
    let real = send_all(cluster.kubectl().unwrap());
    drop(cluster);
    let tinboxd = Tinboxd::start().unwrap();
    let ours = send_all(tinboxd.kubectl().unwrap());

    let mut wrong = Vec::new();
    for ((table, real), ours) in tables.iter().zip(real).zip(ours) {
        let requests = read(table);
        assert_eq!([real.len(), ours.len()], [requests.len(); 2], "{}", table.display());
        for ((request, real), ours) in requests.iter().zip(real).zip(ours) {
            let found = difference(&real, &ours);
            if found != request.difference {
                wrong.push(format!("{}\n  real {real}\n  ours {ours}\n", request.text));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} requests have another difference than their table says:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
