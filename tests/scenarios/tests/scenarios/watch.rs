//! Steps and conditions that several scenarios share.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use scenarios::{
    Action, BoxProcess, BoxProgram, Image, Lab, LabConfig, METADATA_URL, NucConfig, Origin,
    RackConfig,
};

/// Reason for an exact number of starts.
pub const ONE_START: &str = "only silence repeats a start, and a lab allows 120 s of it";

/// Timeout for a boot, an installation of the small system and its first boot, on a busy machine.
pub const SMALL: Duration = Duration::from_secs(420);

/// Starts a lab with the Hardware of one machine, and with a template `install` of the small
/// system.
pub fn small_lab(name: &str, nuc: NucConfig, image: impl FnOnce(&Lab) -> Image) -> Lab {
    small_lab_of(LabConfig::new(RackConfig::new(name).nuc(nuc)), image)
}

/// Starts the lab of [`small_lab`] with this configuration.
pub fn small_lab_of(config: LabConfig, image: impl FnOnce(&Lab) -> Image) -> Lab {
    let lab = Lab::start(config).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let image = image(&lab);
    lab.push_template("install", &image, METADATA_URL).unwrap();
    lab
}

/// The image of the small system, served by the box.
pub fn tiny(lab: &Lab) -> Image {
    lab.image("tiny.raw.zst").unwrap()
}

/// Starts a file server in the box's namespace, with optional faults.
pub fn file_server(lab: &Lab, folder: &Path, listen: &str, arguments: &[&str]) -> BoxProcess {
    lab.rack.spawn_box(file_server_program(lab, folder, listen, arguments)).unwrap()
}

/// Returns the file server as a program, for another host.
pub fn file_server_program(
    lab: &Lab,
    folder: &Path,
    listen: &str,
    arguments: &[&str],
) -> BoxProgram {
    let program = programs::find("rack-httpd").unwrap();
    BoxProgram::new(program, lab.rack.dir().join("httpd.log"))
        .args(["--dir".as_ref(), folder.as_os_str()])
        .args(["--listen", listen])
        .args(arguments)
}

/// Waits until the small system is up and has phoned home.
pub fn wait_small_system(lab: &Lab) {
    lab.rack.nuc(1).serial().wait_for("TINY-READY", SMALL).unwrap();
}

/// Number of lines in the machine's history with this sentence.
pub fn told(lab: &Lab, sentence: &str) -> usize {
    let story = lab.story("nuc1").unwrap();
    story.lines().filter(|line| line.contains(sentence)).count()
}

/// Number of times the box switched the machine on.
pub fn switched_on(lab: &Lab) -> usize {
    lab.rack.nuc(1).count(Origin::Bmc, Action::On)
}

/// Writes the small system to the machine's disk, as an earlier installation would have.
pub fn install_directly(lab: &Lab) {
    let image = lab.artifacts().root().join("images/tiny.raw.zst");
    let disk = lab.rack.nuc(1).disk();
    let size = std::fs::metadata(disk).unwrap().len();
    let status =
        Command::new("zstd").args(["-q", "-d", "-f"]).arg(image).arg("-o").arg(disk).status();
    assert!(status.unwrap().success());
    std::fs::OpenOptions::new().write(true).open(disk).unwrap().set_len(size).unwrap();
}
