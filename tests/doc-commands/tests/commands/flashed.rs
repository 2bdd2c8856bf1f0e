//! Walks with a flashed box.

use std::fs;
use std::process::Command;

use doc_commands::{ADDRESS, Disk, FlashedBox, PASSPHRASE, Walk, block};
use docs::markdown::spans;
use docs::page::root;
use firmware::{FIRST_LINE, Image, STARTING, Variant, run};
use qemu::NucConfig;

/// Page with the files of the first machine.
const TUTORIAL: &str = "docs/tutorial/first-box.md";
/// Pin and disk of the pages, which differ for each person.
const PIN: &str = "F3A9-1C20-8BQK-77TM";
const DISK: &str = "/dev/sdX";
/// Settings for an emulated machine on a busy computer, as the scenarios have them.
const EMULATED: &str = "[boot]\n\
    kernel_args = [\"no_timer_check\"]\n\
    [agents]\n\
    silence_secs = 120\n\
    boot_secs = 600\n";
/// Publisher's files on the pages, and here.
const PUBLISHED: [(&str, &str); 2] = [
    (
        "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-generic-amd64.qcow2",
        "http://10.77.0.250:8099/debian.raw.zst",
    ),
    (
        "https://cloud.debian.org/images/cloud/bookworm/latest/SHA512SUMS",
        "http://10.77.0.250:8099/debian.raw.zst.sha256",
    ),
];

pub fn readme(page: &str) {
    let mut it = FlashedBox::new("readme", Some(NucConfig::uefi()));
    let mut walk = claimed_by_page(page, &mut it);
    let mark = it.mark();
    walk.until("tinbox hardware push");
    it.wait_for(mark, FIRST_LINE);
    it.wait_until_ready();
    walk.end();
    it.succeed();
}

pub fn first_box(page: &str) {
    let mut it = FlashedBox::new("first-box", Some(NucConfig::uefi()));
    let mut walk = claimed_by_page(page, &mut it);
    walk.until("tinbox box settings edit");
    let settings = block(page, "toml", 0) + EMULATED;
    fs::write(it.folder().join("home/new"), settings).unwrap();
    let mark = it.mark();
    walk.until("tinbox network list");
    it.wait_for(mark, FIRST_LINE);
    it.wait_until_ready();
    // This command ends only when the installed system phones home, which this Hardware does not
    // configure.
    walk.is_stopped("tinbox machine history nuc1 --follow", "runs agent");
    walk.end();
    it.succeed();
}

/// Flashes the box, switches it on and claims it, by the commands of a page.
fn claimed_by_page(page: &str, it: &mut FlashedBox) -> Walk {
    it.publish_image();
    it.publish_debian();
    let access = it.nuc().bmc();
    let machine = nuc1_with_ipmi()
        .replace("change-me", access.password.expose())
        .replace("/dev/nvme0n1", "/dev/vda");
    fs::write(it.folder().join("nuc1.yaml"), machine).unwrap();
    let mut walk = Walk::through(page, it.terminal());
    for (published, here) in PUBLISHED {
        walk.replace(published, here);
    }
    let disk = Disk::of(&it.disk());
    walk.replace(DISK, disk.device());
    walk.terminal().answer("to erase the disk: ", disk.proof());
    walk.until("tinbox box claim");
    drop(disk);
    it.put_settings(EMULATED);
    let shown = it.switch_on();
    walk.replace(PIN, &shown.pin);
    let terminal = walk.terminal();
    terminal.answer("code on the box's screen: ", &shown.code);
    terminal.answer("new passphrase (8 characters or more): ", PASSPHRASE);
    terminal.answer("repeat the passphrase: ", PASSPHRASE);
    walk
}

/// Returns `nuc1.yaml` of the tutorial for a machine with IPMI: both blocks, and the line that
/// refers to the BMC.
fn nuc1_with_ipmi() -> String {
    let text = fs::read_to_string(root().join(TUTORIAL)).unwrap();
    let mut spans = spans(&text).into_iter();
    let (_, line) = spans.find(|(_, code)| code.starts_with("bmcRef: ")).unwrap();
    let hardware = block(TUTORIAL, "yaml", 0).replace("spec:\n", &format!("spec:\n  {line}\n"));
    block(TUTORIAL, "yaml", 1) + "---\n" + &hardware
}

pub fn build_an_image(page: &str) {
    let it = FlashedBox::new("flash", None);
    it.publish_image();
    let disk = Disk::of(&it.disk());
    let mut walk = Walk::through(page, it.terminal());
    walk.replace(DISK, disk.device());
    walk.terminal().answer("to erase the disk: ", disk.proof());
    walk.end();
    let table = run(Command::new("sgdisk").arg("--print").arg(disk.device())).unwrap();
    assert!(table.contains("TINBOX"), "{table}");
    drop(disk);
    it.succeed();
}

pub fn back_up_and_restore(page: &str) {
    let address = format!(
        "[[management]]\ninterface = \"eth0\"\naddress = \"{ADDRESS}/24\"\n\
         gateway = \"192.168.1.1\"\n"
    );
    let mut it = FlashedBox::claimed("backup", &address);
    let mut walk = Walk::through(page, it.terminal());
    let terminal = walk.terminal();
    terminal.answer("passphrase of the backup (8 characters or more): ", PASSPHRASE);
    terminal.answer("repeat the passphrase: ", PASSPHRASE);
    terminal.answer("passphrase of the backup: ", PASSPHRASE);
    terminal.answer("Enter passphrase: ", PASSPHRASE);
    terminal.answer("(yes or no) ", "yes");
    walk.until("tinbox backup restore cellar.boxbak --to");
    // The box is lost with its disk, and another one takes its place.
    it.switch_off();
    it.copy_image();
    let shown = it.switch_on();
    walk.terminal().answer("code on the box's screen: ", &shown.code);
    walk.replace("10.0.0.9", ADDRESS);
    let mark = it.mark();
    walk.until("tinbox backup keep");
    it.wait_for(mark, STARTING);
    it.wait_until_ready();
    walk.until("tinbox backup restore --kept");
    let list = run(it.tinbox().args(["-o", "json", "backup", "list"])).unwrap();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    walk.replace("NAME", list[0]["name"].as_str().unwrap());
    walk.end();
    it.succeed();
}

pub fn reset_and_safe_mode(page: &str) {
    let mut it = FlashedBox::claimed("reset", "name = \"cellar\"\n");
    let mut walk = Walk::through(page, it.terminal());
    walk.terminal().answer("type cellar to continue: ", "cellar");
    let mark = it.mark();
    walk.until("tinbox box reset --level factory");
    it.wait_for(mark, "safe mode");
    it.wait_until_ready();
    // Without settings, the box has its default name, from its MAC address.
    walk.terminal().answer("type box-c100 to continue: ", "box-c100");
    let mark = it.mark();
    walk.until("tinbox box settings get");
    let shown = it.shown_since(mark);
    it.claim(&shown);
    walk.until("tinbox box settings revert 3");
    let tinbox = |words: &[&str]| run(it.tinbox().args(words)).unwrap();
    for name in ["attic", "cellar", "attic"] {
        tinbox(&["box", "settings", "set", &format!("name={name}")]);
    }
    let mark = it.mark();
    walk.until("tinbox box poweroff");
    it.wait_for(mark, STARTING);
    it.wait_until_ready();
    for name in ["cellar", "attic", "box-c100"] {
        walk.terminal().answer(&format!("type {name} to continue: "), name);
    }
    walk.until("tinbox box identify");
    it.wait_off();
    it.switch_on_again();
    walk.end();
    it.succeed();
}

/// Builds the update file of a release without the page's commands, and returns its path.
fn update(it: &FlashedBox, release: &str) -> std::path::PathBuf {
    let variant = Variant { release: Some(release), ..Variant::default() };
    let folder = it.folder().join("image");
    Image::variant(&folder, &variant).unwrap().path.with_extension("update")
}

pub fn releasing(page: &str) {
    let it = FlashedBox::claimed("releasing", "");
    let file = update(&it, "0.1.1");
    let mut walk = Walk::through(page, it.terminal());
    walk.replace("out/release/tinbox-0.1.0-x86_64.update", &file.display().to_string());
    walk.end();
    it.succeed();
}

pub fn update_and_roll_back(page: &str) {
    let it = FlashedBox::claimed("update", "");
    let file = update(&it, "0.2.0").display().to_string();
    let mut walk = Walk::through(page, it.terminal());
    walk.replace("tinbox-0.2.0-x86_64.update", &file);
    let tinbox = |words: &[&str]| run(it.tinbox().args(words)).unwrap();
    let mark = it.mark();
    walk.until("tinbox update restart");
    it.wait_for(mark, "starting slot b");
    it.wait_for(mark, "starting slot a");
    it.wait_until_ready();
    tinbox(&["update", "status", "--wait"]);
    fs::write(it.folder().join("box.toml"), block(page, "toml", 0)).unwrap();
    tinbox(&["box", "settings", "edit", "--file", "box.toml"]);
    tinbox(&["update", "apply", &file]);
    let mark = it.mark();
    walk.until("tinbox update hold");
    it.wait_for(mark, "starting slot b");
    it.wait_until_ready();
    walk.end();
    it.succeed();
}
