//! Invalid images and failing disks. One machine runs all cases: each workflow fails with a message
//! that names the cause, and the agent is ready for the next workflow. One good image is included,
//! because the case of a full disk needs its file system.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::Command;

use scenarios::{BoxProcess, Lab, LabConfig, NucConfig, RackConfig, WorkflowView};

use crate::watch::{SMALL, file_server, switched_on};

/// Offset of the failing area: three fifths of the disk.
const UNWRITABLE: u64 = (4 << 30) / 5 * 3;
/// Size of the image's data at this offset, in bytes.
const CLUSTER: u64 = 64 << 10;

/// One action, and the expected words of its error message; no words mean success.
struct Case {
    name: &'static str,
    image: &'static str,
    environment: String,
    says: &'static [&'static str],
}

fn succeeds(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn image2disk(file: &str, more: &str) -> String {
    format!("{{IMG_URL: 'http://10.77.0.1:8099/{file}', DEST_DISK: /dev/vda{more}}}")
}

fn cases() -> Vec<Case> {
    let case = |name, file: &str, more: &str, says| {
        let environment = image2disk(file, more);
        Case { name, image: "image2disk", environment, says }
    };
    let zeros = "00".repeat(32);
    let wrong = format!(", IMG_SHA256: '{zeros}'");
    let archive = "{ARCHIVE_URL: 'http://10.77.0.1:8099/full.tar.gz', ARCHIVE_TYPE: targz, \
        INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION: true, DEST_DISK: /dev/vda1, FS_TYPE: ext4, \
        DEST_PATH: /}";
    vec![
        case("missing", "nothing.raw", "", &["nothing.raw", "404"]),
        case("corrupt", "corrupt.raw.zst", "", &["cannot decode the zstd image", "corrupt.raw"]),
        case("truncated", "half.raw.zst", "", &["half.raw.zst", "cannot decode the zstd image"]),
        case("short", "short.raw", "", &["short.raw is truncated", "partition table"]),
        case("too-large", "large.qcow2", "", &["larger than /dev/vda", "4.0 GiB"]),
        case("dying-disk", "spot.qcow2", "", &["/dev/vda", "Input/output error"]),
        case(
            "hanging",
            "hang.raw.zst",
            ", RETRY_DURATION_MINUTES: 1",
            &["no new data from or to", "hang.raw"],
        ),
        case("wrong-sum", "tiny.raw.zst", &wrong, &["sha256", "expected 000000000000"]),
        case("good", "tiny.raw.zst", "", &[]),
        Case {
            name: "full-disk",
            image: "archive2disk",
            environment: archive.to_owned(),
            says: &["cannot unpack", "full.tar.gz", "No space left"],
        },
    ]
}

/// Serves the bad files and the good image. `hang.raw.zst` is the good image, but its transfer
/// stalls.
fn served(lab: &Lab) -> BoxProcess {
    let folder = lab.rack.work_dir().join("served");
    fs::create_dir_all(&folder).unwrap();
    let at = |name: &str| folder.join(name);
    let good = lab.artifacts().root().join("images/tiny.raw.zst");
    for name in ["tiny.raw.zst", "hang.raw.zst", "corrupt.raw.zst", "half.raw.zst"] {
        fs::copy(&good, at(name)).unwrap();
    }
    let size = fs::metadata(&good).unwrap().len();
    File::options().write(true).open(at("half.raw.zst")).unwrap().set_len(size / 2).unwrap();
    flip(&at("corrupt.raw.zst"), size / 2);

    let raw = lab.rack.work_dir().join("tiny.raw");
    succeeds(Command::new("zstd").args(["-q", "-d"]).arg(&good).arg("-o").arg(&raw));
    let mut start = Vec::new();
    File::open(&raw).unwrap().take(8 << 20).read_to_end(&mut start).unwrap();
    fs::write(at("short.raw"), start).unwrap();
    succeeds(
        Command::new("qemu-img")
            .args(["create", "-q", "-f", "qcow2"])
            .arg(at("large.qcow2"))
            .arg("5G"),
    );
    spot(&lab.rack.work_dir().join("spot.raw"), &at("spot.qcow2"));

    let tree = lab.rack.work_dir().join("tree");
    fs::create_dir_all(&tree).unwrap();
    File::create(tree.join("zeros")).unwrap().set_len(400 << 20).unwrap();
    succeeds(
        Command::new("tar").arg("-czf").arg(at("full.tar.gz")).arg("-C").arg(&tree).arg("zeros"),
    );
    let badly = ["--etag", "--drop-at-percent", "0", "--drop-suffix", "hang.raw.zst", "--stall"];
    file_server(lab, &folder, "10.77.0.1:8099", &badly)
}

fn flip(path: &Path, at: u64) {
    let mut file = File::options().read(true).write(true).open(path).unwrap();
    let mut bytes = [0; 64];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read_exact(&mut bytes).unwrap();
    bytes.iter_mut().for_each(|byte| *byte ^= 0x5a);
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&bytes).unwrap();
}

/// Creates an image whose only data is at the failing area.
fn spot(raw: &Path, qcow2: &Path) {
    let mut file = File::create(raw).unwrap();
    file.set_len(4 << 30).unwrap();
    file.seek(SeekFrom::Start(UNWRITABLE / CLUSTER * CLUSTER)).unwrap();
    file.write_all(&vec![0xa5; usize::try_from(CLUSTER).unwrap()]).unwrap();
    drop(file);
    let convert = ["convert", "-f", "raw", "-O", "qcow2"];
    succeeds(Command::new("qemu-img").args(convert).arg(raw).arg(qcow2));
}

/// Runs one action as a workflow of its own; the machine is booted only for the first.
fn run(lab: &Lab, case: &Case, first: bool) -> WorkflowView {
    let Case { name, image, environment, .. } = case;
    let text = format!(
        "version: '0.1'\nname: {name}\nglobal_timeout: 1800\ntasks:\n- name: {name}\n  \
         worker: '{{{{.device_1}}}}'\n  actions:\n  - name: {name}\n    image: {image}\n    \
         timeout: 600\n    environment: {environment}\n"
    );
    let file = lab.file(&format!("{name}.yaml"), &text).unwrap();
    lab.tinbox(&["template", "create", "--file", file.to_str().unwrap()]).unwrap();
    let boot = if first { "--netboot" } else { "--no-boot" };
    let create = ["workflow", "create", "--template", name, "--hardware", "nuc1", "--name", name];
    lab.tinbox(&[&create[..], &[boot]].concat()).unwrap();
    lab.wait_workflow(name, "to end", SMALL, WorkflowView::ended).unwrap()
}

#[test]
fn each_bad_image_fails_with_its_cause() {
    let nuc = NucConfig { unwritable: Some(UNWRITABLE), ..NucConfig::bios() };
    let lab = Lab::start(LabConfig::new(RackConfig::new("bad-images").nuc(nuc))).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let _server = served(&lab);
    for (at, case) in cases().iter().enumerate() {
        let view = run(&lab, case, at == 0);
        let said = view.message(case.name);
        let end = if case.says.is_empty() { "SUCCESS" } else { "FAILED" };
        assert_eq!(view.state(), end, "{}: {said}", case.name);
        for words in case.says {
            assert!(said.contains(words), "{}: {said:?} does not say {words:?}", case.name);
        }
    }
    assert_eq!(switched_on(&lab), 1, "the same agent met them all");
    lab.rack.succeed();
}
