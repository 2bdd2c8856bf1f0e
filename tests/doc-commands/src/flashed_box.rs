//! A flashed box in a container, with one NIC on the owner's network and one on the machines'.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use firmware::contained::{Contained, Place};
use firmware::owner::{program, told};
use firmware::{FIRST_LINE, Image, PATIENCE, boot_volume, run};
use qemu::{
    BoxProcess, BoxProgram, Dnsmasq, Host, Mark, NucConfig, Pool, Rack, RackConfig, Segment,
    out_dir, poll,
};
use stdx::MacAddr;
use tempfile::TempDir;

use crate::Terminal;

/// Address that the owner's network gives to the box, as the pages have it.
pub const ADDRESS: &str = "192.168.1.5";
/// Passphrase of the owner, and of the owner's backups.
pub const PASSPHRASE: &str = "correct horse";
/// Address and port of the publisher's server of images.
const PUBLISHER: &str = "10.77.0.250:8099";

/// Console line with the claim of the box at [`ADDRESS`].
const CLAIM: &str = "claim this box at HTTPS://192\\.168\\.1\\.5/S/[0-9A-Z]{6} with code ";

/// An owner with a computer, an image of the box, and a place for it in a rack.
pub struct FlashedBox {
    machine: Option<Contained>,
    place: Place,
    _router: BoxProcess,
    publisher: Option<BoxProcess>,
    owner: Arc<Host>,
    rack: Rack,
    image: Image,
    folder: TempDir,
}

/// One-time code and pin, as the console of an unclaimed box shows them.
#[derive(Debug)]
pub struct ClaimDetails {
    /// Code that claims the box.
    pub code: String,
    /// Pin of the box's certificate.
    pub pin: String,
}

impl FlashedBox {
    /// Builds the rack and the image. The box is off, and its disk is not there yet.
    pub fn new(name: &str, nuc: Option<NucConfig>) -> Self {
        // `/tmp` may be in memory, and an image is large.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let image = Image::made(&folder.path().join("image")).unwrap();
        let mut config = RackConfig::new(&format!("doc-{name}"));
        config.nucs.extend(nuc);
        let rack = Rack::build(config).unwrap();
        // The rack's own box has the same address.
        rack.unplug_box().unwrap();
        let address = |last| [192, 168, 1, last].into();
        let router = rack.add_host("router", &[(Segment::Far, address(1))]).unwrap();
        let pool = Pool { first: address(5), last: address(9) };
        let router = Dnsmasq::new(pool)
            .line("dhcp-host=52:54:00:77:c1:00,192.168.1.5")
            .start(&router, rack.dir(), "router")
            .unwrap();
        let owner = rack.add_host("owner", &[(Segment::Far, address(250))]).unwrap();
        let cards = [(Segment::Far, mac(0)), (Segment::Near, mac(1))];
        let place = Place::with_cards(&rack, "box", &cards, folder.path()).unwrap();
        Self {
            machine: None,
            place,
            _router: router,
            publisher: None,
            owner: Arc::new(owner),
            rack,
            image,
            folder,
        }
    }

    /// Folder of the owner.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Path of the disk image.
    pub fn image(&self) -> &Path {
        &self.image.path
    }

    /// Path of the box's disk.
    pub fn disk(&self) -> PathBuf {
        self.folder().join("disk")
    }

    /// NUC of the rack.
    pub fn nuc(&self) -> &qemu::Nuc {
        self.rack.nuc(1)
    }

    /// A terminal on the owner's computer.
    pub fn terminal(&self) -> Terminal {
        let mut terminal = Terminal::new(&self.owner, self.folder());
        terminal.set("KUBECONFIG", &self.kubeconfig().display().to_string());
        terminal
    }

    /// Puts the published image where the pages have it: packed, with its block map.
    ///
    /// Also makes `target/programs`, where `make build` puts the programs.
    pub fn publish_image(&self) {
        fs::create_dir_all(self.folder().join("target")).unwrap();
        let programs = program("tinbox").parent().unwrap().to_owned();
        std::os::unix::fs::symlink(programs, self.folder().join("target/programs")).unwrap();
        let folder = self.folder().join("out/release");
        fs::create_dir_all(&folder).unwrap();
        let name = self.image().file_name().unwrap();
        let map = self.image().with_added_extension("bmap");
        fs::copy(map, folder.join(name).with_added_extension("bmap")).unwrap();
        let mut pack = Command::new("bash");
        pack.args(["-ec", "xz -0 -T0 -c \"$0\" >\"$1\""]).arg(self.image());
        run(pack.arg(folder.join(name).with_added_extension("xz"))).unwrap();
    }

    /// Serves Debian's image at `http://10.77.0.250:8099/`, in place of Debian's own server. This
    /// address is in the machines' network, so the machines fetch the image without the box's
    /// cache: the cache is too small on this disk.
    pub fn publish_debian(&mut self) {
        let host = self.rack.add_host("publisher", &[(Segment::Near, [10, 77, 0, 250].into())]);
        let log = self.rack.dir().join("publisher.log");
        let server = BoxProgram::new(program("rack-httpd"), log)
            .args(["--dir".as_ref(), out_dir().join("artifacts/images").as_os_str()])
            .args(["--listen", PUBLISHER]);
        self.publisher = Some(host.unwrap().spawn(server).unwrap());
    }

    /// Copies the image to the box's disk, without `tinbox box flash`.
    pub fn copy_image(&self) {
        self.image.copy(&self.disk()).unwrap();
    }

    /// Writes `box.toml` on the disk of a box that is off.
    pub fn put_settings(&self, text: &str) {
        boot_volume::put(&self.disk(), "box.toml", text.as_bytes()).unwrap();
    }

    /// Switches a box without an owner on.
    pub fn switch_on(&mut self) -> ClaimDetails {
        let machine = self.place.start(&self.disk()).unwrap();
        let shown = shown(&machine, Mark::START);
        self.machine = Some(machine);
        shown
    }

    /// Switches on a box that has an owner, and waits until the API answers. Cuts the power first
    /// if the box is running.
    pub fn switch_on_again(&mut self) {
        self.machine = None;
        let machine = self.place.start(&self.disk()).unwrap();
        machine.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
        self.machine = Some(machine);
        self.wait_until_ready();
    }

    /// Waits for the code of a box that has erased its owner and starts again.
    pub fn shown_since(&self, mark: Mark) -> ClaimDetails {
        shown(self.machine.as_ref().unwrap(), mark)
    }

    /// The end of the console's output so far.
    pub fn mark(&self) -> Mark {
        self.machine.as_ref().unwrap().serial().mark()
    }

    /// Waits until the console has a line that matches, after `mark`.
    pub fn wait_for(&self, mark: Mark, pattern: &str) {
        let serial = self.machine.as_ref().unwrap().serial();
        serial.wait_for_after(mark, pattern, PATIENCE).unwrap();
    }

    /// Waits until the box has switched itself off.
    pub fn wait_off(&mut self) {
        self.machine.take().unwrap().wait_off().unwrap();
    }

    /// Switches the box off.
    pub fn switch_off(&mut self) {
        self.machine.take().unwrap().cut_power().unwrap();
    }

    /// Flashes, starts and claims a box for a page about a box in use.
    pub fn claimed(name: &str, settings: &str) -> Self {
        let mut it = Self::new(name, None);
        it.copy_image();
        it.put_settings(settings);
        let shown = it.switch_on();
        it.claim(&shown);
        it
    }

    /// Claims the box without a page's command.
    pub fn claim(&self, shown: &ClaimDetails) {
        let _ = fs::remove_file(self.kubeconfig());
        let words = self.folder().join("words");
        fs::write(&words, format!("{}\n{PASSPHRASE}\n", shown.code)).unwrap();
        let mut claim = self.tinbox();
        claim.args(["box", "claim", ADDRESS, "--secrets-stdin", "--pin", &shown.pin]);
        let claim = claim.stdin(Stdio::from(fs::File::open(&words).unwrap())).output().unwrap();
        assert!(claim.status.success(), "{claim:?}");
    }

    /// Waits until `tinbox hardware list` with the owner's kubeconfig succeeds.
    pub fn wait_until_ready(&self) {
        let list = || run(self.tinbox().args(["hardware", "list"])).ok();
        poll("the box to answer", PATIENCE, list).unwrap();
    }

    /// A `tinbox` command of the fixture.
    pub fn tinbox(&self) -> Command {
        let mut tinbox = self.owner.command(program("tinbox"));
        tinbox.current_dir(self.folder()).arg("--kubeconfig").arg(self.kubeconfig());
        tinbox
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder().join("home/.tinbox/admin.kubeconfig")
    }

    /// Removes the rack with its logs.
    pub fn succeed(self) {
        drop((self.machine, self.publisher));
        self.rack.succeed();
    }
}

fn mac(card: u8) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0x77, 0xc1, card])
}

fn shown(machine: &Contained, since: Mark) -> ClaimDetails {
    let code = told(machine.serial(), since, CLAIM);
    ClaimDetails { code, pin: told(machine.serial(), since, "certificate pin ") }
}
