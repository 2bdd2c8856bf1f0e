//! Identifiers of all known machines. Each version of a Hardware is parsed only once, because the
//! inventories of a rack are megabytes of JSON, and every unknown agent is compared with them.

use std::collections::HashMap;
use std::sync::Arc;

use api::identity::{Traits, Verdict, who};
use api::meta::ObjectKey;
use api::tinkerbell::{AGENT_ATTRIBUTES, Hardware};

use super::INVENTORY;

/// Identifiers of known machines, one entry per Hardware.
#[derive(Default)]
pub struct MachineTraits(HashMap<ObjectKey, (Arc<Hardware>, Traits)>);

impl MachineTraits {
    /// Parses new and changed Hardware and removes deleted Hardware. Returns the number parsed.
    pub fn update(&mut self, all: Vec<Arc<Hardware>>) -> usize {
        let mut before = std::mem::take(&mut self.0);
        let mut number = 0;
        for hardware in all {
            let key = hardware.key();
            let kept = before.remove(&key).filter(|(known, _)| Arc::ptr_eq(known, &hardware));
            let traits = kept.map(|(_, traits)| traits).unwrap_or_else(|| {
                number += 1;
                Traits::of_hardware(&hardware, AGENT_ATTRIBUTES, INVENTORY)
            });
            self.0.insert(key, (hardware, traits));
        }
        number
    }

    /// Compares an unknown machine with all known machines.
    pub fn who(&self, stranger: &Traits) -> Verdict {
        who(stranger, self.0.iter().map(|(key, (_, traits))| (key, traits)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::identity::{Traits, Verdict};
    use api::tinkerbell::Hardware;
    use serde_json::json;

    use super::MachineTraits;

    fn hardware(name: &str, mac: &str) -> Arc<Hardware> {
        let object = json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "interfaces": [{ "dhcp": { "mac": mac } }] },
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_record_is_read_once_for_each_version() {
        let mut known = MachineTraits::default();
        let (one, two) = (hardware("a", "52:54:00:77:00:01"), hardware("b", "52:54:00:77:00:02"));
        assert_eq!(known.update(vec![one.clone(), two.clone()]), 2);
        assert_eq!(known.update(vec![one.clone(), two]), 0);
        let changed = hardware("b", "52:54:00:77:00:03");
        assert_eq!(known.update(vec![one, changed.clone()]), 1);
        let of = |mac: &str| Traits::of_hardware(&hardware("stranger", mac), "", "");
        assert!(
            matches!(known.who(&of("52:54:00:77:00:03")), Verdict::One(key, _) if key.name == "b")
        );
        assert_eq!(known.who(&of("52:54:00:77:00:02")), Verdict::Nobody);
        assert_eq!(known.update(vec![changed]), 0);
        assert_eq!(known.who(&of("52:54:00:77:00:01")), Verdict::Nobody);
    }
}
