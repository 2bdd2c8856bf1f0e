//! Reference to a file on another server, and the path at which the box serves it.

use percent_encoding::percent_decode_str;

use super::{Checksum, Digest};

/// URL scheme of uploaded files. No server has them: a lost file must be uploaded again.
pub const UPLOAD_SCHEME: &str = "upload://";
/// Path prefix of files of other servers on the boot port.
const FOLDER: &str = "/cache/";
/// File name for a URL without a file name.
const UNNAMED: &str = "file";

/// File on another server, with its expected checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// URL with the scheme `http://`, `https://` or `oci://`.
    pub url: String,
    /// Expected checksum. `None`: any content is accepted, and stored while the URL is needed.
    pub checksum: Option<Checksum>,
}

impl RemoteFile {
    /// Returns true for a file that a person uploaded.
    pub fn is_upload(&self) -> bool {
        self.url.starts_with(UPLOAD_SCHEME)
    }

    /// Returns the key of the file, 64 hexadecimal digits. Two values with the same URL and
    /// checksum have the same key.
    pub fn key(&self) -> String {
        let checksum = match &self.checksum {
            None => String::new(),
            Some(Checksum::Sha256(digest)) => digest.to_string(),
            Some(Checksum::Sha512(bytes)) => stdx::hex(bytes),
        };
        Digest::of(format!("{checksum} {}", self.url).as_bytes()).hex()
    }

    /// Returns `/cache/<key>/<path>`, with the URL's own path, because some clients detect
    /// compression by the file name, and a file of checksums may have the same name in several
    /// folders.
    pub fn path(&self) -> String {
        format!("{FOLDER}{}/{}", self.key(), self.place())
    }

    /// Returns the path of the URL, without decoding. If a client would normalize the path (RFC
    /// 3986 section 6.2.2.3), only the file name is returned.
    fn place(&self) -> &str {
        let decoded = |part| percent_decode_str(part).decode_utf8_lossy();
        let is_odd = |part| matches!(&*decoded(part), "" | "." | "..");
        let path = url_path(&self.url);
        if path.split('/').any(is_odd) { self.name() } else { path }
    }

    /// Returns the last component of the URL's path, without decoding.
    fn name(&self) -> &str {
        let name = url_path(&self.url).rsplit('/').next();
        name.filter(|name| !name.is_empty()).unwrap_or(UNNAMED)
    }

    /// Returns true if `decoded` is the file's path or name, percent-decoded.
    pub(super) fn is_named(&self, decoded: &str) -> bool {
        let is = |own| percent_decode_str(own).decode_utf8().is_ok_and(|own| own == decoded);
        is(self.place()) || is(self.name())
    }

    /// Returns the URL without the user and the query, which may be secrets.
    pub fn shown(&self) -> String {
        shown(&self.url)
    }
}

/// Returns a URL without the user and the query, which may be secrets.
pub fn shown(url: &str) -> String {
    let plain = plain(url);
    let Some((scheme, rest)) = plain.split_once("://") else { return plain.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Returns the path of a URL without its first `/`; empty if there is no path.
fn url_path(url: &str) -> &str {
    let plain = plain(url);
    let path = plain.split_once("://").map_or(plain, |(_, rest)| rest);
    path.split_once('/').map_or("", |(_, path)| path)
}

fn plain(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// Splits a path of [`RemoteFile::path`]'s form into the key and the decoded path of the file.
pub(crate) fn read_path(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(FOLDER)?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::{RemoteFile, read_path};

    fn remote(url: &str) -> RemoteFile {
        RemoteFile { url: url.to_owned(), checksum: None }
    }

    #[test]
    fn the_name_stays_and_secrets_do_not_show() {
        for (url, name, shown) in [
            ("http://a/b/debian.raw.zst", "b/debian.raw.zst", "http://a/b/debian.raw.zst"),
            ("https://me:pw@a/b/c.gz?token=x", "b/c.gz", "https://a/b/c.gz"),
            ("http://a/b/../c.gz", "c.gz", "http://a/b/../c.gz"),
            ("http://a/b/%2e%2E/c.gz", "c.gz", "http://a/b/%2e%2E/c.gz"),
            ("http://a//b/c.gz", "c.gz", "http://a//b/c.gz"),
            ("http://a/b/#x", "file", "http://a/b/"),
            ("http://a", "file", "http://a"),
            ("http://a?b=/c", "file", "http://a"),
            ("http://a/my%20disk.raw", "my%20disk.raw", "http://a/my%20disk.raw"),
        ] {
            let remote = remote(url);
            assert_eq!(remote.path(), format!("/cache/{}/{name}", remote.key()), "{url}");
            assert_eq!(remote.shown(), shown);
        }
    }

    #[test]
    fn a_path_is_read_back() {
        let remote = remote("http://a/b/my%20disk.raw");
        let path = remote.path().replace("%20", " ");
        let (key, name) = read_path(&path).unwrap();
        assert_eq!(key, remote.key());
        assert!(name == "b/my disk.raw" && remote.is_named(name));
        assert!(remote.is_named("my disk.raw"), "agents that began before an update of the box");
        assert!(!remote.is_named("../my disk.raw") && !remote.is_named(""));
        assert_eq!(read_path("/cache/x"), None);
    }
}
