//! A file somewhere else, and the path at which the box serves it.

use percent_encoding::percent_decode_str;

use super::{Checksum, Digest};

/// Where the boot services have the files of other servers.
const FOLDER: &str = "/cache/";
/// The name of a file whose URL names none.
const UNNAMED: &str = "file";

/// A file somewhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// `http://`, `https://` or `oci://`.
    pub url: String,
    /// `None`: whatever comes is taken, and kept for as long as the URL is wanted.
    pub checksum: Option<Checksum>,
}

impl Wanted {
    /// 64 hexadecimal digits; two that mean the same file under the same condition have the same.
    pub fn key(&self) -> String {
        let checksum = match &self.checksum {
            None => String::new(),
            Some(Checksum::Sha256(digest)) => digest.to_string(),
            Some(Checksum::Sha512(bytes)) => stdx::hex(bytes),
        };
        Digest::of(format!("{checksum} {}", self.url).as_bytes()).hex()
    }

    /// `/cache/<key>/<file name>`. The name is the URL's: there are clients that tell by it how a
    /// file is packed.
    pub fn path(&self) -> String {
        format!("{FOLDER}{}/{}", self.key(), self.name())
    }

    /// The last part of the URL's path, as it is written there.
    fn name(&self) -> &str {
        let plain = plain(&self.url);
        let path = plain.split_once("://").map_or(plain, |(_, rest)| rest);
        let name = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next());
        name.filter(|name| !name.is_empty()).unwrap_or(UNNAMED)
    }

    /// Whether this is the file's name, decoded.
    pub(super) fn is_named(&self, decoded: &str) -> bool {
        percent_decode_str(self.name()).decode_utf8().is_ok_and(|name| name == decoded)
    }

    /// The URL without what may be a secret: the user, the query.
    pub fn shown(&self) -> String {
        shown(&self.url)
    }
}

/// A URL without what may be a secret: the user, the query.
pub fn shown(url: &str) -> String {
    let plain = plain(url);
    let Some((scheme, rest)) = plain.split_once("://") else { return plain.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

fn plain(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// The key and the decoded name in a decoded path of [`Wanted::path`]'s form.
pub(crate) fn read_path(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(FOLDER)?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::{Wanted, read_path};

    fn wanted(url: &str) -> Wanted {
        Wanted { url: url.to_owned(), checksum: None }
    }

    #[test]
    fn the_name_stays_and_secrets_do_not_show() {
        for (url, name, shown) in [
            ("http://a/b/debian.raw.zst", "debian.raw.zst", "http://a/b/debian.raw.zst"),
            ("https://me:pw@a/b/c.gz?token=x", "c.gz", "https://a/b/c.gz"),
            ("http://a/b/#x", "file", "http://a/b/"),
            ("http://a", "file", "http://a"),
            ("http://a?b=/c", "file", "http://a"),
            ("http://a/my%20disk.raw", "my%20disk.raw", "http://a/my%20disk.raw"),
        ] {
            let wanted = wanted(url);
            assert_eq!(wanted.path(), format!("/cache/{}/{name}", wanted.key()), "{url}");
            assert_eq!(wanted.shown(), shown);
        }
    }

    #[test]
    fn a_path_is_read_back() {
        let wanted = wanted("http://a/my%20disk.raw");
        let path = wanted.path().replace("%20", " ");
        let (key, name) = read_path(&path).unwrap();
        assert_eq!(key, wanted.key());
        assert!(wanted.is_named(name));
        assert!(!wanted.is_named("../my disk.raw") && !wanted.is_named(""));
        assert_eq!(read_path("/cache/x"), None);
    }
}
