//! Image that a TinkerbellMachine requests, by its own fields and those of its cluster.

use api::infrastructure::{TinkerbellClusterSpec, TinkerbellMachineSpec};
use machine_install::image::{ImageLookup, ImageRequest};

/// Returns the request of a machine with this spec, without the CPU architecture of its Hardware.
/// `version` is the Kubernetes version of the Machine.
pub fn image_request(
    spec: &TinkerbellMachineSpec,
    cluster: Option<&TinkerbellClusterSpec>,
    version: Option<&str>,
) -> ImageRequest {
    let set = |text: &String| (!text.is_empty()).then(|| text.clone());
    ImageRequest {
        os_image: set(&spec.os_image),
        kubernetes_version: version.unwrap_or_default().to_owned(),
        architecture: None,
        machine: ImageLookup {
            format: set(&spec.image_lookup_format),
            base_registry: set(&spec.image_lookup_base_registry),
            os_distro: set(&spec.image_lookup_os_distro),
            os_version: set(&spec.image_lookup_os_version),
        },
        cluster: cluster.map_or_else(ImageLookup::default, |spec| ImageLookup {
            format: set(&spec.image_lookup_format),
            base_registry: Some(spec.image_lookup_base_registry.clone()),
            os_distro: set(&spec.image_lookup_os_distro),
            os_version: set(&spec.image_lookup_os_version),
        }),
    }
}
