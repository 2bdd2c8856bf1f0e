//! Stock programs that are built from their modules, because nobody packages them at the version
//! the box is compared with.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Programs of the module in `tests/peers/<module>`, built where no earlier run left them: what its
/// `build.sh` prints when given `names`, one program each; without names it has only one.
///
/// # Errors
/// What it needs is missing, or a program does not build; the script has said which.
pub fn built(module: &str, names: &[&str]) -> Result<Vec<PathBuf>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(module).join("build.sh");
    let paths = printed(&script, names)?;
    ensure!(paths.len() == names.len().max(1), "build.sh printed {paths:?} for {names:?}");
    Ok(paths)
}

/// The paths that a script prints, one a line.
///
/// # Errors
/// It cannot be run, or fails; it has said why.
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
