//! Tests the EC2 tree, byte for byte where Tootles' own tests give the bytes.

use super::{Version, lookup};
use crate::{Instance, Interface, OperatingSystem, Provisioning};

pub(crate) fn instance() -> Instance {
    Instance {
        id: "i-1".to_owned(),
        hardware: "default/nuc-1".to_owned(),
        name: "nuc-1-hardware".to_owned(),
        uuid: "c0ffee".to_owned(),
        provider_id: "tinkerbell://default/nuc-1".to_owned(),
        hostname: "nuc-1".to_owned(),
        public_keys: vec!["ssh-ed25519 AAAA one".to_owned(), "ssh-rsa BBBB two".to_owned()],
        user_data: Some("#cloud-config\n{}\n".into()),
        interfaces: vec![Interface {
            address: Some("10.77.3.11/22".parse().unwrap()),
            gateway: Some("10.77.0.1".parse().unwrap()),
            name_servers: vec!["10.77.0.1".parse().unwrap()],
            ..Interface::new("52:54:00:77:00:01".parse().unwrap())
        }],
        tags: vec!["tag1".to_owned(), "tag2".to_owned()],
        plan: "c3.small".to_owned(),
        facility: "onprem".to_owned(),
        operating_system: OperatingSystem {
            slug: "debian_12".to_owned(),
            distro: "debian".to_owned(),
            version: "12".to_owned(),
            image_tag: "t".to_owned(),
        },
        extra: [("role".to_owned(), "storage".to_owned())].into(),
        provisioning: Provisioning::Underway,
        ..Instance::default()
    }
}

fn get(instance: &Instance, version: &str, path: &str) -> Option<String> {
    lookup(instance, Version::read(version).unwrap(), path)
}

#[test]
fn folders_list_what_tootles_lists() {
    let bare = Instance::default();
    for slash in ["", "/"] {
        let list = |path: &str| get(&bare, "2009-04-04", &format!("{path}{slash}")).unwrap();
        assert_eq!(list(""), "meta-data/\nuser-data");
        assert_eq!(
            list("meta-data"),
            "facility\nhostname\ninstance-id\niqn\nlocal-hostname\nlocal-ipv4\n\
             operating-system/\nplan\npublic-ipv4\npublic-ipv6\npublic-keys\ntags"
        );
        assert_eq!(
            list("meta-data/operating-system"),
            "distro\nimage_tag\nlicense_activation/\nslug\nversion"
        );
        assert_eq!(list("meta-data/operating-system/license_activation"), "state");
    }
}

#[test]
fn leaves_hold_what_is_known_and_nothing_else() {
    let instance = instance();
    for (path, text) in [
        ("user-data", "#cloud-config\n{}\n"),
        ("meta-data/instance-id", "i-1"),
        ("meta-data/hostname", "nuc-1"),
        ("meta-data/local-hostname", "nuc-1"),
        ("meta-data/iqn", ""),
        ("meta-data/plan", "c3.small"),
        ("meta-data/facility", "onprem"),
        ("meta-data/tags", "tag1\ntag2"),
        ("meta-data/public-ipv4", ""),
        ("meta-data/public-ipv6", ""),
        ("meta-data/local-ipv4", ""),
        ("meta-data/operating-system/slug", "debian_12"),
        ("meta-data/operating-system/distro", "debian"),
        ("meta-data/operating-system/version", "12"),
        ("meta-data/operating-system/image_tag", "t"),
        ("meta-data/operating-system/license_activation/state", ""),
        ("meta-data/public-keys", ""),
    ] {
        assert_eq!(get(&instance, "2009-04-04", path).as_deref(), Some(text), "{path}");
        let slashed = format!("{path}/");
        assert_eq!(get(&instance, "2009-04-04", &slashed).as_deref(), Some(text), "{slashed}");
    }
    for path in [
        "meta-data/public-keys/0",
        "meta-data/x",
        "dynamic",
        "meta-data/network",
        "meta-data/name",
        "meta",
        "meta-data//",
        "meta-data/plan//",
        "/meta-data",
        "meta-data/plan/x",
    ] {
        assert_eq!(get(&instance, "2009-04-04", path), None, "{path}");
    }
}

#[test]
fn tinkerbells_version_invents_nothing() {
    let bare = Instance {
        name: "nuc-1".to_owned(),
        uuid: "c0ffee".to_owned(),
        interfaces: instance().interfaces,
        ..Instance::default()
    };
    for name in ["instance-id", "hostname", "local-hostname", "local-ipv4"] {
        let path = format!("meta-data/{name}");
        assert_eq!(get(&bare, "2009-04-04", &path).unwrap(), "", "{name}");
        assert_ne!(get(&bare, "latest", &path).unwrap(), "", "{name}");
    }
}

#[test]
fn later_versions_name_the_machine_and_its_keys() {
    let instance = instance();
    for (path, text) in [
        ("user-data", "#cloud-config\n{}\n"),
        ("meta-data/local-ipv4", "10.77.3.11"),
        ("meta-data/name", "nuc-1-hardware"),
        ("meta-data/uuid", "c0ffee"),
        ("meta-data/providerid", "tinkerbell://default/nuc-1"),
        ("meta-data/provider-id", "tinkerbell://default/nuc-1"),
        ("meta-data/role", "storage"),
        ("meta-data/public-keys", "0=key-0\n1=key-1"),
        ("meta-data/public-keys/", "0=key-0\n1=key-1"),
        ("meta-data/public-keys/0", "openssh-key"),
        ("meta-data/public-keys/0/", "openssh-key"),
        ("meta-data/public-keys/1/openssh-key", "ssh-rsa BBBB two"),
    ] {
        assert_eq!(get(&instance, "2009-04-05", path).as_deref(), Some(text), "{path}");
    }
    assert_eq!(get(&instance, "latest", "meta-data/public-keys/2"), None);
    assert_eq!(
        get(&instance, "latest", "meta-data/").unwrap(),
        "facility\nhostname\ninstance-id\niqn\nlocal-hostname\nlocal-ipv4\nmac\nname\n\
         network/\noperating-system/\nplan\nprovider-id\nproviderid\npublic-ipv4\n\
         public-ipv6\npublic-keys/\nrole\ntags\nuuid"
    );
}

#[test]
fn no_key_of_the_owners_replaces_one_of_the_boxs() {
    let mut instance = instance();
    for name in ["uuid", "network", "public-keys", "operating-system"] {
        instance.extra.insert(name.to_owned(), "mine".to_owned());
    }
    let list = get(&instance, "latest", "meta-data").unwrap();
    let mut names: Vec<&str> = list.lines().map(|name| name.trim_end_matches('/')).collect();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "{list}");
    assert_eq!(get(&instance, "latest", "meta-data/uuid").unwrap(), "c0ffee");
}

#[test]
fn an_address_that_was_typed_in_goes_before_the_reserved_one() {
    let mut instance = instance();
    instance.local_ipv4 = "192.168.1.9".to_owned();
    instance.public_ipv4 = "203.0.113.9".to_owned();
    instance.public_ipv6 = "2001:DB8::9".to_owned();
    for version in ["2009-04-04", "latest"] {
        let leaf = |name: &str| get(&instance, version, &format!("meta-data/{name}")).unwrap();
        assert_eq!(leaf("local-ipv4"), "192.168.1.9");
        assert_eq!(leaf("public-ipv4"), "203.0.113.9");
        assert_eq!(leaf("public-ipv6"), "2001:DB8::9");
    }
}

#[test]
fn every_interface_is_told() {
    let mut instance = instance();
    let second = "fd00::2/64".parse().unwrap();
    let interface = |mac: &str| Interface::new(mac.parse().unwrap());
    instance.interfaces.push(Interface { address: Some(second), ..interface("52:54:00:77:00:02") });
    instance.interfaces.push(interface("52:54:00:77:00:03"));
    let get = |path: &str| {
        get(&instance, "latest", &format!("meta-data/network/interfaces/macs/{path}")).unwrap()
    };
    assert_eq!(get(""), "52:54:00:77:00:01/\n52:54:00:77:00:02/\n52:54:00:77:00:03/");
    assert_eq!(get("52:54:00:77:00:02/device-number"), "1");
    assert_eq!(get("52:54:00:77:00:02/ipv6s"), "fd00::2");
    assert_eq!(get("52:54:00:77:00:02/subnet-ipv6-cidr-blocks"), "fd00::/64");
    assert_eq!(get("52:54:00:77:00:03/"), "device-number\nlocal-hostname\nmac");
}

#[test]
fn later_versions_have_the_network() {
    let instance = instance();
    for version in ["latest", "2021-03-23", "2018-09-24", "2016-09-02", "2011-01-01"] {
        let get = |path: &str| get(&instance, version, &format!("meta-data/{path}")).unwrap();
        assert_eq!(get("mac"), "52:54:00:77:00:01");
        assert_eq!(get("network/interfaces/macs/"), "52:54:00:77:00:01/");
        let of = |name: &str| get(&format!("network/interfaces/macs/52:54:00:77:00:01/{name}"));
        assert_eq!(
            of(""),
            "device-number\nlocal-hostname\nlocal-ipv4s\nmac\nsubnet-ipv4-cidr-block"
        );
        assert_eq!(of("subnet-ipv4-cidr-block"), "10.77.0.0/22");
        assert_eq!(of("local-ipv4s"), "10.77.3.11");
    }
    assert!(get(&Instance::default(), "latest", "meta-data/network").is_none());
}

#[test]
fn versions_are_dates_from_the_first_on() {
    for text in ["2009-04-03", "1.0", "2009-04-4x", "20090404--", "", "LATEST", "2009/04/04"] {
        assert_eq!(Version::read(text), None, "{text}");
    }
}
