//! Reads the configuration file.

pub mod mistakes;
pub mod sections;

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::{Config, SystemKind};

/// Mistakes of a configuration file.
#[derive(Debug)]
pub struct Problems {
    file: PathBuf,
    list: Vec<String>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use the configuration {}", self.file.display())?;
        self.list.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// Reads and checks a configuration file. A flashed box without a file gets the defaults.
///
/// # Errors
/// The file cannot be read, or has mistakes; all of them are reported.
pub fn load(file: &Path, system_kind: SystemKind) -> Result<Config, Problems> {
    let fail = |list| Problems { file: file.to_owned(), list };
    let text = match std::fs::read_to_string(file) {
        Err(error)
            if system_kind == SystemKind::Firmware && error.kind() == ErrorKind::NotFound =>
        {
            String::new()
        }
        read => read.map_err(|error| fail(vec![error.to_string()]))?,
    };
    Config::read(&text, system_kind).map_err(fail)
}
