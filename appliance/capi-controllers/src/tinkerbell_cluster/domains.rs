//! Failure domains in the status of a cluster.
//!
//! Several boxes may serve one management cluster, and each box knows only its own Hardware. So the
//! attribute [`BOXES`] of a domain lists the boxes with Hardware in the domain. A box adds and
//! removes only its own name. A domain without the attribute was not written by a box, and is kept.
//!
//! The domains of a box that is taken out of service stay: its Hardware may still run machines.

use std::collections::{BTreeMap, BTreeSet};

use api::infrastructure::FailureDomain;
use api::tinkerbell::Hardware;

use hardware_choice::failure_domain;

/// Attribute of a failure domain with the names of its boxes, sorted and separated by commas.
pub const BOXES: &str = "boxes";
/// Maximum number of domains of a cluster: the limit of `Cluster.status.failureDomains` in v1beta2.
pub const DOMAINS_MAX: usize = 100;

/// Returns the names of the failure domains of a box: those of its Hardware, or the name of the box
/// if the box has no Hardware.
pub fn own(hosts: &[Hardware], box_name: &str) -> BTreeSet<String> {
    let mut names: BTreeSet<String> =
        hosts.iter().map(|host| failure_domain(host, box_name).to_owned()).collect();
    if names.is_empty() {
        names.insert(box_name.to_owned());
    }
    names
}

/// Returns the domains of a cluster after the box `box_name` reported the domains `own`. Domains
/// above [`DOMAINS_MAX`] are left out, the last names first.
pub fn merged(
    before: BTreeMap<String, FailureDomain>,
    own: &BTreeSet<String>,
    box_name: &str,
) -> BTreeMap<String, FailureDomain> {
    let mut domains = BTreeMap::new();
    for (name, mut domain) in before {
        if let Some(boxes) = domain.attributes.get(BOXES) {
            let mut boxes: BTreeSet<&str> = boxes.split(',').filter(|it| !it.is_empty()).collect();
            if own.contains(&name) {
                boxes.insert(box_name);
                domain.control_plane = true;
            } else {
                boxes.remove(box_name);
            }
            if boxes.is_empty() {
                continue;
            }
            let boxes = boxes.into_iter().collect::<Vec<_>>().join(",");
            domain.attributes.insert(BOXES.to_owned(), boxes);
        }
        domains.insert(name, domain);
    }
    for name in own {
        if domains.len() < DOMAINS_MAX {
            domains.entry(name.clone()).or_insert_with(|| FailureDomain {
                control_plane: true,
                attributes: [(BOXES.to_owned(), box_name.to_owned())].into(),
            });
        }
    }
    domains
}

#[cfg(test)]
mod tests;
