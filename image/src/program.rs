//! Programs of the machine that builds: started with a fixed environment, so that what they make
//! does not depend on whose shell it was, and believed only when they end well.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// Where Debian keeps the makers of file systems, which not every user's `PATH` names.
const MORE_PATH: &str = ":/usr/sbin:/sbin";
/// Of a program's last words, the lines that are shown.
const SHOWN_LINES: usize = 5;

/// A program, and the package that brings it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub name: &'static str,
    pub package: &'static str,
}

impl Program {
    /// The program with no arguments yet. Its times are `epoch` where it knows how to take one.
    pub fn command(self, epoch: u64) -> Command {
        let path = env::var("PATH").unwrap_or_default() + MORE_PATH;
        let mut command = Command::new(self.name);
        command
            .env("PATH", path)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("SOURCE_DATE_EPOCH", epoch.to_string())
            .env("E2FSPROGS_FAKE_TIME", epoch.to_string())
            // mtools checks sizes as a floppy drive would.
            .env("MTOOLS_SKIP_CHECK", "1");
        command
    }

    /// Runs `command` to its end; what it printed. `on` is what it works on.
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
