//! Reports about two Hardware with the same address: events for their owners, and a fault in the
//! status view.

use api::core::ObjectEvent;
use api::meta::ObjectKey;
use api::tinkerbell::HARDWARE;
use jiff::Timestamp;
use status::source::{Filling, StatusSource};
use status::view::{Fault, StatusView, Trouble};

use crate::index::{Contested, Index};

/// Maximum number of conflicts in the text of the fault.
const SHOWN: usize = 3;

/// Returns one event for each of the two Hardware.
pub fn events(contested: &Contested, at: Timestamp) -> [ObjectEvent; 2] {
    let Contested { what, name, owner, other } = contested;
    let event = |key: &ObjectKey, message: String| ObjectEvent {
        about: HARDWARE,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: String::new(),
        reason: "Contested".to_owned(),
        message,
        warning: true,
        component: "tinboxd".to_owned(),
        at,
    };
    [
        event(
            owner,
            format!("its {what} {name} is also in Hardware {other}: this Hardware is used"),
        ),
        event(
            other,
            format!("its {what} {name} is also in Hardware {owner}: that Hardware is used"),
        ),
    ]
}

/// Status source of the fault about conflicts.
pub struct ContestedSource(pub Index);

impl StatusSource for ContestedSource {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        view.faults.extend(fault(&self.0.contested()));
        Box::pin(std::future::ready(()))
    }
}

fn fault(contested: &[Contested]) -> Option<Fault> {
    let shown = contested.iter().take(SHOWN).map(|it| {
        let Contested { what, name, owner, other } = it;
        format!("{what} {name} is in {owner}, which is used, and in {other}")
    });
    let mut why = shown.collect::<Vec<_>>().join("; ");
    match contested.len().checked_sub(SHOWN) {
        _ if contested.is_empty() => return None,
        None | Some(0) => {}
        Some(more) => why.push_str(&format!("; and {more} more")),
    }
    let trouble = Trouble {
        what: "Two Hardware describe one machine".into(),
        why: why.into(),
        now: "Change one of the two Hardware, or delete the wrong one".into(),
        code: "Contested".into(),
        ..Trouble::default()
    };
    Some(Fault { title: "SAME MAC TWICE".into(), trouble, ..Fault::default() })
}

#[cfg(test)]
mod tests {
    use api::tinkerbell::{AUTO_DISCOVERED, Hardware};
    use jiff::Timestamp;
    use serde_json::json;

    use super::{events, fault};
    use crate::index::Index;

    fn hardware(name: &str, created: &str, label: Option<&str>) -> Hardware {
        let object = json!({
            "metadata": { "name": name, "namespace": "default", "creationTimestamp": created },
            "spec": { "interfaces": [{ "dhcp": { "mac": "52:54:00:77:00:01" } }] },
        });
        let mut hardware: Hardware = serde_json::from_value(object).unwrap();
        let labels = label.map(|label| (AUTO_DISCOVERED.to_owned(), label.to_owned()));
        hardware.metadata.labels.extend(labels);
        hardware
    }

    #[test]
    fn what_a_person_wrote_beats_what_enrolled_itself_whatever_its_age_and_both_are_told() {
        let index = Index::default();
        let claim = hardware("discovery-1", "2026-01-01T00:00:00Z", Some("true"));
        assert_eq!(index.put_hardware(claim), []);
        assert!(fault(&index.contested()).is_none());
        let mac = "52:54:00:77:00:01".parse().unwrap();
        let met = index.put_hardware(hardware("nuc1", "2026-02-01T00:00:00Z", None));
        assert_eq!(index.by_mac(mac).unwrap().metadata.name, "nuc1");
        assert_eq!(index.by_agent("52:54:00:77:00:01").unwrap().metadata.name, "nuc1");
        assert_eq!(met.len(), 1);
        let reported = events(&met[0], Timestamp::UNIX_EPOCH).map(|it| (it.name, it.message));
        let text = |name: &str, message: &str| (name.to_owned(), message.to_owned());
        assert_eq!(
            reported,
            [
                text(
                    "nuc1",
                    "its MAC 52:54:00:77:00:01 is also in Hardware default/discovery-1: this \
                     Hardware is used"
                ),
                text(
                    "discovery-1",
                    "its MAC 52:54:00:77:00:01 is also in Hardware default/nuc1: that Hardware \
                     is used"
                ),
            ]
        );
        let text = fault(&index.contested()).unwrap().trouble.sentence();
        assert!(text.contains("is in default/nuc1, which is used, and in default/discovery-1"));
        index.remove_hardware(&api::meta::ObjectKey::new("default", "discovery-1"));
        assert!(index.contested().is_empty());
    }
}
