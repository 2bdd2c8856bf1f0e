//! Hardware of one box that matches a template, and the sum over all boxes.
//!
//! Several boxes may serve one management cluster, and each box knows only its own Hardware. So
//! each box writes its own entry in `status.boxes`, and computes the other fields from all entries.
//! The entry of a box that is taken out of service stays until a person removes it.

use std::collections::{BTreeMap, BTreeSet};

use api::infrastructure::{
    BoxHardware, NodeInfo, OWNER_NAME, TinkerbellMachine, TinkerbellMachineTemplate,
    TinkerbellMachineTemplateStatus,
};
use api::meta::{ObjectKey, ObjectMeta};
use api::tinkerbell::Hardware;

use super::quantity::{number, quantity};
use super::size::MachineSize;
use api::infrastructure::PROVISIONED;
use hardware_choice::{HardwareRequest, Verdict, choose};

/// Maximum number of boxes in the status of a template, as in the CustomResourceDefinition.
pub const BOXES_MAX: usize = 100;
/// Name of the machine in a request. A label cannot have this value, so no Hardware belongs to it.
const ANY_MACHINE: &str = "*";
/// Operating system of all nodes.
const LINUX: &str = "linux";

/// Returns the part of the box `box_name` in the status of a template.
pub fn own(
    template: &TinkerbellMachineTemplate,
    mut hosts: Vec<Hardware>,
    box_name: &str,
) -> BoxHardware {
    let namespace = template.metadata.namespace.clone();
    let machine = TinkerbellMachine {
        metadata: ObjectMeta { name: ANY_MACHINE.to_owned(), namespace, ..Default::default() },
        spec: template.spec.template.spec.clone(),
        ..Default::default()
    };
    let request = HardwareRequest::of(&machine, None, box_name);
    let free = usable(&choose(&request, &hosts).verdicts).len();
    // A Hardware in use matches if it could be chosen without its machine.
    for host in &mut hosts {
        host.metadata.labels.remove(OWNER_NAME);
        host.metadata.annotations.remove(PROVISIONED);
    }
    let choice = choose(&request, &hosts);
    let matching = usable(&choice.verdicts);
    let is_matching = |host: &&Hardware| matching.contains(&host.key());
    let sizes: Vec<MachineSize> = hosts.iter().filter(is_matching).map(MachineSize::of).collect();
    BoxHardware {
        name: box_name.to_owned(),
        matching_hardware: count(matching.len()),
        free_hardware: count(free),
        capacity: capacity(&sizes),
        node_info: node_info(&sizes),
        message: if matching.is_empty() { choice.summary } else { String::new() },
        ..BoxHardware::default()
    }
}

fn usable(verdicts: &[Verdict]) -> BTreeSet<ObjectKey> {
    let usable = verdicts.iter().filter(|verdict| verdict.result.is_ok());
    usable.map(|verdict| verdict.host.clone()).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the least of each resource. Hardware with an unknown size is left out; a resource that
/// is unknown for all Hardware is absent.
fn capacity(sizes: &[MachineSize]) -> BTreeMap<String, String> {
    let least = |of: fn(&MachineSize) -> Option<u64>| sizes.iter().filter_map(of).min();
    let cpu = least(|size| size.threads).map(|threads| threads.to_string());
    let memory = least(|size| size.memory).map(quantity);
    let resources = [("cpu", cpu), ("memory", memory)];
    resources.into_iter().filter_map(|(name, least)| Some((name.to_owned(), least?))).collect()
}

/// Returns the platform of all nodes. The architecture is absent if it is unknown for some
/// Hardware. The result is `None` if the known architectures differ, or without Hardware.
fn node_info(sizes: &[MachineSize]) -> Option<NodeInfo> {
    let known: BTreeSet<&str> = sizes.iter().filter_map(|size| size.architecture).collect();
    if sizes.is_empty() || known.len() > 1 {
        return None;
    }
    let is_known = sizes.iter().all(|size| size.architecture.is_some());
    let architecture = known.into_iter().next().filter(|_| is_known).unwrap_or_default();
    let architecture = architecture.to_owned();
    Some(NodeInfo { architecture, operating_system: LINUX.to_owned() })
}

/// Puts the part of a box into the status, and computes the fields for all boxes. Above
/// [`BOXES_MAX`], a further box is left out.
pub fn put(status: &mut TinkerbellMachineTemplateStatus, own: BoxHardware) {
    let boxes = &mut status.boxes;
    match boxes.iter().position(|it| it.name == own.name) {
        Some(at) => {
            let rest = std::mem::take(&mut boxes[at].rest);
            boxes[at] = BoxHardware { rest, ..own };
        }
        None if boxes.len() < BOXES_MAX => boxes.push(own),
        None => {}
    }
    boxes.sort_by(|a, b| a.name.cmp(&b.name));
    let sum = |of: fn(&BoxHardware) -> u32| boxes.iter().map(of).fold(0, u32::saturating_add);
    status.matching_hardware = Some(sum(|it| it.matching_hardware));
    status.free_hardware = Some(sum(|it| it.free_hardware));
    let matching = || boxes.iter().filter(|it| it.matching_hardware > 0);
    status.capacity = BTreeMap::new();
    for (name, text) in matching().flat_map(|it| &it.capacity) {
        let least = status.capacity.get(name).and_then(|it| number(it)).unwrap_or(u64::MAX);
        if number(text).is_some_and(|number| number < least) {
            status.capacity.insert(name.clone(), text.clone());
        }
    }
    let platform = matching().next().and_then(|it| it.node_info.clone());
    status.node_info = platform.filter(|it| matching().all(|of| of.node_info.as_ref() == Some(it)));
}
