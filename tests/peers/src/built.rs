//! Programs that the box is compared with. The `build.sh` of each folder builds or fetches one,
//! because no distribution packages the needed version.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Returns programs of the module in `tests/peers/<module>`, and builds those that no earlier run
/// has built. Its `build.sh` prints one path for each of `names`; without names the module has one
/// program.
///
/// # Errors
/// A dependency is missing, or a program does not build; the script has printed the reason.
pub fn built(module: &str, names: &[&str]) -> Result<Vec<PathBuf>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(module).join("build.sh");
    let paths = printed(&script, names)?;
    ensure!(paths.len() == names.len().max(1), "build.sh printed {paths:?} for {names:?}");
    Ok(paths)
}

/// Returns the paths that a script prints, one per line.
///
/// # Errors
/// The script cannot be run, or fails; it has printed the reason.
pub fn printed(script: &Path, arguments: &[&str]) -> Result<Vec<PathBuf>> {
    let output = Command::new(script)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", script.display()))?;
    ensure!(output.status.success(), "{} fails for {arguments:?}", script.display());
    let text = String::from_utf8(output.stdout).context("the script printed no text")?;
    Ok(text.lines().map(PathBuf::from).collect())
}
