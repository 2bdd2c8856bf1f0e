//! Path of a file in a GitLab package registry.

/// Requested file of a release:
/// `/api/v4/projects/{slug}/packages/generic/{package}/{version}/{file}`.
///
/// `clusterctl` accepts any host whose name begins with `gitlab.`, and requests one file by one
/// GET (sigs.k8s.io/cluster-api, cmd/clusterctl/client/repository/repository_gitlab.go).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackagePath<'a> {
    /// Project, escaped to one segment, such as `box%2Ffirmware`.
    pub slug: &'a str,
    /// Package, which is the label of a provider, such as `infrastructure-tinbox`.
    pub package: &'a str,
    /// Version of the package, such as `v0.1.0`.
    pub version: &'a str,
    /// Name of the file, such as `metadata.yaml`.
    pub file: &'a str,
}

/// The path is not a file of a GitLab package registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected /api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE")]
pub struct InvalidPath;

impl<'a> PackagePath<'a> {
    /// Reads the path of a URL as it was sent, without decoding: a decoded `%2F` would be a
    /// separator.
    ///
    /// # Errors
    /// The path has other segments.
    pub fn parse(path: &'a str) -> Result<Self, InvalidPath> {
        let mut segments = path.split('/');
        for fixed in ["", "api", "v4", "projects"] {
            expect(segments.next(), fixed)?;
        }
        let slug = given(segments.next())?;
        for fixed in ["packages", "generic"] {
            expect(segments.next(), fixed)?;
        }
        let (package, version) = (given(segments.next())?, given(segments.next())?);
        let file = given(segments.next())?;
        if segments.next().is_some() {
            return Err(InvalidPath);
        }
        Ok(Self { slug, package, version, file })
    }
}

fn expect(segment: Option<&str>, fixed: &str) -> Result<(), InvalidPath> {
    if segment == Some(fixed) { Ok(()) } else { Err(InvalidPath) }
}

fn given(segment: Option<&str>) -> Result<&str, InvalidPath> {
    segment.filter(|segment| !segment.is_empty()).ok_or(InvalidPath)
}

#[cfg(test)]
mod tests {
    use super::{InvalidPath, PackagePath};

    #[test]
    fn a_path_of_clusterctl_is_read() {
        let path = "/api/v4/projects/box%2Ffirmware/packages/generic/infrastructure-tinbox/v0.1.0/\
                    metadata.yaml";
        let read = PackagePath {
            slug: "box%2Ffirmware",
            package: "infrastructure-tinbox",
            version: "v0.1.0",
            file: "metadata.yaml",
        };
        assert_eq!(PackagePath::parse(path), Ok(read));
    }

    #[test]
    fn other_paths_are_not_files_of_a_package() {
        for path in [
            "",
            "/",
            "/api/v4/projects/box/firmware/packages/generic/p/v1.0.0/f",
            "/api/v4/projects/box/packages/generic/p/v1.0.0",
            "/api/v4/projects/box/packages/generic/p/v1.0.0/f/more",
            "/api/v4/projects/box/packages/generic/p//f",
            "/api/v4/projects//packages/generic/p/v1.0.0/f",
            "/api/v3/projects/box/packages/generic/p/v1.0.0/f",
        ] {
            assert_eq!(PackagePath::parse(path), Err(InvalidPath), "{path}");
        }
    }
}
