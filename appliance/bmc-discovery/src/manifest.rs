//! YAML that accepts a discovered management controller.

use std::fmt::Write as _;

use crate::{DiscoveredBmc, OwnerMatch, ProtocolKind};

/// Returns a Secret and a Machine of `bmc.tinkerbell.org` for the best protocol, and the command
/// that connects the Machine with its Hardware. The owner enters the login in the Secret.
pub fn manifest(bmc: &DiscoveredBmc, owner: Option<&OwnerMatch>) -> String {
    let namespace = owner.map_or("default", |owner| &owner.namespace);
    let name = match owner {
        Some(owner) => format!("{}-bmc", owner.name),
        None => format!("bmc-{}", bmc.address.to_string().replace('.', "-")),
    };
    let mut yaml = format!(
        "# {address}: {what}\n\
         apiVersion: v1\nkind: Secret\nmetadata: {{ name: {name}, namespace: {namespace} }}\n\
         stringData: {{ username: admin, password: \"\" }}  # enter the login of this BMC\n\
         ---\n\
         apiVersion: bmc.tinkerbell.org/v1alpha1\nkind: Machine\n\
         metadata: {{ name: {name}, namespace: {namespace} }}\n\
         spec:\n  connection:\n    host: {address}\n    port: 623\n\
         \x20   authSecretRef: {{ name: {name}, namespace: {namespace} }}\n\
         \x20   insecureTLS: false\n",
        address = bmc.address,
        what = bmc.description,
    );
    let options = match bmc.protocols.first() {
        Some(ProtocolKind::AmtTls) => "    providerOptions: { intelAMT: { hostScheme: https } }\n",
        Some(ProtocolKind::AmtPlain) => "    providerOptions: { intelAMT: { hostScheme: http } }\n",
        Some(ProtocolKind::Redfish) => "    providerOptions: { redfish: {} }\n",
        Some(ProtocolKind::Ipmi) | None => "",
    };
    yaml.push_str(options);
    if let Some(owner) = owner {
        let group = "bmc.tinkerbell.org";
        let reference = format!(r#"{{"apiGroup":"{group}","kind":"Machine","name":"{name}"}}"#);
        let patch = format!(r#"{{"spec":{{"bmcRef":{reference}}}}}"#);
        let _ = writeln!(
            yaml,
            "# Then: kubectl -n {namespace} patch hardware {} --type merge -p '{patch}'",
            owner.name,
        );
    }
    yaml
}

#[cfg(test)]
mod tests {
    use super::manifest;
    use crate::{DiscoveredBmc, OwnerMatch, ProtocolKind};

    #[test]
    fn the_manifest_has_the_best_protocol_and_the_command_for_the_hardware() {
        let bmc = DiscoveredBmc {
            address: [10, 0, 0, 9].into(),
            mac: String::new(),
            protocols: vec![ProtocolKind::AmtTls, ProtocolKind::AmtPlain],
            uuids: Vec::new(),
            description: "Intel AMT 12.0, provisioned".into(),
        };
        let owner = OwnerMatch {
            namespace: "lab".into(),
            name: "nuc1".into(),
            reason: String::new(),
            has_bmc: false,
        };
        let yaml = manifest(&bmc, Some(&owner));
        for part in [
            "metadata: { name: nuc1-bmc, namespace: lab }",
            "host: 10.0.0.9",
            "intelAMT: { hostScheme: https }",
            "kubectl -n lab patch hardware nuc1 --type merge",
        ] {
            assert!(yaml.contains(part), "{part}: {yaml}");
        }
        let unowned = manifest(&bmc, None);
        assert!(unowned.contains("name: bmc-10-0-0-9, namespace: default"), "{unowned}");
        assert!(!unowned.contains("patch hardware"), "{unowned}");
    }
}
