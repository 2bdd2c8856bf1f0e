//! `oci2disk`: a disk image in a registry. IMG_URL, REGISTRY_USERNAME and REGISTRY_PASSWORD are its
//! own, all else is as `image2disk` has it. The box reads registries, and tells the agent where it
//! has the image: a reference that comes through says that the box did not.

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
        let reason = "the box reads registries that ask for no user, and no others yet";
        return Err(environment.bad("REGISTRY_USERNAME", reason));
    }
    let reason = "a registry is read through the box, which does so when its configuration has an \
        image cache ([images]) and this is host/name:tag of another server";
    Err(environment.bad("IMG_URL", format!("{place:?}: {reason}")))
}
