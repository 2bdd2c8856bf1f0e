//! `oci2disk`: writes a disk image from a registry. IMG_URL, REGISTRY_USERNAME and
//! REGISTRY_PASSWORD are specific to it; all other settings are those of `image2disk`. The box
//! reads the registry and replaces the reference with its own URL. A reference that reaches the
//! agent means that the box did not.

use imaging::stream::Image;

use super::environment::Environment;
use super::{Limits, image2disk};
use crate::Error;

pub(super) fn parse(environment: &Environment<'_>, limits: Limits) -> Result<Image, Error> {
    let place = environment.required("IMG_URL")?;
    if place.starts_with("http://") {
        return image2disk::parse(environment, limits);
    }
    if environment.optional("REGISTRY_USERNAME").is_some() {
        let reason = "the box supports only registries without a login";
        return Err(environment.bad("REGISTRY_USERNAME", reason));
    }
    let reason = "a registry is read through the box, which needs an image cache ([images]) in \
        its configuration and an image such as host/name:tag";
    Err(environment.bad("IMG_URL", format!("{place:?}: {reason}")))
}
