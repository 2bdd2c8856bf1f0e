//! The NoCloud seed (cloud-init, `DataSourceNoCloud`), for `ds=nocloud;s=http://box/nocloud/`.
//!
//! All of a seed's files answer, empty when there is nothing to say: cloud-init 22.4 takes a
//! missing `user-data` for a missing seed, and asks eleven times for a missing `vendor-data`.

use crate::Instance;

/// The text of one of the seed's files; `None` when a seed has no such file.
pub(crate) fn file(instance: &Instance, name: &str) -> Option<String> {
    let secret = |data: &Option<stdx::Secret>| {
        data.as_ref().map_or_else(String::new, |data| data.expose().to_owned())
    };
    match name {
        "meta-data" => Some(meta_data(instance)),
        "user-data" => Some(secret(&instance.user_data)),
        "vendor-data" => Some(secret(&instance.vendor_data)),
        "network-config" => Some(network_config(instance)),
        _ => None,
    }
}

fn meta_data(instance: &Instance) -> String {
    let mut lines = vec![
        format!("instance-id: {}", scalar(&instance.id)),
        format!("local-hostname: {}", scalar(&instance.hostname)),
    ];
    if !instance.public_keys.is_empty() {
        lines.push("public-keys:".to_owned());
        lines.extend(instance.public_keys.iter().map(|key| format!("  - {}", scalar(key))));
    }
    lines.join("\n") + "\n"
}

/// The interface asks by DHCP: the reservation answers it, and stays the one place where the
/// address is written.
fn network_config(instance: &Instance) -> String {
    let Some(network) = &instance.network else { return String::new() };
    format!(
        "version: 2\nethernets:\n  boot:\n    match:\n      macaddress: {}\n    dhcp4: true\n",
        scalar(&network.mac.to_string())
    )
}

/// A YAML scalar: a JSON string is one.
fn scalar(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::file;
    use crate::Instance;
    use crate::ec2::tests::instance;

    #[test]
    fn a_seed_has_four_files() {
        let instance = instance();
        assert_eq!(
            file(&instance, "meta-data").unwrap(),
            "instance-id: \"i-1\"\nlocal-hostname: \"nuc-1\"\npublic-keys:\n  \
             - \"ssh-ed25519 AAAA one\"\n  - \"ssh-rsa BBBB two\"\n"
        );
        assert_eq!(file(&instance, "user-data").unwrap(), "#cloud-config\n{}\n");
        assert_eq!(file(&instance, "vendor-data").unwrap(), "");
        assert_eq!(
            file(&instance, "network-config").unwrap(),
            "version: 2\nethernets:\n  boot:\n    match:\n      \
             macaddress: \"52:54:00:77:00:01\"\n    dhcp4: true\n"
        );
        assert_eq!(file(&instance, "passwd"), None);
        assert_eq!(file(&Instance::default(), "network-config").unwrap(), "");
    }

    #[test]
    fn no_value_can_add_a_line() {
        let hostname = "a\nuser: root \"'# {".to_owned();
        let text = file(&Instance { hostname, ..Instance::default() }, "meta-data").unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains(r#"local-hostname: "a\nuser: root \"'# {""#));
    }
}
