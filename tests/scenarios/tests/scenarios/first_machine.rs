//! The first machine of a new box, with nothing but its page: a real browser claims the box, finds
//! the unknown machine, and installs it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use scenarios::{BootOrder, Lab, LabConfig, METADATA_URL, NucConfig, RackConfig};

use crate::watch::{SMALL, tiny, wait_small_system};

/// Time limit of the installation and first boot of Debian.
const WHOLE: Duration = Duration::from_secs(1500);
/// Folder of the scripts that drive a browser.
const BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/browser");
/// Folder of the screenshots, for people.
const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../out/shots");

/// Returns the configuration of a lab with its pages, and unknown machines that boot from the
/// network.
fn config(name: &str, machines: usize) -> LabConfig {
    let mut nuc = NucConfig::bios();
    nuc.boot_order = BootOrder::NetworkFirst;
    let rack = (0..machines).fold(RackConfig::new(name), |rack, _| rack.nuc(nuc.clone()));
    let mut config = LabConfig::new(rack);
    config.pages = true;
    config
}

fn lab(name: &str, machines: usize) -> Lab {
    Lab::start(config(name, machines)).unwrap()
}

/// Returns a command that runs a browser on the page of the lab's box.
fn browser(lab: &Lab, script: &str) -> Command {
    fs::create_dir_all(PICTURES).unwrap();
    let claim = fs::read(lab.claim_file()).unwrap();
    let claim: serde_json::Value = serde_json::from_slice(&claim).unwrap();
    let library = peers::built("browser", &[]).unwrap().remove(0);
    let mut node = lab.rack.box_command(peers::find("node", "nodejs").unwrap());
    node.arg(Path::new(BROWSER).join(script)).arg("https://10.77.0.1");
    node.arg(claim["code"].as_str().unwrap()).arg(PICTURES).arg(library);
    node
}

#[test]
fn three_unknown_machines_are_installed_by_one_form() {
    let lab = lab("several-machines", 3);
    let image = tiny(&lab);
    lab.push_template("small", &image, METADATA_URL).unwrap();
    let mut node = browser(&lab, "several.mjs");
    node.args(["small", "/dev/vda", &SMALL.as_millis().to_string()]);
    for number in 1..=3 {
        let nuc = lab.rack.nuc(number);
        node.arg(nuc.mac().to_string());
        nuc.power_on().unwrap();
    }
    let mut browser = node.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(browser.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "requested");
    for number in 1..=3 {
        lab.rack.nuc(number).power_off();
        lab.rack.nuc(number).power_on().unwrap();
    }
    assert!(browser.wait().unwrap().success());
    lab.rack.succeed();
}

#[test]
fn an_image_is_uploaded_by_the_page_and_installed() {
    let mut config = config("upload", 1);
    config.images = true;
    let lab = Lab::start(config).unwrap();
    let image = lab.artifacts().root().join("images/debian.raw.zst");
    let nuc = lab.rack.nuc(1);
    nuc.power_on().unwrap();

    let mut node = browser(&lab, "upload.mjs");
    let sha256 = lab.artifacts().sha256("debian.raw.zst").unwrap();
    node.arg(nuc.mac().to_string()).arg(image).arg(sha256);
    node.args(["/dev/vda", &WHOLE.as_millis().to_string()]);
    let mut browser = node.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(browser.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "requested");
    nuc.power_off();
    nuc.power_on().unwrap();
    assert!(browser.wait().unwrap().success());
    let templates = lab.tinbox(&["-o", "json", "template", "list"]).unwrap();
    assert!(templates.contains("upload://box/debian-12.zst"), "{templates}");
    lab.rack.succeed();
}

#[test]
fn an_unknown_machine_is_installed_from_the_page_alone() {
    let lab = lab("first-machine", 1);
    let image = tiny(&lab);
    lab.push_template("small", &image, METADATA_URL).unwrap();
    let nuc = lab.rack.nuc(1);
    nuc.power_on().unwrap();

    let mut node = browser(&lab, "first-machine.mjs");
    node.args([&nuc.mac().to_string(), "small", "/dev/vda", &SMALL.as_millis().to_string()]);
    let mut browser = node.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(browser.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "requested");
    // A person presses the power button: nothing answered the first network boot.
    nuc.power_off();
    nuc.power_on().unwrap();
    wait_small_system(&lab);
    let summary = lines.next().unwrap().unwrap();
    assert!(summary.starts_with("in service after 4 clicks"), "{summary}");
    assert!(browser.wait().unwrap().success());
    lab.rack.succeed();
}
