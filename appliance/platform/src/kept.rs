//! Small files of the box, replaced durably: after a power cut there is the old one or the
//! new one.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Writes `content` to `folder/name`.
pub fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let part = folder.join(format!("{name}.part"));
    let mut file = File::create(&part)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&part, folder.join(name))?;
    File::open(folder)?.sync_all()
}

/// Reads at most `limit` bytes of a file; `None` when there is none.
pub fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Reads `folder/name`, at most `limit` bytes of it, and removes it.
pub fn take(folder: &Path, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let path = folder.join(name);
    let content = read(&path, limit)?;
    if content.is_some() {
        fs::remove_file(&path)?;
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::{replace, take};

    #[test]
    fn what_is_kept_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(take(folder.path(), "it", 9).unwrap(), None);
        replace(folder.path(), "it", b"old").unwrap();
        replace(folder.path(), "it", b"new and long").unwrap();
        assert_eq!(take(folder.path(), "it", 7).unwrap().unwrap(), b"new and");
        assert_eq!(take(folder.path(), "it", 7).unwrap(), None);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
