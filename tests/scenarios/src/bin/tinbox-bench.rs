//! `make bench`: figures, each compared with a peer in the same run. Compare ratios only: the
//! machine may be busy, and its load is printed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use scenarios::{Artifacts, Lab, LabConfig, METADATA_URL, NucConfig, RackConfig, out_dir, poll};

/// Timeout of a boot, on a busy machine.
const BOOT: Duration = Duration::from_secs(300);
/// Runs of each timing; the median is printed.
const PASSES: usize = 3;
/// Size of the target disk of images, in bytes.
const DISK_BYTES: u64 = 2 << 30;

fn main() -> ExitCode {
    scenarios::exit(run())
}

fn run() -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "measuring needs root: loop devices and network namespaces\nhint: sudo make bench"
    );
    let load = fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    println!("load average: {}", load.trim());
    image_write()?;
    path()?;
    Ok(())
}

/// The median of `PASSES` timings.
fn median(mut measure: impl FnMut() -> anyhow::Result<Duration>) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..PASSES {
        times.push(measure()?);
    }
    times.sort();
    Ok(times[PASSES / 2])
}

fn timed(command: &mut Command) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "{command:?} failed");
    Ok(start.elapsed())
}

struct Loop(PathBuf, PathBuf);

impl Loop {
    fn new() -> anyhow::Result<Self> {
        let file = out_dir().join("bench-disk.raw");
        let disk = fs::File::create(&file).context("cannot make the bench's disk")?;
        disk.set_len(DISK_BYTES).context("cannot size the bench's disk")?;
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(&file)
            .output()
            .context("cannot run losetup")?;
        ensure!(output.status.success(), "losetup: {}", String::from_utf8_lossy(&output.stderr));
        let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Self(device.into(), file))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
        let _ = fs::remove_file(&self.1);
    }
}

fn image_write() -> anyhow::Result<()> {
    let artifacts = Artifacts::open()?;
    let images = artifacts.root().join("images");
    let image = images.join("debian.raw.zst");
    let sum = artifacts.sha256("debian.raw.zst")?;
    let disk = Loop::new()?;
    let mut server = Command::new(programs::find("rack-httpd")?)
        .arg("--dir")
        .arg(&images)
        .args(["--listen", "127.0.0.1:8098"])
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start the file server")?;
    let result = write_rows(&image, &sum, &disk.0);
    let _ = server.kill();
    let _ = server.wait();
    result
}

fn write_rows(image: &Path, sum: &str, device: &Path) -> anyhow::Result<()> {
    let url = "http://127.0.0.1:8098/debian.raw.zst";
    poll("the file server", Duration::from_secs(10), || {
        std::net::TcpStream::connect("127.0.0.1:8098").ok()
    })?;
    let device_text = device.display();
    let floor = median(|| timed(Command::new("zstd").args(["-dcfq"]).arg(image)))?;
    let pipe = format!(
        "set -o pipefail; curl -sf {url} | zstd -dcq | \
         dd of={device_text} bs=4M iflag=fullblock oflag=direct conv=fsync"
    );
    let peer = median(|| timed(Command::new("bash").args(["-c", &pipe])))?;
    let agent = programs::find("tinbox-agent")?;
    let ours = median(|| {
        timed(
            Command::new(&agent)
                .args(["write", "--url", url, "--sha256", sum, "--disk"])
                .arg(device),
        )
    })?;
    println!("\nimage write: {} as .zst over HTTP to a loop device", image.display());
    println!("  zstd -d alone (floor)                {:6.2} s", floor.as_secs_f32());
    println!("  curl | zstd -d | dd, unverified      {:6.2} s", peer.as_secs_f32());
    println!(
        "  tinbox-agent, SHA-256 verified       {:6.2} s   {:.2}x the pipe, {:.2}x the floor",
        ours.as_secs_f32(),
        ours.as_secs_f32() / peer.as_secs_f32(),
        ours.as_secs_f32() / floor.as_secs_f32(),
    );
    Ok(())
}

/// Boots the same kernel with a minimal initramfs: a static busybox that prints one word.
fn bare_init(artifacts: &Artifacts) -> anyhow::Result<Duration> {
    let initramfs = out_dir().join("bench-init.cpio");
    let script = format!(
        "set -e; d=$(mktemp -d); mkdir $d/bin $d/dev; cp $(command -v busybox) $d/bin/busybox; \
         printf '#!/bin/busybox sh\\n/bin/busybox echo BARE-INIT >/dev/console\\n\
         /bin/busybox sleep 1000\\n' >$d/init; chmod +x $d/init; \
         mknod $d/dev/console c 5 1; cd $d; find . | cpio -o -H newc -R 0:0 --quiet >{}; \
         rm -rf $d",
        initramfs.display()
    );
    timed(Command::new("bash").args(["-c", &script]))?;
    let log = out_dir().join("bench-init.log");
    let time = median(|| {
        let _ = fs::remove_file(&log);
        let start = Instant::now();
        let mut qemu = Command::new("qemu-system-x86_64")
            .args(["-machine", "q35,accel=tcg", "-cpu", "qemu64,+rdrand,+popcnt", "-m", "512"])
            .args(["-nodefaults", "-display", "none", "-no-user-config", "-kernel"])
            .arg(artifacts.root().join("agent/vmlinuz-x86_64"))
            .arg("-initrd")
            .arg(&initramfs)
            .args(["-append", "console=ttyS0,115200", "-serial"])
            .arg(format!("file:{}", log.display()))
            .spawn()
            .context("cannot start qemu")?;
        let said = poll("the bare init", BOOT, || {
            fs::read(&log).ok()?.windows(9).any(|word| word == b"BARE-INIT").then_some(())
        });
        let time = start.elapsed();
        let _ = qemu.kill();
        let _ = qemu.wait();
        said?;
        Ok(time)
    })?;
    let _ = fs::remove_file(&initramfs);
    let _ = fs::remove_file(&log);
    Ok(time)
}

fn path() -> anyhow::Result<()> {
    let bare = bare_init(&Artifacts::open()?)?;
    println!("\nthe path, power-on to agent (SeaBIOS, emulated CPU)");
    println!("  same kernel, bare static init        {:6.2} s", bare.as_secs_f32());
    let lab = Lab::start(LabConfig::new(RackConfig::new("bench").nuc(NucConfig::bios())))?;
    let idle = lab.daemon.rss().unwrap_or(0);
    lab.push_nuc(1, "ssh-ed25519 AAAA bench", "#cloud-config\n")?;
    let image = lab.image("tiny.raw.zst")?;
    lab.push_template("install", &image, METADATA_URL)?;
    let workflow = lab.create_workflow("install", 1)?;
    poll("power", BOOT, || lab.rack.nuc(1).is_on().then_some(()))?;
    let on = std::time::SystemTime::now();
    let serial = lab.rack.nuc(1).serial();
    let mut rows = String::new();
    for (word, pattern) in [
        ("iPXE script", "auto.ipxe"),
        ("kernel's first line", "Linux version"),
        ("agent asks for work", "requesting work"),
        ("image on disk, verified", "sha256 verified"),
        ("installed system up", "TINY-READY"),
    ] {
        let line = serial.wait_for(pattern, BOOT)?;
        let at = line.at.duration_since(on).unwrap_or_default().as_secs_f32();
        let _ = writeln!(rows, "  {word:<36} {at:6.2} s   {:.2}x", at / bare.as_secs_f32());
    }
    print!("{rows}");
    lab.wait_success(&workflow, BOOT)?;
    memory(&lab, idle)?;
    lab.rack.succeed();
    Ok(())
}

fn memory(lab: &Lab, idle: u64) -> anyhow::Result<()> {
    let after = lab.daemon.rss().unwrap_or(0);
    let mut many = String::new();
    for number in 0..100 {
        let _ = write!(
            many,
            "---\napiVersion: tinkerbell.org/v1alpha1\nkind: Hardware\n\
             metadata: {{name: many{number}}}\nspec:\n  interfaces:\n  - dhcp:\n\
             \x20     mac: \"02:00:00:00:00:{number:02x}\"\n\
             \x20     ip: {{address: 10.77.1.{number}, netmask: 255.255.0.0}}\n"
        );
    }
    let file = lab.file("many.yaml", &many)?;
    let file = file.to_str().context("the path is UTF-8")?;
    lab.tinbox(&["hardware", "push", "--file", file])?;
    let full = lab.daemon.rss().unwrap_or(0);
    println!("\nmemory of tinboxd (budget 32 MiB with 100 machines)");
    for (what, bytes) in
        [("idle", idle), ("after one installation", after), ("with 100 more machines", full)]
    {
        println!("  {what:<36} {:>8}", stdx::bytes(bytes));
    }
    Ok(())
}
