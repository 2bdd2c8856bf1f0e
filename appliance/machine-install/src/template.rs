//! Template data of an installation: the text of an override, else the default.

use api::infrastructure::WipeMethod;
use api::meta::ObjectKey;
use api::tinkerbell::{Hardware, Template};
use serde_json::{Value, json};

use super::InstallError;
use super::image::{Checksum, Image, ImageLocation};
use super::user_data::DataFormat;

/// Annotation of a Hardware with the name of the Template that installs the machine.
const TEMPLATE_OVERRIDE: &str = "hardware.tinkerbell.org/capt-template-override";

/// Registry and path of Tinkerbell's actions. The agent selects built-in actions by the last part.
const ACTIONS: &str = "quay.io/tinkerbell/actions/";
/// Time limit of the workflow in seconds, as in the template library.
const WORKFLOW_TIMEOUT: u64 = 5400;
/// Time limit of the image download in seconds.
const IMAGE_TIMEOUT: u64 = 3600;
/// Repeats of the image download, and wait before the first repeat in seconds.
const IMAGE_RETRIES: u64 = 2;
const IMAGE_RETRY_WAIT: u64 = 15;
/// Time limit of one file in seconds.
const FILE_TIMEOUT: u64 = 120;
const REBOOT_TIMEOUT: u64 = 60;
/// Time limit in seconds to erase one disk, as in the template library.
const WIPE_TIMEOUT: u64 = 28_800;

/// Root file system in images for cloud-init, as in CAPT. The action `writefile` does not search
/// for the root file system.
const ROOT: RootFs = RootFs { partition: 1, fs_type: "ext4", folder: "" };
/// Root file system in Fedora's cloud images: a subvolume of Btrfs, behind the partitions for BIOS
/// boot, EFI and /boot.
const FEDORA: &str = "fedora";
const FEDORA_ROOT: RootFs = RootFs { partition: 4, fs_type: "btrfs", folder: "/root" };
/// First version of Fedora whose /boot is a subvolume too, so that it has a partition less
/// (fedoraproject.org/wiki/Changes/BtrfsBootForCloud).
const FEDORA_WITHOUT_BOOT: u32 = 44;
/// Distribution whose Ignition gets its URL from a file, and the partition of this file (OEM).
const FLATCAR: &str = "flatcar";
const FLATCAR_PARTITION: u32 = 6;

/// File names that end so are compressed images. Tinkerbell's own agent needs the setting
/// `COMPRESSED` for them; the agent of the box detects compression by itself.
const COMPRESSED: [&str; 4] = [".gz", ".xz", ".zst", ".bz2"];

/// Texts that replace the default Template data. An empty text counts as absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides<'a> {
    /// `templateOverride` of the TinkerbellMachine.
    pub machine: Option<&'a str>,
    /// Text of the Template that [`hardware_override`] names.
    pub hardware: Option<&'a str>,
    /// `templateOverride` of the TinkerbellCluster, or the text of the Template that
    /// `templateOverrideRef` names.
    pub cluster: Option<&'a str>,
}

impl<'a> Overrides<'a> {
    /// Returns the override with the highest precedence: machine, Hardware, cluster.
    fn chosen(&self) -> Option<&'a str> {
        let all = [self.machine, self.hardware, self.cluster];
        all.into_iter().flatten().find(|text| !text.is_empty())
    }

    /// Returns the override unchanged, else the result of `default`.
    ///
    /// # Errors
    /// `default` fails.
    pub fn data_or(
        &self,
        default: impl FnOnce() -> Result<String, InstallError>,
    ) -> Result<String, InstallError> {
        self.chosen().map_or_else(default, |text| Ok(text.to_owned()))
    }
}

/// Returns the key of the Template that the annotation of a Hardware names; `None` without the
/// annotation.
pub fn hardware_override(hardware: &Hardware) -> Option<ObjectKey> {
    let name = hardware.metadata.annotations.get(TEMPLATE_OVERRIDE)?;
    (!name.is_empty()).then(|| ObjectKey::new(&hardware.metadata.namespace, name))
}

/// Returns the text of a referenced Template; `template` is `None` if the object does not exist.
///
/// # Errors
/// The Template does not exist, or has no text.
pub fn referenced<'a>(
    key: &ObjectKey,
    template: Option<&'a Template>,
) -> Result<&'a str, InstallError> {
    let template = template.ok_or_else(|| InstallError::TemplateNotFound(key.clone()))?;
    let text = template.spec.data.as_deref().filter(|text| !text.is_empty());
    text.ok_or_else(|| InstallError::TemplateEmpty(key.clone()))
}

/// Place of the root file system in an image.
struct RootFs {
    partition: u32,
    fs_type: &'static str,
    /// Folder of the root within the file system.
    folder: &'static str,
}

impl RootFs {
    fn of(image: &Image) -> Self {
        if image.distro != FEDORA {
            return ROOT;
        }
        let major = image.version.split('.').next().and_then(|it| it.parse::<u32>().ok());
        let has_boot = major.is_some_and(|major| major < FEDORA_WITHOUT_BOOT);
        RootFs { partition: FEDORA_ROOT.partition - u32::from(!has_boot), ..FEDORA_ROOT }
    }
}

/// Disk on which an image is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetDisk<'a> {
    /// A path such as `/dev/sda`, or hints such as `serial=S4EV`.
    Named(&'a str),
    /// First disk of the Hardware of each machine, by the functions of the template.
    FirstOfHardware,
}

impl TargetDisk<'_> {
    fn text(self) -> String {
        match self {
            Self::Named(disk) => literal(disk),
            Self::FirstOfHardware => "{{ index .Hardware.Disks 0 }}".to_owned(),
        }
    }

    fn partition(self, number: u32) -> String {
        match self {
            Self::Named(disk) => literal(&partition(disk, number)),
            Self::FirstOfHardware => {
                format!("{{{{ formatPartition (index .Hardware.Disks 0) {number} }}}}")
            }
        }
    }
}

/// Values for the default Template.
#[derive(Debug, Clone, Copy)]
pub struct Installation<'a> {
    /// Name of the TinkerbellMachine, which becomes the name of workflow and task.
    pub name: &'a str,
    /// Image to install, from [`super::image::resolve`].
    pub image: &'a Image,
    /// Target disk: that of one machine, or of each machine that uses the Template.
    pub disk: TargetDisk<'a>,
    /// URL of the box's metadata service, such as `http://10.77.0.1:50061`.
    pub metadata_url: &'a str,
    /// Format of the machine's user data.
    pub format: &'a DataFormat,
}

/// Returns the default Template data: stream the image, configure access to the user data, reboot.
///
/// # Errors
/// The disk is invalid ([`InstallError::DiskInvalid`]).
pub fn default_data(installation: &Installation<'_>) -> Result<String, InstallError> {
    let Installation { name, image, disk, metadata_url, format } = installation;
    if let TargetDisk::Named(disk) = disk {
        check_disk(disk)?;
    }
    let mut actions = vec![stream(image, *disk)];
    match format {
        DataFormat::CloudConfig => {
            let root = RootFs::of(image);
            let partition = disk.partition(root.partition);
            let config = yaml(&cloud_config(metadata_url))?;
            let files = [
                ("add cloud-init config", "/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg", &*config),
                ("add cloud-init ds-identify config", "/etc/cloud/ds-identify.cfg", DS_IDENTIFY),
            ];
            for (name, path, contents) in files {
                let path = format!("{}{path}", root.folder);
                actions.push(file(name, &partition, root.fs_type, &path, contents));
            }
        }
        DataFormat::Ignition if image.distro == FLATCAR => {
            let partition = disk.partition(FLATCAR_PARTITION);
            let url = format!("{metadata_url}/2009-04-04/user-data");
            let contents = format!("set linux_append=\"ignition.config.url={url}\"\n");
            actions.push(file("add ignition url", &partition, "btrfs", "/grub.cfg", &contents));
        }
        DataFormat::Ignition | DataFormat::Talos | DataFormat::Other(_) => {}
    }
    actions.push(action("reboot", "reboot", REBOOT_TIMEOUT));
    yaml(&document(name, WORKFLOW_TIMEOUT, &actions))
}

/// Returns Template data that erase `disks` and leave the agent running.
///
/// # Errors
/// A disk is invalid ([`InstallError::DiskInvalid`]).
pub fn wipe_data(name: &str, disks: &[String], method: WipeMethod) -> Result<String, InstallError> {
    let mut actions = vec![];
    for (at, disk) in disks.iter().enumerate() {
        check_disk(disk)?;
        let mut wipe = action(&format!("wipe disk {}", at + 1), "disk-wipe", WIPE_TIMEOUT);
        wipe["environment"] =
            json!({ "BLOCK_DEVICE": literal(disk), "WIPE_METHOD": method.setting() });
        actions.push(wipe);
    }
    let timeout = WIPE_TIMEOUT * u64::try_from(actions.len()).unwrap_or(1);
    yaml(&document(name, timeout, &actions))
}

/// Returns a document with one task, which the agent of the machine runs.
fn document(name: &str, timeout: u64, actions: &[Value]) -> Value {
    json!({
        "version": "0.1",
        "name": literal(name),
        "global_timeout": timeout,
        "tasks": [{
            "name": literal(name),
            "worker": format!("{{{{.{}}}}}", super::workflow::DEVICE),
            "volumes": ["/dev:/dev"],
            "actions": actions,
        }],
    })
}

fn yaml(value: &Value) -> Result<String, InstallError> {
    kube_yaml::write(value).map_err(InstallError::TemplateUnwritten)
}

const DS_IDENTIFY: &str = "datasource: Ec2\n";

/// Returns the configuration that makes cloud-init read the box's metadata service.
fn cloud_config(metadata_url: &str) -> Value {
    json!({
        // Not strict, because the machine has no SMBIOS data of Amazon.
        "datasource": { "Ec2": { "metadata_urls": [metadata_url], "strict_id": false } },
        "manage_etc_hosts": "localhost",
        "warnings": { "dsid_missing_source": false },
    })
}

fn stream(image: &Image, disk: TargetDisk<'_>) -> Value {
    let (kind, source) = match &image.location {
        ImageLocation::Url(url) => ("image2disk", url),
        ImageLocation::Registry(reference) => ("oci2disk", reference),
    };
    let mut stream = action("stream image", kind, IMAGE_TIMEOUT);
    stream["retries"] = IMAGE_RETRIES.into();
    stream["retry-wait"] = IMAGE_RETRY_WAIT.into();
    stream["environment"] = json!({ "IMG_URL": literal(source), "DEST_DISK": disk.text() });
    let path = source.split(['?', '#']).next().unwrap_or_default();
    if COMPRESSED.iter().any(|end| path.ends_with(end)) {
        stream["environment"]["COMPRESSED"] = "true".into();
    }
    if let Some(checksum) = &image.checksum {
        let (setting, value) = match checksum {
            Checksum::Sha256(sum) => ("IMG_SHA256", sum),
            Checksum::Sha512(sum) => ("IMG_SHA512", sum),
            Checksum::Md5(sum) => ("IMG_MD5", sum),
            Checksum::SumsUrl(url) => ("IMG_CHECKSUM_URL", url),
        };
        stream["environment"][setting] = literal(value).into();
    }
    stream
}

fn file(name: &str, partition: &str, fs_type: &str, path: &str, contents: &str) -> Value {
    let mut file = action(name, "writefile", FILE_TIMEOUT);
    file["environment"] = json!({
        "DEST_DISK": partition,
        "FS_TYPE": fs_type,
        "DEST_PATH": path,
        "UID": "0",
        "GID": "0",
        "MODE": "0644",
        "DIRMODE": "0755",
        "CONTENTS": literal(contents),
    });
    file
}

fn action(name: &str, kind: &str, timeout: u64) -> Value {
    json!({ "name": name, "image": format!("{ACTIONS}{kind}:latest"), "timeout": timeout })
}

/// Returns a text that a Go template prints as `text`: template data are rendered, and a value must
/// not contain template actions.
fn literal(text: &str) -> String {
    text.replace("{{", "{{`{{`}}")
}

fn check_disk(disk: &str) -> Result<(), InstallError> {
    let why = match disk {
        "" => "no disk is set",
        _ if disk.chars().any(char::is_control) => "it has a control character",
        _ if disk.starts_with('/') => return Ok(()),
        _ if !disk.contains('=') => "expected an absolute path or hints",
        _ if disk.split(',').any(|hint| hint.trim_start().starts_with("partition=")) => {
            "expected a whole disk, found a partition"
        }
        _ => return Ok(()),
    };
    Err(InstallError::DiskInvalid { disk: disk.to_owned(), why })
}

/// Returns the partition of a disk: `/dev/sda1`, `/dev/nvme0n1p1`, `/dev/disk/by-id/x-part1`,
/// `serial=S4EV,partition=1`.
fn partition(disk: &str, number: u32) -> String {
    let infix = match disk {
        _ if !disk.starts_with('/') => ",partition=",
        _ if disk.starts_with("/dev/disk/") => "-part",
        _ if disk.ends_with(|c: char| c.is_ascii_digit()) => "p",
        _ => "",
    };
    format!("{disk}{infix}{number}")
}

#[cfg(test)]
mod tests;
