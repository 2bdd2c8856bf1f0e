//! Volumes of a container: `source:target[:options]`, as in Docker's `--volume`.

/// Accepted options without effect: defaults here, or options for SELinux or macOS.
const INERT: [&str; 12] = [
    "rw",
    "z",
    "Z",
    "nocopy",
    "consistent",
    "cached",
    "delegated",
    "private",
    "rprivate",
    "slave",
    "rslave",
    "rbind",
];

/// Bind mount of a folder, or an empty folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Folder of this OS; `None` for a new, empty folder in the container.
    pub source: Option<String>,
    /// Path in the container.
    pub target: String,
    /// True for a read-only mount (option `ro`).
    pub read_only: bool,
}

impl Volume {
    /// Parses `source:target[:options]`, or `target` alone.
    ///
    /// # Errors
    /// The volume is invalid; the text is the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = text.split(':');
        let (first, second) = (fields.next().unwrap_or_default(), fields.next());
        let options = fields.next().unwrap_or_default();
        let bad = |why: &str| Err(format!("the volume {text:?} {why}"));
        if fields.next().is_some() {
            return bad("is not source:target:options");
        }
        let (source, target) = match second {
            Some(target) => (Some(first), target),
            None => (None, first),
        };
        if source.is_some_and(|source| !source.starts_with('/')) {
            return bad("has a relative source: named volumes are not supported");
        }
        if !target.starts_with('/') || target.split('/').all(|part| part.is_empty() || part == ".")
        {
            return bad("has a target that is not an absolute path below /");
        }
        if text.contains('\0') || target.split('/').any(|part| part == "..") {
            return bad("has a target that contains .. or a NUL");
        }
        let mut read_only = false;
        for option in options.split(',').filter(|option| !option.is_empty()) {
            match option {
                "ro" => read_only = true,
                option if INERT.contains(&option) => {}
                _ => return bad("has an unknown option: use ro or rw"),
            }
        }
        let (source, target) = (source.map(str::to_owned), target.to_owned());
        Ok(Self { source, target, read_only })
    }
}

#[cfg(test)]
mod tests {
    use super::Volume;

    #[test]
    fn volumes_are_read_as_docker_writes_them() {
        for (text, source, target, read_only) in [
            ("/dev:/dev", Some("/dev"), "/dev", false),
            ("/a/b:/c:ro", Some("/a/b"), "/c", true),
            ("/a:/c:rw", Some("/a"), "/c", false),
            ("/a:/c:z,ro,rslave", Some("/a"), "/c", true),
            ("/data", None, "/data", false),
        ] {
            let wanted =
                Volume { source: source.map(str::to_owned), target: target.to_owned(), read_only };
            assert_eq!(Volume::parse(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn every_mistake_has_its_sentence() {
        for (text, words) in [
            ("", "not an absolute path below /"),
            ("name:/data", "named volumes are not supported"),
            ("/a:b", "not an absolute path below /"),
            ("/a:/", "not an absolute path below /"),
            ("/a://./", "not an absolute path below /"),
            ("/a:/b/../../c", "contains .."),
            ("/a:/b:what", "an unknown option"),
            ("/a:/b:ro:rw", "is not source:target:options"),
        ] {
            let error = Volume::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
