//! Outputs as files: `UPDATE=1` writes what is printed now, to be read in the diff.

use std::path::Path;

/// Compare `text` with `tests/golden/<name>`.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(want == text, "{} is\n{want}\nand should be\n{text}", path.display());
}
