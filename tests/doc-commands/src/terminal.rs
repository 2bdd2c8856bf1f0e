//! A terminal of a person: commands run in it one after the other, and prompts get answers.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use firmware::run;
use peers::built;
use qemu::Host;

/// Time limit of a command.
const LIMIT: Duration = Duration::from_secs(900);
/// Maximum number of pieces of output in the queue; the reader waits while the queue is full.
const PIECES: usize = 64;
/// Key code of Control-C.
const CONTROL_C: &[u8] = b"\x03";
/// Program in place of `sudo`: the tests are root, and sudo sets variables in front of a command.
const SUDO: &str = "#!/bin/sh\nexec env \"$@\"\n";
/// Program in place of an editor: replaces the text of the edited file by that of `~/new`. Without
/// the file `~/new`, sets a network's mode to `reserved`.
const EDITOR: &str = "#!/bin/sh\n\
    if [ -e \"$HOME/new\" ]; then cat \"$HOME/new\" >\"$1\"; \
    else sed -i 's/mode: .*/mode: reserved/' \"$1\"; fi\n";

/// A terminal on a host of a rack, with a folder of its own.
pub struct Terminal {
    host: Arc<Host>,
    folder: PathBuf,
    variables: Vec<(String, String)>,
    answers: Vec<(String, String)>,
}

/// Exit status and output of a command.
#[derive(Debug)]
pub struct Outcome {
    /// True for exit status 0.
    pub success: bool,
    /// Output, as a person sees it.
    pub output: String,
}

impl Terminal {
    /// Opens a terminal on `host`; its folder and its home are made in `folder`.
    pub fn new(host: &Arc<Host>, folder: &Path) -> Self {
        let (programs, home) = (folder.join("bin"), folder.join("home"));
        for made in [&programs, &home] {
            fs::create_dir_all(made).unwrap();
        }
        for (name, text) in [("sudo", SUDO), ("editor", EDITOR)] {
            let path = programs.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let of = |path: PathBuf| path.parent().unwrap().display().to_string();
        let path = [
            programs.display().to_string(),
            of(programs::find("tinbox").unwrap()),
            of(built("kubectl", &["1.35"]).unwrap().remove(0)),
            of(built("age", &["age", "age-keygen"]).unwrap().remove(0)),
            "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned(),
        ];
        let editor = programs.join("editor").display().to_string();
        let set = |name: &str, value: String| (name.to_owned(), value);
        let variables = vec![
            set("PATH", path.join(":")),
            set("HOME", home.display().to_string()),
            set("EDITOR", editor),
            set("SHELL", "/bin/bash".to_owned()),
            set("TERM", "dumb".to_owned()),
            set("COLUMNS", "200".to_owned()),
        ];
        let (host, folder) = (Arc::clone(host), folder.to_owned());
        Self { host, folder, variables, answers: Vec::new() }
    }

    /// Folder in which commands run.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets a variable for all later commands.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Types `words` at each prompt that ends with `prompt`, from now on.
    pub fn answer(&mut self, prompt: &str, words: &str) {
        self.answers.retain(|(known, _)| known != prompt);
        self.answers.push((prompt.to_owned(), words.to_owned()));
    }

    /// A command of the host with the terminal's variables, in its folder.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.host.command(program);
        command.current_dir(&self.folder).env_clear().envs(self.variables.iter().cloned());
        command
    }

    /// Runs a line to its end.
    pub fn run(&mut self, line: &str) -> Outcome {
        let ended = self.run_until(line, None);
        let exported = line.strip_prefix("export ").and_then(|line| line.split_once('='));
        if let Some((name, _)) = exported {
            let mut print = self.command("bash");
            let value = run(print.args(["-c", &format!("{line}; printf %s \"${name}\"")]));
            self.set(name, &value.unwrap());
        }
        ended
    }

    /// Runs a line to its end, or types Control-C as soon as its output has `stop`.
    pub fn run_until(&self, line: &str, stop: Option<&str>) -> Outcome {
        let mut script = self.command("script");
        let line = format!("set -o pipefail; {line}");
        script.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
        let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut keys, mut screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let (send, pieces) = sync_channel(PIECES);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                if send.send(piece[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let (mut output, mut answered, mut is_stopped) = (String::new(), 0, false);
        let deadline = Instant::now() + LIMIT;
        loop {
            match pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(piece) => output.push_str(&String::from_utf8_lossy(&piece)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = script.kill();
                    panic!("`{line}` does not end within {} s: {output}", LIMIT.as_secs());
                }
            }
            let new = &output[answered..];
            let prompted = |(prompt, _): &&(String, String)| new.ends_with(prompt.as_str());
            if let Some((_, words)) = self.answers.iter().find(prompted) {
                answered = output.len();
                // A command that has ended needs no answer.
                let _ = writeln!(keys, "{words}");
            }
            if !is_stopped && stop.is_some_and(|stop| output.contains(stop)) {
                is_stopped = true;
                let _ = keys.write_all(CONTROL_C);
            }
        }
        let success = script.wait().unwrap().success();
        Outcome { success, output: output.replace('\r', "") }
    }
}
