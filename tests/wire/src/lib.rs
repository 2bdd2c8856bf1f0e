//! Tests of network code with real programs as peers. They need root, because each runs in a
//! network namespace of its own.
//!
//! Never: use of a name or a port outside of such a namespace. Enter at [`rerun`].

use std::process::Command;

/// Runs a test of this program again in new network and process namespaces, and returns its output.
/// There, the Bash script `script` prepares the network and runs `"$0" --exact "$1" --nocapture`.
///
/// # Panics
/// The test fails there, or is not run.
pub fn rerun(script: &str, test: &str, environment: &[(&str, &str)]) -> String {
    // All processes end with this test, even if the test is killed.
    let mut unshare = Command::new("setpriv");
    unshare.args(["--pdeathsig", "KILL", "unshare", "--net", "--pid", "--fork", "--kill-child"]);
    unshare.args(["--mount-proc", "bash", "-c", script]);
    unshare.arg(std::env::current_exe().expect("this test")).arg(test);
    unshare.envs(environment.iter().copied());
    let output = unshare.output().expect("unshare runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{error}");
    text
}
