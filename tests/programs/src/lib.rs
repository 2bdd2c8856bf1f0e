//! Finds the programs of this workspace that tests, demos and benches run.
//!
//! `make build` compiles them at the optimization level that emulated machines need and copies them
//! to `target/programs`. Cargo's own folder is not searched: `cargo test` puts a slower build of
//! some programs there, under the same names.
//!
//! Never builds a program. Enter at [`find`].

use std::fmt;
use std::path::{Path, PathBuf};

/// Environment variable with the folder of the programs.
pub const FOLDER: &str = "TINBOX_BIN";

/// A program that was not built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    name: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not built\nhint: make build", self.name)
    }
}

impl std::error::Error for Missing {}

/// Returns the path of a program. If [`FOLDER`] is set, only this folder is searched. Otherwise:
/// the folder of the running program (unless that is a test), then `programs` in each folder above,
/// such as `target/programs`.
///
/// # Errors
/// The program is in none of these folders.
pub fn find(name: &str) -> Result<PathBuf, Missing> {
    let named = std::env::var_os(FOLDER).map(PathBuf::from);
    let own = std::env::current_exe().unwrap_or_default();
    candidates(named.as_deref(), &own, name)
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| Missing { name: name.to_owned() })
}

/// Paths to try, in order.
fn candidates(named: Option<&Path>, own: &Path, name: &str) -> Vec<PathBuf> {
    if let Some(folder) = named {
        return vec![folder.join(name)];
    }
    let beside = own.parent().filter(|folder| !folder.ends_with("deps"));
    let above = own.ancestors().skip(1).map(|folder| folder.join("programs").join(name));
    beside.map(|folder| folder.join(name)).into_iter().chain(above).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_folder_is_the_only_one() {
        let found = candidates(Some(Path::new("/bin")), Path::new("/t/deps/test"), "tinboxd");
        assert_eq!(found, [Path::new("/bin/tinboxd")]);
    }

    #[test]
    fn a_test_takes_the_programs_of_its_target_folder() {
        let own = Path::new("/c/target/x86_64/debug/deps/test-0123");
        let found = candidates(None, own, "tinboxd");
        assert!(found.contains(&PathBuf::from("/c/target/programs/tinboxd")), "{found:?}");
        assert!(!found.contains(&PathBuf::from("/c/target/x86_64/debug/deps/tinboxd")));
        assert!(!found.contains(&PathBuf::from("/c/target/x86_64/debug/tinboxd")));
    }

    #[test]
    fn a_program_takes_its_neighbors_first() {
        let found = candidates(None, Path::new("/c/target/release/tinbox-demo"), "tinboxd");
        assert_eq!(found[0], Path::new("/c/target/release/tinboxd"));
    }

    #[test]
    fn a_missing_program_says_how_to_build_it() {
        let missing = find("no-such-program").unwrap_err();
        assert_eq!(missing.to_string(), "no-such-program is not built\nhint: make build");
    }
}
