//! A small screen that shows how to claim the box, controlled by its buttons. The menu is tested on
//! the emulated box.

use std::fs;
use std::path::Path;
use std::process::Command;

use firmware::contained::Place;
use firmware::contained::devices::{Devices, KEY_DOWN, KEY_ENTER};
use firmware::owner::{Owner, address};
use firmware::steps::CLAIM;
use firmware::{PATIENCE, boot_volume, run};
use qemu::{Mark, poll};

use super::{Lab, mac};

const BOX_TOML: &str = "[panel]\n\
    tft = \"/dev/fb0\"\n\
    led = \"green:status\"\n\
    buttons = { up = \"KEY_UP\", down = \"KEY_DOWN\", select = \"KEY_ENTER\" }\n";
/// Black pixels around the screen, in place of the case in a camera's picture.
const CASE: usize = 40;

/// Text of a QR code on the screen.
fn code(devices: &Devices, folder: &Path) -> Option<String> {
    let rows = devices.screen().unwrap();
    let (width, height) = (rows[0].len() + 2 * CASE, rows.len() + 2 * CASE);
    let mut picture = format!("P6 {width} {height} 255\n").into_bytes();
    let case = |pixels: usize| vec![0; pixels * 3];
    picture.extend(case(CASE * width));
    for row in rows {
        picture.extend([case(CASE), row.concat(), case(CASE)].concat());
    }
    picture.extend(case(CASE * width));
    let file = folder.join("screen.ppm");
    fs::write(&file, picture).unwrap();
    let mut scan = Command::new("zbarimg");
    scan.args(["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"]).arg(file);
    let text = String::from_utf8(scan.output().unwrap().stdout).unwrap();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn tap(devices: &Devices, key: u16) {
    [true, false].into_iter().for_each(|down| devices.key(key, down).unwrap());
}

#[test]
fn a_small_screen_shows_the_code_and_is_turned_by_its_buttons() {
    let lab = Lab::new("panel");
    let place = Place::with_screen(&lab.rack, "box", mac(0x71), lab.folder()).unwrap();
    let (devices, disk) = (place.devices(), lab.disk("disk"));
    boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let machine = place.start(&disk).unwrap();
    // A missing LED is reported once, and has no other effect.
    machine.serial().wait_for("does not work.*the light green:status", PATIENCE).unwrap();
    let line = machine.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let url = line.split_whitespace().find(|word| word.contains("/S/")).unwrap();
    let shows = |wanted: Option<&str>| {
        let shown = || (code(devices, lab.folder()).as_deref() == wanted).then_some(());
        poll(&format!("the screen to show {wanted:?}"), PATIENCE, shown).unwrap();
    };
    shows(Some(url));
    tap(devices, KEY_DOWN);
    shows(None);
    tap(devices, KEY_ENTER);
    shows(Some(url));

    let owner = Owner::claims(&lab.owner, &address(&line), machine.serial(), lab.folder());
    // Once the box has an owner, the screen returns to its first page.
    shows(None);
    let told = run(owner.tinbox().args(["box", "identify"])).unwrap();
    assert_eq!(told.trim(), "the box blinks for 60 s");
    drop(machine);
    lab.succeed();
}
