//! Golden files: expected outputs of tests, in the folder `tests/golden` of their crate. With
//! `UPDATE=1` in the environment, a test writes its output to the file, and a person checks the
//! change in the Git diff.
//!
//! Never: part of a product, only a dev-dependency. Enter at [`check`], at [`compare`] for a test
//! that reports all differences, and at [`compare_file`] for a file elsewhere.

use std::path::{Path, PathBuf};

/// True if tests write their outputs to the golden files: `UPDATE` is set.
pub fn updates() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// Path of a golden file of the crate under test.
///
/// # Panics
/// Cargo does not run the test, so `CARGO_MANIFEST_DIR` is not set.
pub fn path(name: &str) -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it for a test");
    Path::new(&folder).join("tests/golden").join(name)
}

/// Compares `text` with a golden file of the crate under test.
///
/// # Panics
/// The output and the file differ.
#[track_caller]
pub fn check(name: &str, text: &str) {
    compare(name, text).unwrap_or_else(|difference| panic!("{difference}"));
}

/// Compares `text` with a golden file of the crate under test.
///
/// # Errors
/// The first line that differs.
///
/// # Panics
/// With `UPDATE=1`, the file cannot be written.
pub fn compare(name: &str, text: &str) -> Result<(), String> {
    compare_file(&path(name), text)
}

/// Compares `text` with a file.
///
/// # Errors
/// The first line that differs.
///
/// # Panics
/// With `UPDATE=1`, the file cannot be written.
pub fn compare_file(file: &Path, text: &str) -> Result<(), String> {
    if updates() {
        write(file, text.as_bytes());
        return Ok(());
    }
    let golden = std::fs::read_to_string(file).unwrap_or_default();
    difference(&golden, text).map_or(Ok(()), |(number, expected, found)| {
        let file = file.display();
        Err(format!(
            "{file}:{number}: expected {expected:?}, found {found:?}; UPDATE=1 rewrites the file"
        ))
    })
}

/// Compares `bytes` with a golden file of the crate under test: `is_same` receives the content of
/// the file and `bytes`, and returns true if they count as equal.
///
/// # Errors
/// The output and the file differ.
///
/// # Panics
/// With `UPDATE=1`, the file cannot be written.
pub fn compare_bytes(
    name: &str,
    bytes: &[u8],
    is_same: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<(), String> {
    let file = path(name);
    if updates() {
        write(&file, bytes);
        return Ok(());
    }
    let golden = std::fs::read(&file).unwrap_or_default();
    if is_same(&golden, bytes) {
        return Ok(());
    }
    Err(format!("{} differs; UPDATE=1 rewrites the file", file.display()))
}

fn write(file: &Path, bytes: &[u8]) {
    let folder = file.parent().expect("the file is in a folder");
    std::fs::create_dir_all(folder).expect("the folder can be made");
    std::fs::write(file, bytes).expect("the file can be written");
}

/// Returns the first line that differs: its number, the line of `golden` and the line of `text`.
fn difference<'a>(golden: &'a str, text: &'a str) -> Option<(usize, &'a str, &'a str)> {
    if golden == text {
        return None;
    }
    // The ends of the lines are compared too, and one text may have more lines.
    let lines = |text: &'a str| text.split_inclusive('\n').chain(std::iter::repeat(""));
    let mut pairs = lines(golden).zip(lines(text)).zip(1..);
    pairs.find(|((one, other), _)| one != other).map(|((one, other), number)| (number, one, other))
}

#[cfg(test)]
mod tests {
    use super::{compare_file, difference, updates};

    #[test]
    fn the_first_different_line_is_found() {
        for (golden, text, found) in [
            ("a\nb\n", "a\nb\n", None),
            ("a\nb\n", "a\nc\n", Some((2, "b\n", "c\n"))),
            ("a\n", "a\nb\n", Some((2, "", "b\n"))),
            ("a\nb\n", "a\n", Some((2, "b\n", ""))),
            ("a\n", "a", Some((1, "a\n", "a"))),
            ("a\r\n", "a\n", Some((1, "a\r\n", "a\n"))),
            ("", "a", Some((1, "", "a"))),
        ] {
            assert_eq!(difference(golden, text), found, "{golden:?} {text:?}");
        }
    }

    #[test]
    fn a_file_that_is_missing_or_different_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("output.txt");
        assert!(updates() || compare_file(&file, "a\n").unwrap_err().contains("output.txt:1: "));
        std::fs::write(&file, "a\n").unwrap();
        assert_eq!(compare_file(&file, "a\n"), Ok(()));
    }
}
