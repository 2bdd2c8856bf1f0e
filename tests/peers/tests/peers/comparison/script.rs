//! Scripts of steps: commands for bash that use `kubectl`, and their outputs.
//!
//! ```text
//! # A remark.
//! $ kubectl apply -f - <<EOF
//! > kind: ConfigMap
//! > EOF
//! ```
//!
//! A step may use `$NS`, the script's own namespace (the default one of its kubectl), files in its
//! working folder that earlier steps left, and the functions of `prelude.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use peers::{Kubectl, run};
use serde::{Deserialize, Serialize};

use super::normal::Normal;

/// Maximum seconds of a step; `timeout` then ends it with its own exit status.
const STEP_LIMIT: u64 = 300;
/// Recorded output of a step that did not end within the limit.
pub const CUT_OFF: &str = "(cut off)\n";

/// One command of a script.
pub struct Step {
    /// Text that bash runs.
    pub command: String,
}

/// Output of every step, in order.
pub type Transcript = Vec<Said>;

/// Output of a step, without values that differ from run to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// True for exit status 0.
    pub success: bool,
    /// Text of standard output.
    pub out: String,
    /// Text of standard error.
    pub err: String,
}

/// Steps, one after another.
pub struct Script {
    /// Name of its file without `.steps`.
    pub name: String,
    /// Content of the file.
    pub text: String,
    /// Steps in their order.
    pub steps: Vec<Step>,
}

/// Environment of a script: a kubectl, a server, a namespace, a folder.
pub struct Place {
    kubectl: Kubectl,
    namespace: String,
    url: String,
    work: PathBuf,
}

impl Place {
    /// Creates the environment for one run of `script`; runs with the same `home` share kubectl's
    /// discovery cache.
    pub fn new(
        script: &Script,
        version: &str,
        program: &Path,
        url: &str,
        kubeconfig: &Path,
        home: PathBuf,
    ) -> Self {
        let namespace = format!("{}-{}", script.name, version.replace('.', "-"));
        let work = home.join(&script.name);
        fs::create_dir_all(&work).unwrap();
        let own = work.join("kubeconfig");
        fs::copy(kubeconfig, &own).unwrap();
        let kubectl = Kubectl::new(program.to_owned(), own, home).unwrap();
        Self { kubectl, namespace, url: url.to_owned(), work }
    }
}

impl Script {
    /// The scripts of a folder, by name.
    pub fn all(folder: &Path) -> Vec<Self> {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|end| end == "steps")).collect();
        files.sort();
        files.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(path).unwrap();
        let mut steps: Vec<Step> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let continued = line.strip_prefix("> ").or((line == ">").then_some(""));
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step { command: command.to_owned() });
            } else if let Some(more) = continued {
                let step = steps.last_mut().expect("a step begins with $");
                step.command.push('\n');
                step.command.push_str(more);
            } else {
                let nothing = line.is_empty() || line.starts_with('#');
                assert!(nothing, "{}:{}: neither $, >, # nor empty", path.display(), at + 1);
            }
        }
        Self { name, text, steps }
    }

    /// Runs every step, even after a failed one.
    pub fn run(&self, place: &Place) -> Transcript {
        let normal = Normal::new(&place.url, &place.work);
        self.prepare(place);
        let prelude = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/prelude.sh");
        let run_step = |step: &Step| {
            let mut command = Command::new("timeout");
            command.args(["-k", "5", &STEP_LIMIT.to_string(), "bash", "-c"]);
            command.arg(format!(". {}\n{}", prelude.display(), step.command));
            place.kubectl.lend(&mut command);
            command.env("NS", &place.namespace).current_dir(&place.work);
            let began = Instant::now();
            let printed = run(command, "").unwrap();
            let (out, mut err) = (normal.text(&printed.out), normal.text(&printed.err));
            if began.elapsed().as_secs() >= STEP_LIMIT {
                err.push_str(CUT_OFF);
            }
            Said { success: printed.success, out, err }
        };
        self.steps.iter().map(run_step).collect()
    }

    /// Creates the script's own namespace, which is the default of its kubectl.
    fn prepare(&self, place: &Place) {
        let namespace = &place.namespace;
        let object = format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{namespace}"}}}}"#
        );
        let create = ["create", "--raw", "/api/v1/namespaces", "-f", "-"];
        let made = place.kubectl.run(&create, &object).unwrap();
        assert!(made.success, "{}: {}", self.name, made.err);
        let argument = format!("--namespace={namespace}");
        let set = place.kubectl.run(&["config", "set-context", "--current", &argument], "");
        assert!(set.unwrap().success);
    }

    /// Returns the commands with their outputs, as text for a person.
    pub fn render(&self, transcript: &Transcript) -> String {
        let pairs = self.steps.iter().zip(transcript);
        let render = |(step, said): (&Step, &Said)| {
            let status = if said.success { "" } else { "[failed]\n" };
            format!("$ {}\n{}{}{status}\n", step.command, said.out, said.err)
        };
        pairs.map(render).collect()
    }
}
