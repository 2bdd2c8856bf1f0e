//! Checks the `box.toml` for a new box before the disk is opened.
//!
//! The crate `config` makes the checks of the box; folders and files need not exist here.

use std::path::Path;

use config::mistakes::checked_elsewhere;

use crate::error::FlashError;
use crate::file::text;

/// Maximum size of a configuration, in bytes.
const BYTES_MAX: u64 = 1 << 18;

/// Reads the text of the file at `path`.
///
/// # Errors
/// The file cannot be read, is too large, or has mistakes (reported with their lines).
pub fn read(path: &Path) -> Result<String, FlashError> {
    let wrong = |why: String| FlashError::Content { file: path.display().to_string(), why };
    let text = text(path, BYTES_MAX + 1)?.ok_or_else(|| wrong("it does not exist".to_owned()))?;
    if text.len() as u64 > BYTES_MAX {
        let limit = stdx::bytes(BYTES_MAX);
        return Err(wrong(format!("it is larger than {limit}")));
    }
    check(&text).map_err(wrong)?;
    Ok(text)
}

/// Checks `text`; the error lists the mistakes as a phrase.
fn check(text: &str) -> Result<(), String> {
    checked_elsewhere(text).map_err(|mistakes| {
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        lines.join("; ")
    })
}

#[cfg(test)]
mod tests {
    use super::{check, read};

    #[test]
    fn what_a_box_takes_is_taken_from_any_editor() {
        check("").unwrap();
        check("\u{feff}name = 'cellar'\r\n[time]  \r\nservers = []\r\n").unwrap();
        check("[[management]]\ninterface = 'eth0'\nvlan = 7\n[boot]\nartifacts = '/gone'\n")
            .unwrap();
    }

    #[test]
    fn what_no_box_takes_is_told_with_its_line() {
        let syntax = check("name = 'cellar'\n[network\n").unwrap_err();
        assert!(syntax.contains("line 2"), "{syntax}");
        let value = check("[agents]\nsilence_secs = 1\n[time]\nzone = 'Berlin'\n").unwrap_err();
        assert!(value.starts_with("line 2: agents.silence_secs: 1 s is not between"), "{value}");
        assert!(value.contains("; line 4: time.zone: \"Berlin\" is not a time zone"), "{value}");
        let twice = check("name = 'a'\nname = 'b'\n").unwrap_err();
        assert!(twice.contains("line 2") && twice.contains("duplicate"), "{twice}");
        let unknown = check("name = 'a'\nspeed = 1\n[agents]\nfast = 1\n").unwrap_err();
        assert!(unknown.contains("line 2: unknown field `speed`"), "{unknown}");
        assert!(unknown.contains("line 4: unknown field `fast`"), "{unknown}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("box.toml");
        let error_of = |file| read(file).unwrap_err().to_string();
        assert!(error_of(&file).ends_with("box.toml: it does not exist"), "{}", error_of(&file));
        std::fs::write(&file, "# \n".repeat(1 << 17)).unwrap();
        assert!(error_of(&file).contains("larger than 256 KiB"), "{}", error_of(&file));
        std::fs::write(&file, b"name = '\xff'").unwrap();
        assert!(error_of(&file).contains("cannot read"), "{}", error_of(&file));
    }
}
