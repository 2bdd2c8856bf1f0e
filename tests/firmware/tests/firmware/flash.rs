//! Flashing of an image to a disk, by common tools and by the command line, and refused cases.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use firmware::{flip, run};
use image::disk::{Part, disk_size};
use release::SecretKey;
use sha2::{Digest as _, Sha256};

use super::made;
use firmware::boot_volume;
use firmware::owner::program;

/// A file as a loop device, until dropped.
struct Loop(String);

impl Loop {
    fn of(file: &Path, size: u64) -> Self {
        File::create(file).unwrap().set_len(size).unwrap();
        let device = run(Command::new("losetup").args(["--find", "--show"]).arg(file)).unwrap();
        let disk = Self(device.trim().to_owned());
        // The kernel keeps the read-only flag for the next user of the device.
        disk.protect(false).unwrap();
        disk
    }

    /// `tinbox box flash` without a prompt. A loop device has no serial number, so the end of its
    /// name confirms the disk.
    fn flash(&self, image: &Path) -> Command {
        let mut flash = Command::new(program("tinbox"));
        flash.args(["box", "flash"]).arg(image).args(["--to", &self.0, "--erase"]);
        flash.arg(&self.0[self.0.len() - 4..]);
        flash
    }

    fn protect(&self, is_protected: bool) -> io::Result<String> {
        let mark = if is_protected { "--setro" } else { "--setrw" };
        run(Command::new("/usr/sbin/blockdev").args([mark, &self.0]))
    }

    /// Runs a `command` that must fail with `why` in its message, and must not leave a bootable
    /// disk.
    fn refuses(&self, command: &mut Command, why: &str) {
        let said = run(command).expect_err(why).to_string();
        assert!(said.contains(why) && said.contains(&self.0[5..]), "not {why:?}: {said}");
        self.has_no_box(why);
    }

    fn has_no_box(&self, why: &str) {
        let table = run(Command::new("sgdisk").arg("--print").arg(&self.0));
        let table = table.unwrap_or_else(|error| error.to_string());
        assert!(!table.contains("TINBOX"), "{why}: a table is there: {table}");
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.protect(false);
        let _ = run(Command::new("losetup").args(["--detach", &self.0]));
    }
}

#[test]
fn every_way_to_flash_gives_the_same_disk() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let image = made(folder.path()).path;
    let (xz, map) = (at("image.img.xz"), image.with_added_extension("bmap"));
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-ec", &format!("set -o pipefail; {script}")]).current_dir(folder.path());
        run(command.env("IMG", &image).env("MAP", &map).env("XZ", &xz)).unwrap();
    };
    // A released image has a better compression ratio; this test is about the tools that can read
    // it.
    shell("xz -0 -T0 -c \"$IMG\" >\"$XZ\"; xz -t \"$XZ\"");
    shell("dd if=\"$IMG\" of=dd bs=4M conv=sparse status=none");
    shell("xz -dc \"$XZ\" | dd of=xz bs=4M iflag=fullblock conv=sparse status=none");
    shell(&format!("truncate -s {} bmap", disk_size()));
    shell("bmaptool --quiet copy --bmap \"$MAP\" \"$XZ\" bmap");
    let sum = |name: &str| Sha256::digest(fs::read(at(name)).unwrap());
    assert_eq!(sum("dd"), sum("xz"));
    assert_eq!(sum("dd"), sum("bmap"), "the block map leaves something out");
    flashed_with_a_configuration(folder.path(), &xz, &map);

    // On a used disk, bmaptool leaves old data in blocks that the image does not use.
    shell(&format!("head -c {} /dev/zero | tr '\\0' '\\245' >used", disk_size()));
    shell("bmaptool --quiet copy --bmap \"$MAP\" \"$IMG\" used");
    shell("sgdisk --verify used | grep -q 'No problems found'");
    for (part, check) in
        [(Part::Boot, "fsck.fat -n"), (Part::State, "e2fsck -fn"), (Part::Cache, "e2fsck -fn")]
    {
        let (skip, count) = (part.offset() >> 20, part.size() >> 20);
        shell(&format!(
            "dd if=used of=part bs=1M skip={skip} count={count} status=none; {check} part"
        ));
    }
    for part in [Part::RootA, Part::RootB] {
        verify(&at("used"), part, folder.path());
    }
}

/// `tinbox box flash`, with a release's signature and a configuration, writes the same disk as
/// `dd`, plus the configuration.
fn flashed_with_a_configuration(folder: &Path, xz: &Path, bmap: &Path) {
    let at = |name: &str| folder.join(name);
    let config = "\u{feff}name = 'cellar'\r\n";
    fs::write(at("mine.toml"), config).unwrap();
    let key = SecretKey::create(&at("release.key")).unwrap();
    let sum = |file: &Path| stdx::hex(&Sha256::digest(fs::read(file).unwrap()));
    let map = at("image.img.bmap");
    fs::copy(bmap, &map).unwrap();
    let sums = format!("{}  image.img.xz\n{}  image.img.bmap\n", sum(xz), sum(&map));
    fs::write(at("SHA256SUMS"), &sums).unwrap();
    let signature = key.signature_file(sums.as_bytes(), "file:SHA256SUMS");
    fs::write(at("SHA256SUMS.minisig"), &signature).unwrap();

    let disk = Loop::of(&at("flash"), disk_size());
    let with = |key: &str| {
        let mut flash = disk.flash(xz);
        flash.arg("--key").arg(at(key)).arg("--config").arg(at("mine.toml"));
        flash
    };
    SecretKey::create(&at("stranger.key")).unwrap();
    let refused = |key: &str, why: &str| {
        let said = run(&mut with(key)).expect_err(why).to_string();
        assert!(said.contains(why), "not {why:?}: {said}");
        disk.has_no_box(why);
    };
    refused("stranger.key.pub", "the signing key is not in");
    fs::write(at("mine.toml"), "[netwrok]\n").unwrap();
    refused("release.key.pub", "line 1: unknown field `netwrok`");
    fs::write(at("mine.toml"), config).unwrap();
    let said = run(&mut with("release.key.pub")).unwrap();
    assert!(said.contains("is signed by one of your keys"), "{said}");
    drop(disk);

    let beside = |name: &str| {
        let mut disk = fs::read(at(name)).unwrap();
        let (from, size) = (Part::Boot.offset() as usize, Part::Boot.size() as usize);
        disk[from..from + size].fill(0);
        Sha256::digest(disk)
    };
    assert_eq!(beside("dd"), beside("flash"), "`tinbox box flash` leaves something out");
    for name in ["dd", "flash"] {
        let volume = boot_volume::of(&at(name));
        let files = at(&format!("on.{name}"));
        fs::create_dir(&files).unwrap();
        run(Command::new("mcopy").args(["-s", "-i", &volume, "::*"]).arg(&files)).unwrap();
    }
    assert_eq!(fs::read_to_string(at("on.flash/box.toml")).unwrap(), config);
    fs::remove_file(at("on.flash/box.toml")).unwrap();
    run(Command::new("diff").arg("-r").args([at("on.dd"), at("on.flash")])).unwrap();
    let mut volume = fs::read(at("flash")).unwrap();
    volume.drain(..Part::Boot.offset() as usize);
    volume.truncate(Part::Boot.size() as usize);
    fs::write(at("volume"), volume).unwrap();
    run(Command::new("/usr/sbin/fsck.fat").arg("-n").arg(at("volume"))).unwrap();
}

/// Verifies the root in `part` with cryptsetup, by the hash on the boot volume.
fn verify(disk: &Path, part: Part, folder: &Path) {
    let slot = if part == Part::RootA { "a" } else { "b" };
    let script = boot_volume::read(disk, &format!("tinbox/{slot}/boot.cfg")).unwrap();
    let words: Vec<&str> = script.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "sha256").unwrap();
    let blocks: u64 = words[at - 2].parse().unwrap();
    let root = folder.join("root");
    let (skip, count) = (part.offset() >> 20, part.size() >> 20);
    let mut copy = Command::new("dd");
    copy.args([format!("if={}", disk.display()), format!("of={}", root.display())]);
    copy.args(["bs=1M".to_owned(), format!("skip={skip}"), format!("count={count}")]);
    run(&mut copy).unwrap();
    let mut verify = Command::new("/usr/sbin/veritysetup");
    verify.arg("verify").arg(format!("--hash-offset={}", blocks * 4096));
    verify.args([&root, &root]).arg(words[at + 1]);
    run(&mut verify).unwrap();
}

/// Every error of the image or the disk gives a message and leaves no half-written bootable disk.
#[test]
fn no_wrong_disk_and_no_damaged_image_is_flashed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let image = made(folder.path()).path;
    let map = image.with_added_extension("bmap");
    let disk = Loop::of(&at("disk"), disk_size());

    let mut other = Command::new(program("tinbox"));
    other.args(["box", "flash"]).arg(&image).args(["--to", &disk.0]);
    disk.refuses(&mut other, "no terminal for a prompt");
    disk.refuses(other.args(["--erase", "sda1"]), "nothing was written");
    let small = Loop::of(&at("small"), disk_size() - (1 << 20));
    small.refuses(&mut small.flash(&image), "take a larger disk");
    let mut file = Command::new(program("tinbox"));
    file.args(["box", "flash"]).arg(&image).args(["--erase", "disk", "--to"]).arg(at("disk"));
    let file = run(&mut file).unwrap_err();
    assert!(file.to_string().contains("not a disk"), "{file}");
    run(Command::new("mkfs.ext4").args(["-q", &small.0])).unwrap();
    fs::create_dir(at("mounted")).unwrap();
    run(Command::new("mount").arg(&small.0).arg(at("mounted"))).unwrap();
    small.refuses(&mut small.flash(&image), "is mounted at");
    run(Command::new("umount").arg(at("mounted"))).unwrap();
    disk.protect(true).unwrap();
    disk.refuses(&mut disk.flash(&image), "it is write-protected");
    disk.protect(false).unwrap();

    let damaged = at("damaged.img");
    run(Command::new("cp").arg("--sparse=always").args([&image, &damaged])).unwrap();
    fs::copy(&map, damaged.with_added_extension("bmap")).unwrap();
    flip(&damaged, Part::RootA.offset() + 100).unwrap();
    disk.refuses(&mut disk.flash(&damaged), "its checksum differs from its block map");
    fs::write(at("SHA256SUMS"), format!("{:064}  damaged.img\n", 1)).unwrap();
    fs::remove_file(damaged.with_added_extension("bmap")).unwrap();
    disk.refuses(&mut disk.flash(&damaged), "SHA256SUMS has the checksum");
    let xz = at("cut.img.xz");
    let mut pack = Command::new("bash");
    pack.args(["-ec", "xz -0 -T0 -c \"$0\" | head -c 9000000 >\"$1\" || true"]);
    run(pack.arg(&image).arg(&xz)).unwrap();
    disk.refuses(&mut disk.flash(&xz), "the image is damaged or cannot be read");
}

/// Between the prompt and its answer, another stick gets the device name of the displayed one.
#[test]
fn the_disk_that_was_shown_is_written_whatever_has_its_name_now() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let image = made(folder.path()).path;
    let shown = Loop::of(&at("shown"), disk_size());
    let other = Loop::of(&at("other"), disk_size());
    let stick = at("stick");
    symlink(&shown.0, &stick).unwrap();
    let tinbox = program("tinbox");
    let words =
        [tinbox.as_path(), "box".as_ref(), "flash".as_ref(), &image, "--to".as_ref(), &stick];
    let line = words.map(|word| word.display().to_string()).join(" ");
    // The prompt needs a terminal.
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = script.stdout.take().unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"to erase the disk: ") {
        let mut byte = [0];
        let count = output.read(&mut byte).unwrap();
        assert_eq!(count, 1, "no question: {}", String::from_utf8_lossy(&said));
        said.push(byte[0]);
    }
    fs::remove_file(&stick).unwrap();
    symlink(&other.0, &stick).unwrap();
    let mut input = script.stdin.take().unwrap();
    writeln!(input, "{}", &shown.0[shown.0.len() - 4..]).unwrap();
    output.read_to_end(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(script.wait().unwrap().success(), "{said}");
    other.has_no_box(&said);
    let table = run(Command::new("sgdisk").arg("--print").arg(&shown.0)).unwrap();
    assert!(table.contains("TINBOX"), "{table}");
}
