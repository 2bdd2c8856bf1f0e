use api::document::{Document, data, lint, parse_with_warnings};
use api::meta::ObjectKey;
use api::tinkerbell::{Hardware, Template};
use serde_json::{Value, json};

use super::{
    DataFormat, Installation, Overrides, TargetDisk, default_data, hardware_override, referenced,
};
use crate::InstallError;
use crate::image::{Checksum, Image, ImageLocation};

const MAC: &str = "52:54:00:77:00:01";
const METADATA: &str = "http://10.77.0.1:50061";

fn url(url: &str) -> Image {
    let location = ImageLocation::Url(url.to_owned());
    let (distro, version) = ("ubuntu".to_owned(), "24.04".to_owned());
    Image { location, checksum: None, distro, version }
}

fn made(image: &Image, disk: &str, format: &DataFormat) -> Result<String, InstallError> {
    let (name, metadata_url) = ("worker-a-x7k2p", METADATA);
    let disk = TargetDisk::Named(disk);
    default_data(&Installation { name, image, disk, metadata_url, format })
}

/// Renders template data as the workflow controller does. The data must have no mistake.
fn rendered(text: &str) -> Document {
    ::template::check(text).unwrap();
    let found = lint(text);
    assert_eq!(found, api::document::Lint::default(), "{text}");
    let map = [("device_1".to_owned(), MAC.to_owned())].into();
    let rendered = ::template::render(text, &data(&map, &Value::Null)).unwrap();
    let (document, unknown) = parse_with_warnings(&rendered).unwrap();
    assert_eq!(unknown, Vec::<String>::new());
    document
}

fn settings<'a>(document: &'a Document, action: &str) -> Vec<(&'a str, &'a str)> {
    let action = document.tasks[0].actions.iter().find(|it| it.name == action).unwrap();
    action.environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

#[test]
fn the_default_template_has_no_mistake() {
    let text = made(&url("http://a/b.raw.zst"), "/dev/nvme0n1", &DataFormat::CloudConfig).unwrap();
    let document = rendered(&text);
    assert_eq!((&*document.version, &*document.name), ("0.1", "worker-a-x7k2p"));
    let task = &document.tasks[0];
    assert_eq!((&*task.name, &*task.worker), ("worker-a-x7k2p", MAC));
    let actions: Vec<_> = task.actions.iter().map(|it| (&*it.image, it.timeout)).collect();
    let image = |name: &str| format!("quay.io/tinkerbell/actions/{name}:latest");
    let (stream, write, reboot) = (image("image2disk"), image("writefile"), image("reboot"));
    let expected = [(&*stream, 3600), (&*write, 120), (&*write, 120), (&*reboot, 60)];
    assert_eq!(actions, expected);
    assert_eq!((task.actions[0].retries, task.actions[0].retry_wait), (2, 15));
    let streamed =
        [("COMPRESSED", "true"), ("DEST_DISK", "/dev/nvme0n1"), ("IMG_URL", "http://a/b.raw.zst")];
    assert_eq!(settings(&document, "stream image"), streamed);
    let config = "datasource:\n  Ec2:\n    metadata_urls:\n    - http://10.77.0.1:50061\n    \
                  strict_id: false\nmanage_etc_hosts: localhost\nwarnings:\n  \
                  dsid_missing_source: false\n";
    let written = [
        ("CONTENTS", config),
        ("DEST_DISK", "/dev/nvme0n1p1"),
        ("DEST_PATH", "/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg"),
        ("DIRMODE", "0755"),
        ("FS_TYPE", "ext4"),
        ("GID", "0"),
        ("MODE", "0644"),
        ("UID", "0"),
    ];
    assert_eq!(settings(&document, "add cloud-init config"), written);
    let chosen = settings(&document, "add cloud-init ds-identify config");
    assert_eq!(chosen[0], ("CONTENTS", "datasource: Ec2\n"));
    assert_eq!(chosen[2], ("DEST_PATH", "/etc/cloud/ds-identify.cfg"));
}

#[test]
fn the_source_determines_the_action() {
    let reference = "ghcr.io/owner/ubuntu-2004:v1.23.5.gz";
    let location = ImageLocation::Registry(reference.to_owned());
    let document =
        |image: &Image| rendered(&made(image, "/dev/sda", &DataFormat::CloudConfig).unwrap());
    let registry = document(&Image { location, ..url("") });
    let image = &registry.tasks[0].actions[0].image;
    assert_eq!(image, "quay.io/tinkerbell/actions/oci2disk:latest");
    let of_image = [("COMPRESSED", "true"), ("DEST_DISK", "/dev/sda"), ("IMG_URL", reference)];
    assert_eq!(settings(&registry, "stream image"), of_image);
    let plain = document(&url("https://a/b.img?sum=x.gz"));
    assert!(settings(&plain, "stream image").iter().all(|(name, _)| *name != "COMPRESSED"));
    for (checksum, setting) in [
        (Checksum::Sha256("aa".to_owned()), ("IMG_SHA256", "aa")),
        (Checksum::Sha512("bb".to_owned()), ("IMG_SHA512", "bb")),
        (Checksum::Md5("cc".to_owned()), ("IMG_MD5", "cc")),
        (Checksum::SumsUrl("http://a/s".to_owned()), ("IMG_CHECKSUM_URL", "http://a/s")),
    ] {
        let image = Image { checksum: Some(checksum), ..url("http://a/b") };
        assert!(settings(&document(&image), "stream image").contains(&setting));
    }
}

#[test]
fn a_disk_is_a_path_or_a_hint() {
    let format = DataFormat::CloudConfig;
    for (disk, partition) in [
        ("/dev/sda", "/dev/sda1"),
        ("/dev/vdb", "/dev/vdb1"),
        ("/dev/nvme1n1", "/dev/nvme1n1p1"),
        ("/dev/mmcblk0", "/dev/mmcblk0p1"),
        ("/dev/disk/by-id/nvme-X_1", "/dev/disk/by-id/nvme-X_1-part1"),
        ("serial=S4EV,minSizeGigabytes=200", "serial=S4EV,minSizeGigabytes=200,partition=1"),
    ] {
        let document = rendered(&made(&url("http://a/b"), disk, &format).unwrap());
        assert_eq!(settings(&document, "stream image")[0], ("DEST_DISK", disk));
        assert_eq!(settings(&document, "add cloud-init config")[1], ("DEST_DISK", partition));
    }
    for (disk, why) in [
        ("", "no disk is set"),
        ("sda", "expected an absolute path or hints"),
        ("/dev/sd\na", "it has a control character"),
        ("serial=S4EV, partition=2", "expected a whole disk, found a partition"),
    ] {
        let error = made(&url("http://a/b"), disk, &format).unwrap_err();
        assert_eq!(error.reason(), "DiskInvalid");
        assert_eq!(error.to_string(), format!("disk {disk:?}: {why}"));
    }
}

#[test]
fn other_formats_get_no_files_of_cloud_init() {
    let other = DataFormat::Other("bottlerocket".to_owned());
    let names = |image: &Image, format: &DataFormat| -> Vec<String> {
        let document = rendered(&made(image, "/dev/sda", format).unwrap());
        document.tasks[0].actions.iter().map(|action| action.name.clone()).collect()
    };
    for format in [&DataFormat::Ignition, &DataFormat::Talos, &other] {
        assert_eq!(names(&url("http://a/b"), format), ["stream image", "reboot"]);
    }
    let flatcar = Image { distro: "flatcar".to_owned(), ..url("http://a/b.bin.bz2") };
    let text = made(&flatcar, "/dev/sda", &DataFormat::Ignition).unwrap();
    let document = rendered(&text);
    let written = settings(&document, "add ignition url");
    let config =
        "set linux_append=\"ignition.config.url=http://10.77.0.1:50061/2009-04-04/user-data\"\n";
    assert_eq!(written[..2], [("CONTENTS", config), ("DEST_DISK", "/dev/sda6")]);
}

/// Texts that mean something in YAML or in Go's templates.
const HOSTILE: [&str; 14] = [
    "{{.device_1}}",
    "{{ fail \"x\" }}",
    "{{- /* x */ -}}",
    "{{{{`{{",
    "a}}b{{`c`}}",
    "{\"a\": 1}",
    "- a: b # c",
    "'\"\\",
    "yes",
    "0600",
    "&a *b !c %d @e",
    "a: {{ range .x }}\u{e9}\u{2028}",
    " x ",
    "serial=\"{{.x}}\",model='# {'",
];

#[test]
fn values_cannot_change_the_document() {
    for text in HOSTILE {
        let image = Image { checksum: Some(Checksum::Md5(text.to_owned())), ..url(text) };
        let disk = format!("serial={text}");
        let installation = Installation {
            name: text,
            image: &image,
            disk: TargetDisk::Named(&disk),
            metadata_url: text,
            format: &DataFormat::CloudConfig,
        };
        let data_text = default_data(&installation).unwrap();
        let document = rendered(&data_text);
        assert_eq!((&document.name, &document.tasks[0].name), (&text.into(), &text.into()));
        assert_eq!(document.tasks[0].actions.len(), 4, "{data_text}");
        let streamed = settings(&document, "stream image");
        for setting in [("DEST_DISK", disk.as_str()), ("IMG_MD5", text), ("IMG_URL", text)] {
            assert!(streamed.contains(&setting), "{setting:?} in {data_text}");
        }
        let config = settings(&document, "add cloud-init config")[0].1;
        let config = kube_yaml::read(config).unwrap().value;
        assert_eq!(config["datasource"]["Ec2"]["metadata_urls"], json!([text]));
    }
}

#[test]
fn overrides_have_an_order_and_stay_unchanged() {
    let text = "{{ not yaml\n";
    let (machine, hardware, cluster) = (Some(text), Some("h"), Some("c"));
    let unused = || Err(InstallError::DataMissing);
    let all = Overrides { machine, hardware, cluster };
    assert_eq!(all.data_or(unused).unwrap(), text);
    let no_machine = Overrides { machine: Some(""), ..all };
    assert_eq!(no_machine.data_or(unused).unwrap(), "h");
    assert_eq!(Overrides { hardware: None, ..no_machine }.data_or(unused).unwrap(), "c");
    let none = Overrides::default();
    assert_eq!(none.data_or(|| Ok("default".to_owned())).unwrap(), "default");
    assert_eq!(none.data_or(unused), Err(InstallError::DataMissing));
}

#[test]
fn a_referenced_template_has_a_text() {
    let hardware = |annotations: Value| -> Hardware {
        let metadata = json!({ "name": "nuc1", "namespace": "rack", "annotations": annotations });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    };
    assert_eq!(hardware_override(&hardware(json!({}))), None);
    let annotation = json!({ "hardware.tinkerbell.org/capt-template-override": "mine" });
    let key = hardware_override(&hardware(annotation)).unwrap();
    assert_eq!(key, ObjectKey::new("rack", "mine"));
    let mut template = Template::default();
    let missing = referenced(&key, None).unwrap_err();
    assert_eq!(
        (missing.reason(), &*missing.to_string()),
        ("TemplateNotFound", "Template rack/mine does not exist")
    );
    assert_eq!(referenced(&key, Some(&template)).unwrap_err().reason(), "TemplateEmpty");
    template.spec.data = Some("x".to_owned());
    assert_eq!(referenced(&key, Some(&template)).unwrap(), "x");
}

#[test]
fn one_text_installs_the_first_disk_of_each_machine() {
    let installation = Installation {
        name: "debian",
        image: &url("upload://box/debian.qcow2"),
        disk: TargetDisk::FirstOfHardware,
        metadata_url: METADATA,
        format: &DataFormat::CloudConfig,
    };
    let text = default_data(&installation).unwrap();
    ::template::check(&text).unwrap();
    let map = [("device_1".to_owned(), MAC.to_owned())].into();
    for (disk, partition) in [("/dev/sda", "/dev/sda1"), ("/dev/nvme0n1", "/dev/nvme0n1p1")] {
        let hardware = json!({ "spec": { "disks": [{ "device": disk }] } });
        let rendered = ::template::render(&text, &data(&map, &hardware)).unwrap();
        let (document, _) = parse_with_warnings(&rendered).unwrap();
        assert!(settings(&document, "stream image").contains(&("DEST_DISK", disk)));
        let file = settings(&document, "add cloud-init config");
        assert!(file.contains(&("DEST_DISK", partition)), "{file:?}");
    }
}

#[test]
fn fedora_has_its_root_in_a_subvolume() {
    for (version, partition) in [("43", "/dev/sda4"), ("44", "/dev/sda3"), ("", "/dev/sda3")] {
        let (distro, version) = ("fedora".to_owned(), version.to_owned());
        let image = Image { distro, version, ..url("http://a/b.qcow2") };
        let text = made(&image, "/dev/sda", &DataFormat::CloudConfig).unwrap();
        let document = rendered(&text);
        let written = settings(&document, "add cloud-init config");
        let path = "/root/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg";
        for setting in [("DEST_DISK", partition), ("FS_TYPE", "btrfs"), ("DEST_PATH", path)] {
            assert!(written.contains(&setting), "{setting:?} in {written:?}");
        }
    }
}
