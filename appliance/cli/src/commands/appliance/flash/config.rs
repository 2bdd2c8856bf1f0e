//! The `box.toml` that goes with a box to its place: read before the disk is opened, so that what
//! the box would refuse as a whole is told at a desk and not at a rack.
//!
//! Never more than its syntax and its sections: what they may say is the box's to judge, which
//! tells every mistake with its line on its screen and serial line.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Spanned, Value};

use super::image::text;
use crate::error::Error;

/// Larger files are no configuration.
const BYTES_MAX: u64 = 1 << 18;

/// What a configuration has at its top (`supervisor`'s `Config`, which a test compares).
const SECTIONS: [&str; 14] = [
    "name",
    "time",
    "upgrade",
    "network",
    "management",
    "boot",
    "api",
    "agents",
    "templates",
    "bmc",
    "images",
    "web",
    "panel",
    "metadata",
];

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
    // Editors that write a byte order mark are those on the laptops that write the card.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read: BTreeMap<Spanned<String>, Value> =
        toml::from_str(text).map_err(|error| error.to_string())?;
    let mut unknown: Vec<_> =
        read.keys().filter(|key| !SECTIONS.contains(&key.get_ref().as_str())).collect();
    unknown.sort_by_key(|key| key.span().start);
    if unknown.is_empty() {
        return Ok(());
    }
    let line = |at: usize| text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    let tell =
        |key: &&Spanned<String>| format!("line {}: {}", line(key.span().start), key.get_ref());
    let told: Vec<String> = unknown.iter().map(tell).collect();
    Err(format!("a box knows nothing of this ({}): {}", SECTIONS.join(", "), told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::{SECTIONS, check, read};

    /// The supervisor imports everything and is imported by nothing: its sections are read off it.
    #[test]
    fn the_sections_are_the_boxs_own() {
        let source = include_str!("../../../../../supervisor/src/config.rs");
        let fields = source.split_once("pub struct Config {").unwrap().1;
        let fields = fields.split_once("\n}").unwrap().0;
        let mut skipped = false;
        let mut found = Vec::new();
        for line in fields.lines().map(str::trim) {
            let field = line.strip_prefix("pub ").and_then(|line| line.split_once(':'));
            match field {
                Some((name, _)) if !skipped => found.push(name),
                Some(_) => skipped = false,
                None => skipped |= line == "#[serde(skip)]",
            }
        }
        assert_eq!(found, SECTIONS, "add what the box has learnt to SECTIONS");
    }

    #[test]
    fn what_a_box_takes_is_taken_from_any_editor() {
        check("").unwrap();
        check("\u{feff}name = 'cellar'\r\n[time]  \r\nservers = []\r\n").unwrap();
        check("[[management]]\nvlan = 7\n[network]\n[network.pool]\n").unwrap();
    }

    #[test]
    fn what_no_box_takes_is_told_with_its_line() {
        let syntax = check("name = 'cellar'\n[network\n").unwrap_err();
        assert!(syntax.contains("line 2"), "{syntax}");
        let twice = check("name = 'a'\nname = 'b'\n").unwrap_err();
        assert!(twice.contains("line 2") && twice.contains("duplicate"), "{twice}");
        let unknown = check("name = 'a'\nspeed = 1\n[netwrok]\nmode = 'off'\n").unwrap_err();
        assert!(unknown.ends_with("line 2: speed; line 3: netwrok"), "{unknown}");
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
