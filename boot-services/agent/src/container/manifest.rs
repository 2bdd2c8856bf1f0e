//! Parses the manifest of an image (OCI image specification, "Image Index" and "Image Manifest";
//! Docker's older documents have the same fields).

use serde::Deserialize;

/// Maximum size in bytes of a manifest or index: the minimum that the specification requires.
pub const MANIFEST_BYTES: u64 = 4 << 20;
/// Maximum number of layers of an image, as in Docker.
const LAYERS: usize = 127;
/// Maximum number of platforms in an error message.
const NAMED: usize = 8;
/// Operating system of this agent, in Go's spelling.
const SYSTEM: &str = "linux";

/// Descriptor of a part of an image: manifest, configuration or layer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Digest of the part, `sha256:<64 digits>`, not validated yet.
    pub digest: String,
    /// OCI media type of the part; empty if missing.
    #[serde(default)]
    pub media_type: String,
    #[serde(default)]
    platform: Option<Platform>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
}

/// Manifest, reduced to the fields that the agent needs.
#[derive(Debug, PartialEq, Eq)]
pub enum Manifest {
    /// Image index: one image for several platforms. The value is the manifest for this machine.
    Index(Part),
    /// Manifest of one image.
    Image {
        /// Configuration of the image.
        config: Part,
        /// Layers of the file system, the lowest first.
        layers: Vec<Part>,
    },
}

#[derive(Deserialize)]
struct Document {
    config: Option<Part>,
    layers: Option<Vec<Part>>,
    manifests: Option<Vec<Part>>,
}

impl Manifest {
    /// Parses a manifest. For an index, selects the manifest for this machine.
    ///
    /// # Errors
    /// The document is invalid, or has no image for this machine; the text is the reason.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|error| format!("its manifest is not valid: {error}"))?;
        match document {
            Document { manifests: Some(manifests), .. } => choose(manifests).map(Self::Index),
            Document { config: Some(config), layers: Some(layers), .. } => {
                if layers.len() > LAYERS {
                    let count = layers.len();
                    return Err(format!("it has {count} layers, the limit is {LAYERS}"));
                }
                Ok(Self::Image { config, layers })
            }
            _ => Err("its manifest has an unknown kind (no config and layers)".into()),
        }
    }
}

fn choose(manifests: Vec<Part>) -> Result<Part, String> {
    let wanted = architecture();
    let there: Vec<String> = manifests.iter().filter_map(Part::runs_on).take(NAMED).collect();
    let is_ours = |part: &Part| {
        part.platform.as_ref().is_some_and(|it| it.os == SYSTEM && it.architecture == wanted)
    };
    manifests.into_iter().find(is_ours).ok_or_else(|| {
        format!("it has no image for {SYSTEM}/{wanted}, only for {}", there.join(", "))
    })
}

impl Part {
    fn runs_on(&self) -> Option<String> {
        self.platform.as_ref().map(|it| format!("{}/{}", it.os, it.architecture))
    }
}

/// Returns the architecture of this machine, in Go's spelling.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Returns an error if an image for `os` and architecture does not run on this machine.
pub fn check_platform(os: &str, architecture_of_image: &str) -> Result<(), String> {
    let same = |declared: &str, expected: &str| declared.is_empty() || declared == expected;
    if same(os, SYSTEM) && same(architecture_of_image, architecture()) {
        return Ok(());
    }
    Err(format!(
        "it is for {os}/{architecture_of_image}, but this machine is {SYSTEM}/{}",
        architecture()
    ))
}

#[cfg(test)]
mod tests {
    use super::{LAYERS, Manifest, architecture, check_platform};

    #[test]
    fn an_index_leads_to_this_machines_manifest() {
        let index = |own: &str| {
            format!(
                r#"{{"schemaVersion": 2, "manifests": [
                    {{"digest": "sha256:aa", "size": 1,
                      "platform": {{"os": "unknown", "architecture": "unknown"}}}},
                    {{"digest": "sha256:bb", "size": 1}},
                    {{"digest": "sha256:cc", "size": 1,
                      "platform": {{"os": "linux", "architecture": "{own}", "variant": "v8"}}}}]}}"#
            )
        };
        let Ok(Manifest::Index(part)) = Manifest::read(index(architecture()).as_bytes()) else {
            panic!()
        };
        assert_eq!(part.digest, "sha256:cc");
        let error = Manifest::read(index("mips").as_bytes()).unwrap_err();
        assert!(error.contains("it has no image for linux/"), "{error}");
        assert!(error.contains("linux/mips"), "{error}");
    }

    #[test]
    fn an_image_has_a_config_and_not_too_many_layers() {
        let image = |layers: usize| {
            let layer = r#"{"digest": "sha256:00", "size": 3, "mediaType": "x"}"#;
            let layers = vec![layer; layers].join(",");
            format!(r#"{{"config": {{"digest": "sha256:11", "size": 2}}, "layers": [{layers}]}}"#)
        };
        let read = Manifest::read(image(2).as_bytes());
        assert!(matches!(read, Ok(Manifest::Image { layers, .. }) if layers.len() == 2));
        assert!(Manifest::read(image(LAYERS).as_bytes()).is_ok());
        assert!(Manifest::read(image(LAYERS + 1).as_bytes()).unwrap_err().contains("128 layers"));
        for broken in ["", "{}", "[]", r#"{"fsLayers": []}"#, r#"{"config": {}, "layers": []}"#] {
            assert!(Manifest::read(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn an_image_for_another_machine_is_refused() {
        assert_eq!(check_platform("linux", architecture()), Ok(()));
        assert_eq!(check_platform("", ""), Ok(()));
        assert!(check_platform("windows", architecture()).is_err());
        assert!(check_platform("linux", "mips").unwrap_err().contains("for linux/mips"));
    }
}
