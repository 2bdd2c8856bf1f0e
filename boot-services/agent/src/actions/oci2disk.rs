//! `oci2disk`: writes a disk image from a registry. Settings of its own are IMG_URL,
//! REGISTRY_USERNAME and REGISTRY_PASSWORD; all others are those of `image2disk`. The box fetches
//! from the registry, and replaces the reference in IMG_URL with a URL of its own. A reference that
//! reaches the agent is an error: the box has no image cache, or the reference is invalid.

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
