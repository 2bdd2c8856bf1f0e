//! kubectl for one user of one server.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// Output of a program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// True for exit status 0.
    pub success: bool,
    /// Text of standard output.
    pub out: String,
    /// Text of standard error.
    pub err: String,
}

/// A kubectl with its own home folder, so that its discovery cache is separate.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Kubectl {
    /// The program at `program`, with the user and server of `kubeconfig`.
    ///
    /// # Errors
    /// The folder `home` cannot be made.
    pub fn new(program: PathBuf, kubeconfig: PathBuf, home: PathBuf) -> Result<Self> {
        fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        Ok(Self { program, kubeconfig, home })
    }

    /// Sets the whole environment of `command`: a PATH in which `kubectl` is this program, the
    /// kubeconfig and the home folder.
    pub fn lend(&self, command: &mut Command) {
        let folder = self.program.parent().unwrap_or(Path::new("/"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", folder.display());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("KUBECONFIG", &self.kubeconfig);
    }

    /// Runs kubectl to its end, with `input` on standard input.
    ///
    /// # Errors
    /// The program cannot be started, or its output is not valid UTF-8.
    pub fn run(&self, arguments: &[&str], input: &str) -> Result<Printed> {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        self.lend(&mut command);
        run(command, input)
    }

    /// True when the server's `/readyz` returns `ok`.
    pub fn is_ready(&self) -> bool {
        let look = self.run(&["get", "--raw", "/readyz", "--request-timeout=20s"], "");
        look.is_ok_and(|printed| printed.success && printed.out == "ok")
    }
}

/// Runs a command to its end with `input` on standard input.
///
/// # Errors
/// The program cannot be started, or its output is not valid UTF-8.
pub fn run(mut command: Command, input: &str) -> Result<Printed> {
    let words = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {words}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading its input reports that by its exit status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().with_context(|| format!("cannot wait for {words}"))?;
    let text = |bytes| String::from_utf8(bytes).with_context(|| format!("{words} printed no text"));
    Ok(Printed {
        success: output.status.success(),
        out: text(output.stdout)?,
        err: text(output.stderr)?,
    })
}
