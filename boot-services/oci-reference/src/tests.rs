use super::{Manifest, Reference};

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn references_name_their_registry_and_which_manifest() {
    let read = |text: &str| {
        let it = Reference::parse(text).unwrap();
        let manifest = match it.manifest {
            Manifest::Tag(tag) => tag,
            Manifest::Digest(digest) => digest.to_string(),
        };
        (it.registry, it.repository, manifest)
    };
    let digest = format!("sha256:{HEX}");
    for (text, registry, repository, manifest) in [
        ("ghcr.io/a/b/ubuntu-2204:v1.31.0.gz", "ghcr.io", "a/b/ubuntu-2204", "v1.31.0.gz"),
        ("192.168.0.173/test/debian:raw.gz", "192.168.0.173", "test/debian", "raw.gz"),
        ("localhost/x:y", "localhost", "x", "y"),
        (&format!("rack:5000/x@{digest}"), "rack:5000", "x", &digest),
        (&format!("[fd00::1]:5000/x:y@{digest}"), "[fd00::1]:5000", "x", &digest),
    ] {
        assert_eq!(read(text), (registry.to_owned(), repository.to_owned(), manifest.to_owned()));
    }
}

#[test]
fn other_references_are_refused_with_the_reason() {
    for (text, words) in [
        ("debian", "host/name:tag"),
        ("library/debian:12", "begin with the registry's host"),
        ("ghcr.io/a/b", "end with :tag"),
        ("ghcr.io/a/b:", "end with :tag"),
        ("ghcr.io/a/B:c", "lower-case"),
        ("ghcr.io/../b:c", "lower-case"),
        ("ghcr.io//b:c", "lower-case"),
        ("ghcr.io/a@sha256:12", "64 digits"),
        ("ghcr.io/a:b/c", "end with :tag"),
        ("me:pw@ghcr.io/a:b", "begin with the registry's host"),
    ] {
        let refused = Reference::parse(text).unwrap_err();
        assert!(refused.contains(words), "{text}: {refused}");
    }
}
