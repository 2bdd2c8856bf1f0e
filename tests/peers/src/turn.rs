//! Mutual exclusion between processes: nextest runs each test in a process of its own.

use std::env;
use std::fs::{File, create_dir_all};
use std::path::PathBuf;

use anyhow::{Context, Result};

/// Waits for the lock `name` of this machine. The lock ends when the returned file is dropped, or
/// when this process ends.
///
/// # Errors
/// The cache's folder cannot be written.
pub fn turn(name: &str) -> Result<File> {
    let folder = cache()?.join("turns");
    create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(format!("{name}.lock"));
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// Folder in which `tests/cached.sh` stores the programs that it built.
///
/// # Errors
/// None of the environment variables for the folder is set.
pub fn cache() -> Result<PathBuf> {
    let of = |variable: &str| env::var_os(variable).map(PathBuf::from);
    of("TINBOX_CACHE")
        .or_else(|| of("XDG_CACHE_HOME").map(|folder| folder.join("tinbox")))
        .or_else(|| of("HOME").map(|folder| folder.join(".cache/tinbox")))
        .context("neither TINBOX_CACHE, XDG_CACHE_HOME nor HOME is set")
}
