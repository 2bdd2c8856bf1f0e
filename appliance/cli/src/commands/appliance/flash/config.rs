//! The `box.toml` that goes with a box to its place: read before the disk is opened, so that what
//! the box would refuse as a whole is told at a desk and not at a rack.
//!
//! The checks are the box's own (`config`), but for folders and files, which only the box has.

use std::path::Path;

use config::mistakes::checked_elsewhere;

use super::image::text;
use crate::error::Error;

/// Larger files are no configuration.
const BYTES_MAX: u64 = 1 << 18;

/// The text of the file at `path`, as it is.
///
/// # Errors
/// It cannot be read, is too large, or is nothing that a box takes: with the line.
pub fn read(path: &Path) -> Result<String, Error> {
    let wrong = |why: String| Error::Content { file: path.display().to_string(), why };
    let text = text(path, BYTES_MAX + 1)?.ok_or_else(|| wrong("it is absent".to_owned()))?;
    if text.len() as u64 > BYTES_MAX {
        let limit = stdx::bytes(BYTES_MAX);
        return Err(wrong(format!("it has more than {limit}, which is no configuration")));
    }
    check(&text).map_err(wrong)?;
    Ok(text)
}

/// What is wrong with `text`, as a phrase.
fn check(text: &str) -> Result<(), String> {
    checked_elsewhere(text).map_err(|mistakes| {
        let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        told.join("; ")
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
        assert!(value.contains("; line 4: time.zone: \"Berlin\" is no time zone"), "{value}");
        let twice = check("name = 'a'\nname = 'b'\n").unwrap_err();
        assert!(twice.contains("line 2") && twice.contains("duplicate"), "{twice}");
        let unknown = check("name = 'a'\nspeed = 1\n[agents]\nfast = 1\n").unwrap_err();
        assert!(unknown.contains("line 2: unknown field `speed`"), "{unknown}");
        assert!(unknown.contains("line 4: unknown field `fast`"), "{unknown}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("box.toml");
        let said = |file| read(file).unwrap_err().to_string();
        assert!(said(&file).ends_with("box.toml: it is absent"), "{}", said(&file));
        std::fs::write(&file, "# \n".repeat(1 << 17)).unwrap();
        assert!(said(&file).contains("more than 256 KiB"), "{}", said(&file));
        std::fs::write(&file, b"name = '\xff'").unwrap();
        assert!(said(&file).contains("cannot read"), "{}", said(&file));
    }
}
