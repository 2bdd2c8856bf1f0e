//! What several scenarios wait for.

use std::path::Path;
use std::time::Duration;

use scenarios::{
    Action, BoxProcess, BoxProgram, Image, Lab, LabConfig, METADATA_URL, NucConfig, Origin,
    RackConfig,
};

/// Reason for an exact count of starts.
pub const ONE_START: &str = "only silence repeats a start, and a lab allows 120 s of it";

/// A boot, an installation of the small system and its first boot, on a busy machine.
pub const SMALL: Duration = Duration::from_secs(420);

/// A lab with one machine, pushed, and the template `install` of the small system.
pub fn small_lab(name: &str, nuc: NucConfig, image: impl FnOnce(&Lab) -> Image) -> Lab {
    small_lab_of(LabConfig::new(RackConfig::new(name).nuc(nuc)), image)
}

/// The same in a lab of one's own.
pub fn small_lab_of(config: LabConfig, image: impl FnOnce(&Lab) -> Image) -> Lab {
    let lab = Lab::start(config).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let image = image(&lab);
    lab.push_template("install", &image, METADATA_URL).unwrap();
    lab
}

/// The small system as the box serves it.
pub fn tiny(lab: &Lab) -> Image {
    lab.image("tiny.raw.zst").unwrap()
}

/// A file server in the box's namespace, which can be told to misbehave.
pub fn file_server(lab: &Lab, folder: &Path, listen: &str, arguments: &[&str]) -> BoxProcess {
    lab.rack.spawn_box(file_server_program(lab, folder, listen, arguments)).unwrap()
}

/// The same as a program, for another host.
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

/// The small system is up and has told the box.
pub fn wait_small_system(lab: &Lab) {
    lab.rack.nuc(1).serial().wait_for("TINY-READY", SMALL).unwrap();
}

/// How often something was told of the machine.
pub fn told(lab: &Lab, sentence: &str) -> usize {
    let story = lab.story("nuc1").unwrap();
    story.lines().filter(|line| line.contains(sentence)).count()
}

/// How often the box switched the machine on.
pub fn switched_on(lab: &Lab) -> usize {
    lab.rack.nuc(1).count(Origin::Bmc, Action::On)
}
