//! Random objects of every kind with a table, as Kubernetes' own encoders write them.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use stdx::json::drop_nulls;

/// Objects of each kind.
const OF_EACH: &str = "120";

/// The program that knows, built where it is missing.
fn oracle() -> Result<PathBuf> {
    Ok(peers::built("protobuf-oracle", &[])?.remove(0))
}

/// What the oracle answers, by line.
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
    let seed = std::env::var("PROTOBUF_SEED").unwrap_or_else(|_| {
        getrandom::u64().map(|seed| (seed >> 1).to_string()).unwrap_or_default()
    });
    println!("PROTOBUF_SEED={seed}");
    let cases = ask(&["cases", &seed, OF_EACH], "")?;
    ensure!(cases.len() > 5000, "only {} cases", cases.len());
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
        // JSON does not tell what is null from what is not there.
        drop_nulls(&mut read);
        drop_nulls(&mut object);
        ensure!(read == object, "written as\n{read}\ninstead of\n{object}");
    }
    Ok(())
}
