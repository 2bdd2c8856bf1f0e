//! What an image is made of (OCI image specification, "Image Index" and "Image Manifest"; Docker's
//! older documents have the same fields).

use serde::Deserialize;

/// The largest manifest or index, which is the specification's least.
pub const MANIFEST_BYTES: u64 = 4 << 20;
/// Docker stacks no more of them either.
const LAYERS: usize = 127;
/// Platforms that a refusal names.
const NAMED: usize = 8;
/// What this agent runs.
const SYSTEM: &str = "linux";

/// A part of an image, by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// `sha256:<64 digits>`, not checked yet.
    pub digest: String,
    /// What it is.
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

/// A manifest, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub enum Manifest {
    /// The same image for several platforms: this machine's is another manifest.
    Index(Part),
    /// An image.
    Image {
        /// How it is run.
        config: Part,
        /// Its filesystem, the lowest first.
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
    /// Reads a manifest; of an index, the manifest for this machine.
    ///
    /// # Errors
    /// Why there is no image for this machine in it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|error| format!("its manifest is not one: {error}"))?;
        match document {
            Document { manifests: Some(manifests), .. } => choose(manifests).map(Self::Index),
            Document { config: Some(config), layers: Some(layers), .. } => {
                if layers.len() > LAYERS {
                    let count = layers.len();
                    return Err(format!("it has {count} layers, and {LAYERS} are the most"));
                }
                Ok(Self::Image { config, layers })
            }
            _ => Err("its manifest is of a kind that is not known (no config and layers)".into()),
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
        format!("there is none for {SYSTEM}/{wanted}; there are {}", there.join(", "))
    })
}

impl Part {
    fn runs_on(&self) -> Option<String> {
        self.platform.as_ref().map(|it| format!("{}/{}", it.os, it.architecture))
    }
}

/// This machine's, as Go says it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Why a configuration's image does not run here, if it does not.
pub fn check_platform(os: &str, architecture_of_image: &str) -> Result<(), String> {
    let same = |said: &str, meant: &str| said.is_empty() || said == meant;
    if same(os, SYSTEM) && same(architecture_of_image, architecture()) {
        return Ok(());
    }
    Err(format!("it is for {os}/{architecture_of_image}, this is {SYSTEM}/{}", architecture()))
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
        assert!(error.contains("there is none for linux/"), "{error}");
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
