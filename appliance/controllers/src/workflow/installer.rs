//! Settings of actions with the image `osie-installer`, the first installer of Tinkerbell. This
//! installer read image and disk from the metadata of its machine. Tinbox runs `image2disk` with
//! these settings.

use api::document::{Document, repository};
use api::tinkerbell::Hardware;

/// Repository name of the image.
const IMAGE: &str = "osie-installer";
const SOURCE: &str = "IMG_URL";
const DISK: &str = "DEST_DISK";

/// Adds the missing settings to actions with the image `osie-installer`.
///
/// # Errors
/// An action lacks image or disk, as a sentence. The check runs before the workflow begins, because
/// an earlier action may erase the disk.
pub fn complete(document: &mut Document, hardware: Option<&Hardware>) -> Result<(), String> {
    for task in &mut document.tasks {
        for action in &mut task.actions {
            if repository(&action.image) != IMAGE {
                continue;
            }
            for (setting, field, found) in [
                (SOURCE, "metadata.instance.operating_system.image_tag", image(hardware)),
                (DISK, "disks", disk(hardware)),
            ] {
                let of = |map: &std::collections::BTreeMap<String, String>| {
                    map.get(setting).is_some_and(|value| !value.is_empty())
                };
                if of(&action.environment) || of(&task.environment) {
                    continue;
                }
                let value = found.ok_or_else(|| {
                    format!(
                        "action {:?}: {IMAGE} runs as image2disk and lacks {setting}: set it in \
                         the action's environment, or spec.{field} of the Hardware{}",
                        action.name,
                        if setting == SOURCE { " to the URL of a disk image" } else { "" },
                    )
                })?;
                action.environment.insert(setting.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// Returns the image of the machine's operating system; `None` if the image is not an HTTP URL.
fn image(hardware: Option<&Hardware>) -> Option<String> {
    let instance = hardware?.spec.metadata.as_ref()?.instance.as_ref()?;
    let tag = &instance.operating_system.as_ref()?.image_tag;
    ["http://", "https://"].iter().any(|scheme| tag.starts_with(scheme)).then(|| tag.clone())
}

/// Returns the device path of the machine's first disk.
fn disk(hardware: Option<&Hardware>) -> Option<String> {
    let disk = hardware?.spec.disks.first()?;
    (!disk.device.is_empty()).then(|| disk.device.clone())
}

#[cfg(test)]
mod tests {
    use api::document::parse;
    use api::tinkerbell::Hardware;
    use serde_json::json;

    use super::complete;

    const TEMPLATE: &str = "name: basic-provision\ntasks:\n- name: os-install\n  worker: w\n  \
                            actions:\n  - name: install-os\n    image: osie-installer:latest\n";

    fn hardware(image: &str) -> Hardware {
        serde_json::from_value(json!({
            "metadata": { "name": "nuc1" },
            "spec": {
                "disks": [{ "device": "/dev/nvme0n1" }],
                "metadata": { "instance": { "operating_system": { "image_tag": image } } },
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_old_installer_takes_image_and_disk_from_the_machines_metadata() {
        let mut document = parse(TEMPLATE).unwrap();
        let url = "http://10.0.0.5/debian.raw.zst";
        complete(&mut document, Some(&hardware(url))).unwrap();
        let environment = &document.tasks[0].actions[0].environment;
        assert_eq!((&*environment["IMG_URL"], &*environment["DEST_DISK"]), (url, "/dev/nvme0n1"));

        let own = format!("{TEMPLATE}    environment: {{IMG_URL: x, DEST_DISK: /dev/sda}}\n");
        let mut document = parse(&own).unwrap();
        complete(&mut document, Some(&hardware(url))).unwrap();
        let environment = &document.tasks[0].actions[0].environment;
        assert_eq!((&*environment["IMG_URL"], &*environment["DEST_DISK"]), ("x", "/dev/sda"));
    }

    #[test]
    fn without_an_image_it_is_refused_before_a_disk_is_touched() {
        for hardware in [None, Some(hardware("ubuntu_22_04"))] {
            let mut document = parse(TEMPLATE).unwrap();
            let why = complete(&mut document, hardware.as_ref()).unwrap_err();
            let lacks = "action \"install-os\": osie-installer runs as image2disk and \
                         lacks IMG_URL";
            assert!(why.starts_with(lacks), "{why}");
        }
    }
}
