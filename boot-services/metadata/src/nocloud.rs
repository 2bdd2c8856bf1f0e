//! Files of the NoCloud seed (cloud-init, `DataSourceNoCloud`), for
//! `ds=nocloud;s=http://box/nocloud/`, and with the older network configuration for
//! `…/nocloud/v1/`.
//!
//! All files of a seed exist, if necessary empty. cloud-init 22.4 treats a seed without `user-data`
//! as missing, and requests a missing `vendor-data` eleven times.

use serde_json::{Map, Value, json};

use crate::Instance;
use crate::config::Addressing;

mod network;
mod yaml;

/// Version of the network configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkConfig {
    /// Version 1, cloud-init's own format.
    V1,
    /// Version 2, netplan's format.
    V2,
}

/// Returns the text of a seed's file; `None` if a seed has no file of this name.
pub(crate) fn file(
    instance: &Instance,
    name: &str,
    version: NetworkConfig,
    addressing: Addressing,
) -> Option<String> {
    let secret = |data: &Option<stdx::Secret>| {
        data.as_ref().map_or_else(String::new, |data| data.expose().to_owned())
    };
    match name {
        "meta-data" => Some(yaml::text(&meta_data(instance))),
        "user-data" => Some(secret(&instance.user_data)),
        "vendor-data" => Some(secret(&instance.vendor_data)),
        // Nothing is better than an empty configuration, which would switch every interface off.
        "network-config" if instance.interfaces.is_empty() => Some(String::new()),
        "network-config" => Some(yaml::text(&match version {
            NetworkConfig::V1 => network::v1(instance, addressing),
            NetworkConfig::V2 => network::v2(instance, addressing),
        })),
        _ => None,
    }
}

/// Returns the keys that NoCloud reads, and the keys that templates for `{{ ds.meta_data.… }}`
/// expect. A key without a value is omitted.
fn meta_data(instance: &Instance) -> Value {
    let mut all = Map::new();
    // The owner's own keys come first: the box's, which follow, go over them.
    let extra = instance.extra.iter().filter(|(name, _)| is_plain(name));
    all.extend(extra.map(|(name, value)| (name.clone(), value.as_str().into())));
    let local_ipv4 = instance.local_ipv4();
    for (key, text) in [
        ("name", instance.name.as_str()),
        ("uuid", instance.uuid.as_str()),
        ("providerid", instance.provider_id.as_str()),
        ("provider-id", instance.provider_id.as_str()),
        ("hostname", instance.hostname()),
        ("plan", instance.plan.as_str()),
        ("facility", instance.facility.as_str()),
        ("local-ipv4", local_ipv4.as_str()),
        ("public-ipv4", instance.public_ipv4.as_str()),
        ("public-ipv6", instance.public_ipv6.as_str()),
    ] {
        if !text.is_empty() {
            all.insert(key.to_owned(), text.into());
        }
    }
    for (key, list) in [("public-keys", &instance.public_keys), ("tags", &instance.tags)] {
        if !list.is_empty() {
            all.insert(key.to_owned(), json!(list));
        }
    }
    all.insert("instance-id".to_owned(), instance.id().into());
    all.insert("local-hostname".to_owned(), instance.hostname().into());
    all.into()
}

/// Returns true if a name is a plain word in YAML, not a number, a boolean or null.
fn is_plain(name: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !WORDS.contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::NetworkConfig::{V1, V2};
    use crate::Instance;
    use crate::config::Addressing;
    use crate::ec2::tests::instance;

    fn file(instance: &Instance, name: &str) -> Option<String> {
        super::file(instance, name, V2, Addressing::Dhcp)
    }

    #[test]
    fn a_seed_has_four_files() {
        let instance = instance();
        let meta_data = "\
facility: \"onprem\"
hostname: \"nuc-1\"
instance-id: \"i-1\"
local-hostname: \"nuc-1\"
local-ipv4: \"10.77.3.11\"
name: \"nuc-1-hardware\"
plan: \"c3.small\"
provider-id: \"tinkerbell://default/nuc-1\"
providerid: \"tinkerbell://default/nuc-1\"
public-keys:
  - \"ssh-ed25519 AAAA one\"
  - \"ssh-rsa BBBB two\"
role: \"storage\"
tags:
  - \"tag1\"
  - \"tag2\"
uuid: \"c0ffee\"
";
        assert_eq!(file(&instance, "meta-data").unwrap(), meta_data);
        assert_eq!(file(&instance, "user-data").unwrap(), "#cloud-config\n{}\n");
        assert_eq!(file(&instance, "vendor-data").unwrap(), "");
        assert_eq!(
            file(&instance, "network-config").unwrap(),
            "ethernets:\n  nic0:\n    dhcp4: true\n    dhcp6: false\n    match:\n      \
             macaddress: \"52:54:00:77:00:01\"\nversion: 2\n"
        );
        let v1 = super::file(&instance, "network-config", V1, Addressing::Dhcp).unwrap();
        assert!(v1.starts_with("config:\n  - mac_address: \"52:54:00:77:00:01\"\n"), "{v1}");
        assert_eq!(file(&instance, "passwd"), None);
        assert_eq!(file(&Instance::default(), "network-config").unwrap(), "");
    }

    #[test]
    fn no_value_can_add_a_line_and_no_key_replaces_the_boxs() {
        let hostname = "a\nuser: root \"'# {".to_owned();
        let extra = [("uuid", "mine"), ("no", "x"), ("1", "x"), ("a: b", "x"), ("a", "x")];
        let extra = extra.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let uuid = "own".to_owned();
        let instance = Instance { hostname, extra, uuid, ..Instance::default() };
        let text = file(&instance, "meta-data").unwrap();
        let line = r#""a\nuser: root \"'# {""#;
        let expected = format!(
            "a: \"x\"\nhostname: {line}\ninstance-id: \"own\"\nlocal-hostname: {line}\n\
             uuid: \"own\"\n"
        );
        assert_eq!(text, expected);
    }
}
