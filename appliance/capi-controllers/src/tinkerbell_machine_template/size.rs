//! CPU threads, memory and CPU architecture of a Hardware, from its spec and from the last report
//! of its agent.

use api::tinkerbell::{AGENT_ATTRIBUTES, Hardware};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use controllers::enrollment::INVENTORY;

/// Units of a memory size in an agent's attributes, with their values. They are binary.
const UNITS: [(&str, u64); 6] =
    [("PB", 1 << 50), ("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

/// Part of an agent's attributes (Tinkerbell's schema). Other attributes are skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attributes {
    cpu: Cpu,
    memory: Memory,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Cpu {
    total_threads: Option<u64>,
    total_cores: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Memory {
    total: Option<String>,
    usable: Option<String>,
}

/// Part of a Tinbox agent's inventory.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Inventory {
    memory: Vec<Module>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Module {
    bytes: u64,
}

/// Size of a machine, as far as known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineSize {
    /// Number of CPU threads, which Kubernetes counts as CPUs.
    pub threads: Option<u64>,
    /// Memory in bytes, without a known part that the firmware reserves.
    pub memory: Option<u64>,
    /// CPU architecture in the spelling of Go, such as `amd64`.
    pub architecture: Option<&'static str>,
}

impl MachineSize {
    /// Reads the size of a machine. A report that cannot be parsed counts as absent.
    pub fn of(host: &Hardware) -> Self {
        let Attributes { cpu, memory } = annotation(host, AGENT_ATTRIBUTES);
        let Inventory { memory: modules } = annotation(host, INVENTORY);
        let threads = cpu.total_threads.or(cpu.total_cores).filter(|number| *number > 0);
        // The size of the modules is exact, but includes memory that the firmware reserves. The
        // usable size is rounded to a whole unit. The smaller size is correct in more cases.
        let installed: u64 = modules.iter().fold(0, |sum, it| sum.saturating_add(it.bytes));
        let usable = memory.usable.or(memory.total).and_then(|text| bytes(&text));
        let sizes = [(installed > 0).then_some(installed), usable];
        let memory = sizes.into_iter().flatten().min();
        let dhcp = host.spec.interfaces.first().and_then(|it| it.dhcp.as_ref());
        let architecture = dhcp.and_then(|dhcp| go_architecture(&dhcp.arch));
        Self { threads, memory, architecture }
    }
}

fn annotation<T: Default + DeserializeOwned>(host: &Hardware, key: &str) -> T {
    let text = host.metadata.annotations.get(key);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Returns the bytes of a size such as `16GB`; `None` for another form, or zero.
fn bytes(text: &str) -> Option<u64> {
    let (unit, value) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
    number.checked_mul(value).filter(|bytes| *bytes > 0)
}

/// Returns Go's name of an architecture that a Kubernetes node can have; `None` for any other.
fn go_architecture(name: &str) -> Option<&'static str> {
    match name {
        "x86_64" | "amd64" => Some("amd64"),
        "aarch64" | "arm64" => Some("arm64"),
        "s390x" => Some("s390x"),
        "ppc64le" => Some("ppc64le"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use api::tinkerbell::AGENT_ATTRIBUTES;
    use serde_json::{Value, json};

    use super::MachineSize;
    use controllers::enrollment::INVENTORY;

    fn size(attributes: Value, inventory: Value, arch: &str) -> MachineSize {
        let host = json!({
            "metadata": { "annotations": {
                AGENT_ATTRIBUTES: attributes.to_string(), INVENTORY: inventory.to_string(),
            } },
            "spec": { "interfaces": [{ "dhcp": { "arch": arch } }] },
        });
        MachineSize::of(&serde_json::from_value(host).unwrap())
    }

    #[test]
    fn a_machine_has_the_smaller_of_two_memory_sizes() {
        let gib = 1 << 30;
        let modules = |bytes: u64| json!({ "memory": [{ "bytes": bytes, "slot": "a" }, {}] });
        let usable = |text: &str| json!({ "memory": { "usable": text, "total": "64GB" } });
        let rows = [
            (json!({}), json!({}), None),
            (usable("16GB"), json!({}), Some(16 * gib)),
            (json!({ "memory": { "total": "8GB" } }), json!({}), Some(8 * gib)),
            (usable("15GB"), modules(16 * gib), Some(15 * gib)),
            (usable("16GB"), modules(12 * gib), Some(12 * gib)),
            (usable("512 MB"), json!({}), Some(gib / 2)),
            (usable("0GB"), modules(0), None),
            (usable("lots"), modules(gib), Some(gib)),
            (usable("99999999999TB"), json!({ "memory": "none" }), None),
        ];
        for (attributes, inventory, expected) in rows {
            let what = format!("{attributes} {inventory}");
            assert_eq!(size(attributes, inventory, "").memory, expected, "{what}");
        }
    }

    #[test]
    fn kubernetes_counts_threads() {
        let rows = [
            (json!({ "cpu": { "totalCores": 4, "totalThreads": 8 } }), "x86_64", Some(8), "amd64"),
            (json!({ "cpu": { "totalCores": 4 } }), "aarch64", Some(4), "arm64"),
            (json!({ "cpu": { "totalThreads": 0 } }), "arm64", None, "arm64"),
            (json!({ "cpu": "fast" }), "riscv64", None, ""),
        ];
        for (attributes, arch, threads, architecture) in rows {
            let size = size(attributes, json!({}), arch);
            assert_eq!(size.threads, threads);
            assert_eq!(size.architecture.unwrap_or_default(), architecture);
        }
        assert_eq!(MachineSize::of(&Default::default()), MachineSize::default());
    }
}
