//! The boot volume's files, out of its FAT and back.

use std::fs::{self, File};
use std::process::Command;

use firmware::contained::boot_volume::{put_back, take_out, tree};
use firmware::{boot_volume, run};
use image::disk::{BOOT_SIZE, Part};

#[test]
fn the_volume_becomes_what_the_folder_is() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let disk = at("disk");
    File::create(&disk).unwrap().set_len(Part::Boot.offset() + BOOT_SIZE).unwrap();
    let volume = boot_volume::of(&disk);
    let sectors = (BOOT_SIZE / 512).to_string();
    let mut format = Command::new("mformat");
    run(format.args(["-i", &volume, "-T", &sectors, "-h", "64", "-s", "32", "::"])).unwrap();
    boot_volume::put(&disk, "reset.txt", b"safe").unwrap();
    boot_volume::put(&disk, "box.toml", b"name = \"one\"\n").unwrap();
    let folder = at("folder");
    for name in ["folder", "work", "again"] {
        fs::create_dir(at(name)).unwrap();
    }
    take_out(&disk, &folder).unwrap();
    fs::remove_file(folder.join("reset.txt")).unwrap();
    fs::write(folder.join("box.toml"), "name = \"two\"\n").unwrap();
    fs::create_dir(folder.join("b")).unwrap();
    fs::write(folder.join("b/boot.cfg"), "linux\n").unwrap();
    put_back(&folder, &disk, &at("work")).unwrap();
    take_out(&disk, &at("again")).unwrap();
    assert_eq!(tree(&at("again")).unwrap(), tree(&folder).unwrap());
}
