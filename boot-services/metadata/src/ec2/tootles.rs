//! Tinkerbell's tree `/2009-04-04/`, byte for byte (`tootles/internal/frontend/ec2`).
//!
//! Tootles' quirks are included: an empty field is an empty leaf, `public-keys` and `iqn` exist and
//! are always empty, `local-ipv4` is never the reserved address, and vendor data are missing.
//! Clients that need more request a later version, as cloud-init does.

use std::borrow::Cow;

use crate::Instance;

/// Leaf of the tree: its path, and the function that returns its text.
pub(crate) type Leaf = (&'static str, for<'a> fn(&'a Instance) -> Cow<'a, str>);

/// All leaves of the tree.
pub(crate) const LEAVES: &[Leaf] = &[
    ("user-data", |it| it.user_data.as_ref().map_or("", |data| data.expose()).into()),
    ("meta-data/instance-id", |it| it.id.as_str().into()),
    ("meta-data/hostname", |it| it.hostname.as_str().into()),
    ("meta-data/local-hostname", |it| it.hostname.as_str().into()),
    ("meta-data/iqn", |_| "".into()),
    ("meta-data/plan", |it| it.plan.as_str().into()),
    ("meta-data/facility", |it| it.facility.as_str().into()),
    ("meta-data/tags", |it| it.tags.join("\n").into()),
    ("meta-data/public-ipv4", |it| it.public_ipv4.as_str().into()),
    ("meta-data/public-ipv6", |it| it.public_ipv6.as_str().into()),
    ("meta-data/local-ipv4", |it| it.local_ipv4.as_str().into()),
    ("meta-data/public-keys", |_| "".into()),
    ("meta-data/operating-system/slug", |it| it.operating_system.slug.as_str().into()),
    ("meta-data/operating-system/distro", |it| it.operating_system.distro.as_str().into()),
    ("meta-data/operating-system/version", |it| it.operating_system.version.as_str().into()),
    ("meta-data/operating-system/image_tag", |it| it.operating_system.image_tag.as_str().into()),
    ("meta-data/operating-system/license_activation/state", |_| "".into()),
];

/// Returns the content at `path`, which has no slash at either end: the text of a leaf, or the list
/// of a folder. `None`: the path does not exist.
pub(crate) fn lookup(instance: &Instance, path: &str) -> Option<String> {
    let leaf = LEAVES.iter().find(|(name, _)| *name == path);
    leaf.map(|(_, text)| text(instance).into_owned())
        .or_else(|| super::listing(LEAVES.iter().map(|(name, _)| *name), path))
}
