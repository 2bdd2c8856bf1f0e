//! Rack of `make demo BOX=image`: the box is a board with two NICs that boots from its disk image.
//! An office network with a DHCP server is its uplink.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use image::disk::disk_size;
use qemu::{
    Board, BoxProcess, BoxProgram, Bus, Dnsmasq, Drive, Firmware, Host, Line, Mark, Nic, Pool,
    Rack, RackConfig, Segment, Serial,
};
use scenarios::nuc_manifest;
use stdx::{MacAddr, Secret};

use crate::{Image, PATIENCE, boot_volume};

/// NICs of the box: `eth0` on the office network, `eth1` on the rack's network.
const NICS: [(Segment, Nic, MacAddr); 2] = [
    (Segment::Far, Nic::Virtio, MacAddr([0x52, 0x54, 0, 0x77, 0xb0, 0])),
    (Segment::Near, Nic::Virtio, MacAddr([0x52, 0x54, 0, 0x77, 0xb0, 1])),
];
/// Settings of the box. The timeouts and the kernel argument are for QEMU's speed and clock.
const BOX_TOML: &str = "name = \"demo\"\n\
    [[management]]\n\
    interface = \"eth0\"\n\
    [network]\n\
    interface = \"eth1\"\n\
    address = \"10.77.0.1/24\"\n\
    mode = \"reserved\"\n\
    [images]\n\
    networks = [\"10.78.0.0/24\"]\n\
    [agents]\n\
    silence_secs = 120\n\
    boot_secs = 600\n\
    [bmc]\n\
    poll_secs = 5\n\
    [boot]\n\
    kernel_args = [\"no_timer_check\"]\n";
/// Host of the office network: DHCP server, router, web server of images, and the owner's computer.
const OFFICE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 254);
const POOL: Pool = Pool { first: Ipv4Addr::new(10, 78, 0, 50), last: Ipv4Addr::new(10, 78, 0, 59) };
/// Port of the web server of images.
const IMAGES_PORT: u16 = 8099;
/// Bytes by which the box's disk is larger than the image, for the cache of images.
const CACHE: u64 = 1 << 30;
/// Random bytes of the owner's passphrase.
const PASSPHRASE_BYTES: usize = 8;
/// Time between two looks at the console.
const LOOK: Duration = Duration::from_millis(200);

/// A rack whose box boots from its disk image. The box ends when this value is dropped.
#[derive(Debug)]
pub struct ImageRack {
    // Dropped before the rack, because the cables of a board are in the rack's namespace.
    board: Board,
    _services: [BoxProcess; 2],
    office: Host,
    files: PathBuf,
    /// The rack with its NUCs.
    pub rack: Rack,
}

/// Owner of the box, after the claim.
#[derive(Debug)]
pub struct Claimed {
    /// Address of the box on the office network.
    pub address: String,
    /// Certificate pin that the box printed on its console.
    pub pin: String,
    /// Passphrase of the owner.
    pub passphrase: Secret,
    /// Path of the administrator's kubeconfig.
    pub kubeconfig: PathBuf,
}

impl ImageRack {
    /// Builds the rack and its office network, writes `image` with settings to the disk of the box,
    /// and switches the box on.
    ///
    /// # Errors
    /// The missing requirement, or the part that could not be built.
    pub fn start(image: &Image, config: RackConfig) -> anyhow::Result<Self> {
        let rack = Rack::build(config)?;
        // The board is the box here, not a process.
        rack.unplug_box()?;
        let office = rack.add_host("office", &[(Segment::Far, OFFICE)])?;
        let dhcp = Dnsmasq::new(POOL).start(&office, rack.dir(), "office-dhcp")?;
        let images = qemu::out_dir().join("artifacts/images");
        let server = BoxProgram::new(programs::find("rack-httpd")?, rack.dir().join("httpd.log"))
            .args(["--dir".as_ref(), images.as_os_str()])
            .args(["--listen", &format!("{OFFICE}:{IMAGES_PORT}")]);
        let server = office.spawn(server)?;
        let files = rack.work_dir().join("files");
        fs::create_dir_all(&files).context("cannot make the folder of the demo's files")?;
        let disk = rack.work_dir().join("box.img");
        image.copy(&disk).context("cannot copy the image to the disk of the box")?;
        let larger = fs::File::options().write(true).open(&disk);
        larger
            .and_then(|file| file.set_len(disk_size() + CACHE))
            .context("cannot enlarge the disk of the box")?;
        boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes())
            .context("cannot write box.toml to the volume TINBOX")?;
        let board = rack.add_board_with(&Drive::new(&disk, Bus::Nvme), &NICS)?;
        Ok(Self { board, _services: [dhcp, server], office, files, rack })
    }

    /// Namespace of the office network, from which the box is reached.
    pub fn namespace(&self) -> String {
        format!("{}-host-office", self.rack.name())
    }

    /// Waits for a line on the box's console, and passes each line to `show` as it comes.
    ///
    /// # Errors
    /// The line does not come in time; with the end of the console.
    pub fn watch_console(&self, pattern: &str, show: impl Fn(&str) + Sync) -> anyhow::Result<Line> {
        let (serial, found) = (self.board.serial(), AtomicBool::new(false));
        let relay = || {
            let mut shown = 0;
            loop {
                let is_last = found.load(Ordering::Relaxed);
                let lines = serial.lines();
                lines.iter().skip(shown).for_each(|line| show(&line.text));
                shown = lines.len();
                if is_last {
                    return;
                }
                thread::sleep(LOOK);
            }
        };
        let line = thread::scope(|scope| {
            scope.spawn(relay);
            let line = serial.wait_for_whole(Mark::START, pattern, PATIENCE);
            found.store(true, Ordering::Relaxed);
            line
        });
        Ok(line?.0)
    }

    /// Claims the box, with the code and the pin from its console only. Returns the owner, and the
    /// command for people to read.
    ///
    /// # Errors
    /// The box prints no code, or refuses the claim.
    pub fn claim(&self) -> anyhow::Result<(Claimed, String)> {
        let link = "claim this box at HTTPS://10.78.[0-9.]+/S/[0-9A-Z]{6} with code ";
        let line = self.board.serial().wait_for_whole(Mark::START, link, PATIENCE)?.0.text;
        let address = line.split("HTTPS://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.context("the line about the claim has no address")?.to_owned();
        let (code, pin) = (last_word(&line).to_owned(), self.pin()?);
        let passphrase = Secret::from(stdx::random_hex(PASSPHRASE_BYTES));
        let kubeconfig = self.files.join("owner.kubeconfig");
        let words = self.files.join("words");
        fs::write(&words, format!("{code}\n{}\n", passphrase.expose()))
            .context("cannot write the code and the passphrase for the claim")?;
        let claimed = Claimed { address, pin, passphrase, kubeconfig };
        let arguments =
            ["box", "claim", &claimed.address, "--secrets-stdin", "--pin", &claimed.pin];
        let mut claim = self.tinbox(&claimed, &arguments)?;
        claim.stdin(Stdio::from(fs::File::open(&words).context("cannot read the code")?));
        output(claim)?;
        let shown = format!("tinbox {}", arguments.join(" "));
        Ok((claimed, shown))
    }

    fn pin(&self) -> anyhow::Result<String> {
        let line = self.board.serial().wait_for_whole(Mark::START, "certificate pin ", PATIENCE)?;
        Ok(last_word(&line.0.text).to_owned())
    }

    /// Returns a `tinbox` command of the owner's computer.
    ///
    /// # Errors
    /// The program is not built.
    pub fn tinbox(&self, claimed: &Claimed, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut tinbox = self.office.command(programs::find("tinbox")?);
        tinbox.arg("--kubeconfig").arg(&claimed.kubeconfig).args(arguments);
        Ok(tinbox)
    }

    /// Pushes the manifest of NUC `number`.
    ///
    /// # Errors
    /// The command's own message.
    pub fn push_nuc(
        &self,
        claimed: &Claimed,
        number: usize,
        (ssh_key, user_data): (&str, &str),
    ) -> anyhow::Result<()> {
        let nuc = self.rack.nuc(number);
        let uefi = nuc.config().firmware() == Firmware::Uefi;
        let file = self.files.join(format!("nuc{number}.yaml"));
        fs::write(&file, nuc_manifest(nuc, uefi, true, ssh_key, user_data))
            .with_context(|| format!("cannot write {}", file.display()))?;
        let file = path_text(&file)?;
        output(self.tinbox(claimed, &["hardware", "push", "--file", file])?).map(drop)
    }

    /// Creates the library's template `debian` with the Debian image of the office's web server.
    /// Returns the command, for people to read.
    ///
    /// # Errors
    /// The command's own message.
    pub fn push_debian(&self, claimed: &Claimed) -> anyhow::Result<String> {
        let url = format!("http://{OFFICE}:{IMAGES_PORT}/debian.raw.zst");
        let (image, sums) = (format!("image_url={url}"), format!("sums_url={url}.sha256"));
        let create = ["template", "create", "--library", "debian"];
        let words = [&create[..], &["--set", &image, "--set", &sums]].concat();
        output(self.tinbox(claimed, &words)?)?;
        Ok(format!("tinbox {}", words.join(" ")))
    }

    /// Serial console of the box.
    pub fn serial(&self) -> &Serial {
        self.board.serial()
    }

    /// Switches the box off and removes the rack; the consoles stay.
    pub fn succeed(self) {
        let Self { rack, board, .. } = self;
        drop(board);
        rack.succeed();
    }
}

/// Returns a console line for people: GRUB prints its messages on two consoles that share the
/// serial port, and log lines begin with time, level and module. Returns `None` for the firmware's
/// own lines.
pub fn readable(line: &str) -> Option<String> {
    if line.starts_with("BdsDxe:") {
        return None;
    }
    let text = line.trim();
    let (first, second) = text.split_at_checked(text.len() / 2).unwrap_or((text, ""));
    if first == second {
        return Some(first.to_owned());
    }
    let logged = || {
        let (time, rest) = text.split_once(' ')?;
        let is_time = time.ends_with('Z') && time.contains('T');
        let (level, rest) = rest.trim_start().split_once(' ').filter(|_| is_time)?;
        let (_, text) = rest.split_once(": ")?;
        Some(if level == "INFO" { text.to_owned() } else { format!("{level} {text}") })
    };
    Some(logged().unwrap_or_else(|| text.to_owned()))
}

fn last_word(line: &str) -> &str {
    line.split_whitespace().next_back().unwrap_or_default()
}

fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Runs a command to its end and returns its output.
///
/// # Errors
/// The command cannot be run, or fails; with its own message.
pub fn output(mut command: Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {error}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn a_console_line_is_shown_without_its_wrapping() {
        for (line, shown) in [
            ("tinbox: starting slot atinbox: starting slot a", Some("tinbox: starting slot a")),
            (
                "2026-11-29T14:48:46.5Z  INFO tinboxd::wiring: tinboxd is ready state=/state",
                Some("tinboxd is ready state=/state"),
            ),
            (
                "2026-11-29T14:48:42.9Z  WARN lifecycle::firmware::time: no time server",
                Some("WARN no time server"),
            ),
            ("14:48 demo 0.1.0 slot A", Some("14:48 demo 0.1.0 slot A")),
            ("BdsDxe: starting Boot0001", None),
        ] {
            assert_eq!(readable(line).as_deref(), shown, "{line}");
        }
    }
}
