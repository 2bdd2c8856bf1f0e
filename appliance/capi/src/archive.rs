//! The release as a local repository of `clusterctl`, for workstations that cannot use the URLs.

use crate::provider::Provider;
use crate::repository::{COMPONENTS, Release, Repository};

/// Folder of the archive's files below the configuration folder of `clusterctl`.
const FOLDER: &str = "tinbox";

impl Repository {
    /// Returns a tar archive with `tinbox/clusterctl.yaml` and the files of the release. Its
    /// content is the same for each request.
    pub fn archive(&self) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut put = |path: &str, text: &str| {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive
                .append_data(&mut header, format!("{FOLDER}/{path}"), text.as_bytes())
                .expect("writing to memory does not fail");
        };
        put("clusterctl.yaml", &self.local_config());
        for release in self.releases() {
            for (name, text) in &release.files {
                put(&format!("{}/{name}", folder(release)), text);
            }
        }
        archive.into_inner().expect("writing to memory does not fail")
    }

    /// Returns `clusterctl.yaml` for the files of the archive in the configuration folder.
    fn local_config(&self) -> String {
        self.config_with(|release| {
            let folder = folder(release);
            format!("${{HOME}}/.config/cluster-api/{FOLDER}/{folder}/{COMPONENTS}")
        })
    }

    /// Returns a shell script that puts the archive of the box at `origin` (such as
    /// `https://192.168.7.1`) into the configuration folder. It changes only the folder `tinbox`.
    /// `authority` is the certificate of the box's authority as PEM.
    pub fn script(&self, origin: &str, authority: &str) -> String {
        let (version, name) = (self.version(), Provider::Tinbox.name());
        format!(
            "#!/bin/sh\n\
             # Puts version {version} of the Cluster API provider of this box into the \
             configuration folder of clusterctl.\n\
             set -eu\n\
             folder=\"$HOME/.config/cluster-api\"\n\
             new=$(mktemp -d)\n\
             trap 'rm -rf \"$new\"' EXIT\n\
             cat >\"$new/ca.pem\" <<'END'\n\
             {authority}\
             END\n\
             curl -fsS --cacert \"$new/ca.pem\" -o \"$new/archive\" '{origin}/clusterctl.tar'\n\
             tar -x -C \"$new\" -f \"$new/archive\"\n\
             mkdir -p \"$folder\"\n\
             rm -rf \"$folder/{FOLDER}\"\n\
             mv \"$new/{FOLDER}\" \"$folder/{FOLDER}\"\n\
             echo \"next: clusterctl init --infrastructure {name} --config \
             $folder/{FOLDER}/clusterctl.yaml\"\n"
        )
    }
}

/// Returns the folder of a release in a local repository of clusterctl.
fn folder(release: &Release) -> String {
    format!("{}/{}", release.provider.label(), release.version)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use crate::Repository;

    #[test]
    fn the_archive_is_a_local_repository() {
        let repository = Repository::new("0.1.0");
        let bytes = repository.archive();
        assert_eq!(bytes, repository.archive());
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut files = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            assert!(!text.is_empty());
            files.push(entry.path().unwrap().to_string_lossy().into_owned());
        }
        assert!(files.contains(&"tinbox/clusterctl.yaml".to_owned()), "{files:?}");
        let metadata = "tinbox/infrastructure-tinbox/v0.1.0/metadata.yaml".to_owned();
        assert!(files.contains(&metadata), "{files:?}");
        let capt = "tinbox/infrastructure-tinkerbell/v0.101.0/metadata.yaml".to_owned();
        assert!(files.contains(&capt), "{files:?}");
    }
}
