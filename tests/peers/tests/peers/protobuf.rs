//! Random objects of every kind with a table, as Kubernetes' own encoders write them.
//!
//! `PROTOBUF_SEED` chooses other objects, and `PROTOBUF_OF_EACH` how many of each kind.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use stdx::json::drop_nulls;

/// Default value of `PROTOBUF_SEED`.
const SEED: &str = "1";
/// Objects of each kind, default of `PROTOBUF_OF_EACH`.
const OF_EACH: &str = "120";

/// Path of the oracle with Kubernetes' encoders, built when missing.
fn oracle() -> Result<PathBuf> {
    Ok(peers::built("protobuf-oracle", &[])?.remove(0))
}

/// Runs the oracle; returns its output lines.
fn ask(arguments: &[&str], input: &str) -> Result<Vec<String>> {
    let mut child = Command::new(oracle()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("the oracle has an input")?;
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().ok().context("the oracle's input ends")??;
    ensure!(output.status.success(), "the oracle fails: {:?}", output.status);
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

#[test]
fn bodies_mean_what_kubernetes_means_by_them() -> Result<()> {
    let variable = |name, fixed: &str| std::env::var(name).unwrap_or_else(|_| fixed.to_owned());
    let seed = variable("PROTOBUF_SEED", SEED);
    let of_each = variable("PROTOBUF_OF_EACH", OF_EACH);
    println!("PROTOBUF_SEED={seed} PROTOBUF_OF_EACH={of_each}");
    let cases = ask(&["cases", &seed, &of_each], "")?;
    let kinds = cases.len() / of_each.parse::<usize>()?;
    ensure!(kinds > 41, "only {kinds} kinds");
    let (mut ours, mut theirs) = (String::new(), Vec::new());
    for case in &cases {
        let case: Value = serde_json::from_str(case)?;
        let body = BASE64_STANDARD.decode(case["protobuf"].as_str().unwrap_or_default())?;
        let object = kube_protobuf::decode(&body, ("", ""))
            .with_context(|| format!("cannot decode {case}"))?;
        ensure!(object == case["json"], "read as\n{object}\ninstead of\n{}", case["json"]);
        let body = kube_protobuf::encode(&object).with_context(|| format!("encode {object}"))?;
        ours.push_str(&BASE64_STANDARD.encode(body));
        ours.push('\n');
        theirs.push(object);
    }
    let read = ask(&["decode"], &ours)?;
    ensure!(read.len() == theirs.len(), "{} answers to {} cases", read.len(), theirs.len());
    for (read, object) in read.iter().zip(theirs) {
        let (mut read, mut object) = (serde_json::from_str(read)?, object);
        // JSON does not distinguish null from a missing field.
        drop_nulls(&mut read);
        drop_nulls(&mut object);
        ensure!(read == object, "written as\n{read}\ninstead of\n{object}");
    }
    Ok(())
}
