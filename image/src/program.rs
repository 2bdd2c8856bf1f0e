//! Runs external programs of the build. Their environment is fixed, so that the output does not
//! depend on the caller's shell. A program that fails is an error.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// Folders of Debian's mkfs programs, which are not in every user's `PATH`.
const MORE_PATH: &str = ":/usr/sbin:/sbin";
/// Maximum lines of a program's output in an error.
const SHOWN_LINES: usize = 5;

/// External program, and the Debian package that contains it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub name: &'static str,
    pub package: &'static str,
}

impl Program {
    /// Returns the program as a command without arguments. Its times are `epoch` if it supports a
    /// fixed time.
    pub fn command(self, epoch: u64) -> Command {
        let path = env::var("PATH").unwrap_or_default() + MORE_PATH;
        let mut command = Command::new(self.name);
        command
            .env("PATH", path)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("SOURCE_DATE_EPOCH", epoch.to_string())
            .env("E2FSPROGS_FAKE_TIME", epoch.to_string())
            // mtools would check sizes like those of a floppy disk.
            .env("MTOOLS_SKIP_CHECK", "1");
        command
    }

    /// Runs `command` to its end and returns its output. `on` is the file that the program works
    /// on, for errors.
    pub fn run(self, command: &mut Command, on: &Path) -> Result<String, Error> {
        let output = command.stdin(Stdio::null()).output().map_err(|source| Error::Program {
            program: self.name,
            package: self.package,
            source,
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let from = said.lines().count().saturating_sub(SHOWN_LINES);
        let said: Vec<&str> = said.lines().skip(from).collect();
        let (program, status, path) = (self.name, output.status, on.to_owned());
        Err(Error::Refused { program, status, path, said: said.join("; ") })
    }
}
