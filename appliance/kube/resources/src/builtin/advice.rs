//! Warnings of the compiled-in kinds to the client that writes an accepted object.

use std::sync::Arc;

use api::bmc::MachineSpec;
use api::document;
use serde::Deserialize as _;
use serde_json::Value;

use crate::definition::{Advise, ResourceDefinition};

/// Maximum warnings about one Template.
const SENTENCES_MAX: usize = 16;

/// Returns the warning function of a kind; `None` if the kind has no warnings.
pub(super) fn of(definition: &ResourceDefinition) -> Option<Advise> {
    let (group, kind) = (definition.group.as_str(), definition.kind.clone());
    let advice: fn(&Value) -> Vec<String> = match (group, definition.plural.as_str()) {
        ("tinkerbell.org", "templates") => template,
        ("bmc.tinkerbell.org", "machines") => bmc,
        ("cluster.x-k8s.io" | "bootstrap.cluster.x-k8s.io", _)
        | (_, "tinkerbellclustertemplates") => {
            return Some(Arc::new(move |_, old| {
                old.map_or_else(|| vec![inert(&kind)], |_| vec![])
            }));
        }
        _ => return None,
    };
    Some(Arc::new(move |new, old| match old {
        // A write that changes only labels or the status gets no warnings.
        Some(old) if old["spec"] == new["spec"] => Vec::new(),
        _ => advice(new),
    }))
}

/// Returns warnings about a Template: unknown keys, and values from which no workflow can be made.
fn template(object: &Value) -> Vec<String> {
    let found = document::lint(object["spec"]["data"].as_str().unwrap_or_default());
    let all = found.mistakes.into_iter().chain(found.unknown);
    all.take(SENTENCES_MAX).map(|sentence| format!("spec.data: {sentence}")).collect()
}

/// Returns a warning about a `bmc.tinkerbell.org` Machine whose provider has no driver in this box.
fn bmc(object: &Value) -> Vec<String> {
    let spec = MachineSpec::deserialize(&object["spec"]).ok();
    let why = spec.and_then(|spec| spec.connection.provider().err());
    why.map(|why| format!("spec.connection.providerOptions: {why}")).into_iter().collect()
}

/// Returns the warning for Cluster API kinds, for which the box runs no controller of its own.
fn inert(kind: &str) -> String {
    format!(
        "this box does not run the controllers of Cluster API for a {kind}; its status stays empty"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::builtin::custom;

    fn advice(plural: &str, group: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
        let all = custom::definitions();
        let found = all.iter().find(|it| it.plural == plural && it.group == group).unwrap();
        found.advise.as_ref().map(|advise| advise(new, old)).unwrap_or_default()
    }

    #[test]
    fn kinds_that_nothing_acts_on_say_so() {
        let object = json!({ "spec": {} });
        for (plural, group) in [
            ("clusters", "cluster.x-k8s.io"),
            ("machines", "cluster.x-k8s.io"),
            ("kubeadmconfigs", "bootstrap.cluster.x-k8s.io"),
            ("tinkerbellclustertemplates", "infrastructure.cluster.x-k8s.io"),
        ] {
            let told = advice(plural, group, &object, None);
            assert!(
                told[0].contains("does not run the controllers of Cluster API for a "),
                "{told:?}"
            );
            assert_eq!(advice(plural, group, &object, Some(&object)), [""; 0], "{plural}");
        }
        let infrastructure = "infrastructure.cluster.x-k8s.io";
        assert_eq!(advice("tinkerbellmachines", infrastructure, &object, None), [""; 0]);
    }

    #[test]
    fn a_bmc_without_a_driver_is_told_to_its_writer() {
        let with = |options: Value| {
            let connection = json!({ "host": "10.0.0.9", "providerOptions": options });
            let machine = json!({ "spec": { "connection": connection } });
            advice("machines", "bmc.tinkerbell.org", &machine, None)
        };
        assert_eq!(with(json!({ "ipmitool": { "port": 623 } })), [""; 0]);
        let warnings = with(json!({ "preferredOrder": ["dell"] }));
        assert!(warnings.len() == 1 && warnings[0].contains("the driver dell"), "{warnings:?}");
    }

    #[test]
    fn misspelt_keys_of_a_template_are_told_to_its_writer_once() {
        let template = |data: &str| json!({ "spec": { "data": data } });
        let slip = template("name: x\nglobal_timout: 5\ntasks: []\n");
        let told = advice("templates", "tinkerbell.org", &slip, None);
        let expected = "spec.data: line 2: global_timout: not a key of a workflow document; \
                        did you mean global_timeout?";
        assert_eq!(told, [expected]);
        assert_eq!(advice("templates", "tinkerbell.org", &slip, Some(&slip)), [""; 0]);
        let many = (0..100).map(|at| format!("key{at}: 1\n")).collect::<String>();
        assert_eq!(advice("templates", "tinkerbell.org", &template(&many), None).len(), 16);
    }
}
