//! ID of the computer on which the box runs. A backup restored on a second computer makes it the
//! same box, but not the same device.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use durable_file::replace_private;

/// File in the state folder with the ID. Crate `lifecycle` leaves files with this suffix out of
/// backups, and a restore keeps them.
const FILE: &str = "id.device";
/// Bytes of an ID.
const BYTES: usize = 8;

/// Returns the ID of the device; creates the ID at the first start. A damaged file is replaced,
/// which makes this another device.
///
/// # Errors
/// The file cannot be read or written.
pub fn ensure(state: &Path) -> io::Result<String> {
    match fs::read_to_string(state.join(FILE)) {
        Ok(id) if stdx::unhex(id.trim()).is_some_and(|bytes| bytes.len() == BYTES) => {
            return Ok(id.trim().to_owned());
        }
        Ok(_) => {}
        Err(error) if [ErrorKind::NotFound, ErrorKind::InvalidData].contains(&error.kind()) => {}
        Err(error) => return Err(error),
    }
    let id = stdx::random_hex(BYTES);
    replace_private(state, FILE, format!("{id}\n").as_bytes())?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{FILE, ensure};

    #[test]
    fn a_device_keeps_its_id_until_the_file_is_damaged() {
        let state = tempfile::tempdir().unwrap();
        let id = ensure(state.path()).unwrap();
        assert_eq!(id.len(), 16);
        assert_eq!(ensure(state.path()).unwrap(), id);
        for damaged in [&b""[..], b"0011", b"zz11223344556677", b"\xff"] {
            fs::write(state.path().join(FILE), damaged).unwrap();
            assert_ne!(ensure(state.path()).unwrap(), id);
        }
    }
}
