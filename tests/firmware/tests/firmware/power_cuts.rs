//! Repeated power cuts at random moments: the box starts after each cut, and all acknowledged data
//! is present.
//!
//! `POWER_CUTS` is the number of cuts, 1 unless set; a release must survive 100 (`make soak`).
//! `POWER_CUTS_SEED` selects them. Thousands of cuts without an emulator: `platform` fills slots
//! (`slots/fill/cuts.rs`), `supervisor` runs updates (`update/life`), `store` writes.

use std::fs;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use firmware::{FIRST_LINE, Image, PATIENCE, STARTING, Variant, run};
use qemu::{
    Board, Bus, Drive, Host, Mark, Nic, Rack, RackConfig, Segment, Serial, poll, write_again,
};
use serde_json::Value;
use stdx::MacAddr;

use super::made;
use firmware::boot_volume;
use firmware::owner::Owner;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 0xcc]);
const BOX: &str = "10.77.0.9";
const BOX_TOML: &str = "[[management]]\ninterface = \"eth0\"\naddress = \"10.77.0.9/24\"\n";
/// Cuts unless `POWER_CUTS` is set: one while the box acknowledges machines.
const FEW: u64 = 1;
/// Maximum work in one start: machines written, and bytes of an update, which is a little larger.
const MACHINES: usize = 60;
const UPDATE: u64 = 48 << 20;
/// Panic of a kernel that checks its timer while QEMU gets no CPU time. A slot that an update
/// filled runs this check (`image`'s quick boot volumes do not); the box then restarts by itself.
const SLOW_EMULATION: &str = "IO-APIC + timer doesn't work";

/// Activity of the box at the power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum During {
    Start,
    Writes,
    Update,
}

/// A box, and the work that it has acknowledged.
struct Ordeal<'a> {
    rack: &'a Rack,
    host: &'a Host,
    folder: &'a Path,
    disk: PathBuf,
    rng: Rng,
    owner: Option<Owner<'a>>,
    /// Number of acknowledged machines, which are numbered from 0.
    written: usize,
    updates: usize,
}

#[test]
fn power_cuts_lose_nothing() {
    let told = |name: &str| std::env::var(name).ok().map(|value| value.parse().unwrap());
    let cuts = told("POWER_CUTS").unwrap_or(FEW);
    let seed = told("POWER_CUTS_SEED").unwrap_or(1);
    println!("{cuts} cuts, POWER_CUTS_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let rack = Rack::build(RackConfig::new("power-cuts")).unwrap();
    let own = Ipv4Addr::new(10, 77, 0, 250);
    let host = rack.add_host("owner", &[(Segment::Near, own)]).unwrap();
    let mut ordeal = Ordeal {
        rack: &rack,
        host: &host,
        folder: folder.path(),
        disk,
        rng: Rng::with_seed(seed),
        owner: None,
        written: 0,
        updates: 0,
    };
    for number in 0..cuts {
        let during = match number {
            0 => During::Writes,
            1 => During::Start,
            2 => During::Update,
            _ => ordeal.rng.choice([During::Start, During::Writes, During::Update]).unwrap(),
        };
        ordeal.cut(number, during);
    }
    ordeal.stands();
    rack.succeed();
}

impl<'a> Ordeal<'a> {
    /// Runs one start until its power cut.
    fn cut(&mut self, number: u64, during: During) {
        let (scratch, log) = (self.folder.join("scratch"), self.folder.join("log"));
        run(Command::new("cp").arg("--sparse=always").args([&self.disk, &scratch])).unwrap();
        let drive = Drive::new(&scratch, Bus::Ahci).logged(&log);
        let board = self.rack.add_board(&drive, (Segment::Near, Nic::E1000e, MAC)).unwrap();
        let at = match during {
            During::Start => {
                board.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
                let logged = board.cut_power().unwrap();
                self.moment(0..=logged)
            }
            During::Writes | During::Update => {
                self.serves(board.serial());
                self.works(board, during, &log)
            }
        };
        let mut rng = self.rng.fork();
        let lost = write_again(&log, at, &self.disk, || rng.bool()).unwrap();
        let written = self.written;
        println!("cut {number}: {during:?}, {written} machines written, {lost:?}");
        fs::remove_file(&scratch).unwrap();
    }

    /// Checks that the box has started, and that all acknowledged data is present.
    fn serves(&mut self, serial: &Serial) {
        let (_, mark) = serial.wait_for_after(Mark::START, STARTING, PATIENCE).unwrap();
        serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
        let panics = serial
            .lines()
            .into_iter()
            .find(|line| line.text.contains("Kernel panic") && !line.text.contains(SLOW_EMULATION));
        assert!(panics.is_none(), "{panics:?}");
        let (host, folder) = (self.host, self.folder);
        let owner = self.owner.get_or_insert_with(|| Owner::claims(host, BOX, serial, folder));
        let list = || run(owner.tinbox().args(["-o", "json", "hardware", "list"])).ok();
        let machines = poll("the owner's words to be known", PATIENCE, list).unwrap();
        let machines: Value = serde_json::from_str(&machines).unwrap();
        let there: Vec<&str> =
            machines["items"].as_array().unwrap().iter().filter_map(name_of).collect();
        for number in 0..self.written {
            let name = format!("written-{number}");
            assert!(there.contains(&name.as_str()), "{name} was acknowledged: {there:?}");
        }
    }

    /// Position of the cut in the log of a start. A position is more likely to hit a write than a
    /// time, because the disk is idle most of the time.
    fn moment(&mut self, log: RangeInclusive<u64>) -> u64 {
        if self.rng.u8(0..4) == 0 { *log.end() } else { self.rng.u64(log) }
    }

    /// Writes machines, and perhaps applies an update, until the power cut; returns its position in
    /// the log.
    fn works(&mut self, board: Board, during: During, log: &Path) -> u64 {
        let bundle = (during == During::Update).then(|| self.bundle());
        let (machines, bytes) = match during {
            During::Update => (0, self.rng.u64(0..UPDATE)),
            During::Start | During::Writes => (self.rng.usize(1..=MACHINES), 0),
        };
        let (owner, folder, first) = (self.owner.as_ref().unwrap(), self.folder, self.written);
        // The log up to an acknowledgement must be sufficient for the acknowledged data.
        let length = || fs::metadata(log).unwrap().len();
        let (begin, written, applied) = (length(), Mutex::new(Vec::new()), AtomicBool::new(false));
        let (written, applied, bundle) = (&written, &applied, bundle.as_ref());
        let end = std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in (first..).take_while(|number| push(owner, *number, folder)) {
                    written.lock().unwrap().push(length());
                }
            });
            if let Some(bundle) = bundle {
                let apply = ["update".as_ref(), "apply".as_ref(), bundle.as_os_str()];
                scope.spawn(move || {
                    // The update may end before the power cut, or not.
                    let _ = run(owner.tinbox().args(apply));
                    applied.store(true, Ordering::Relaxed);
                });
            }
            let done = || {
                let much = length() >= begin + bytes || applied.load(Ordering::Relaxed);
                (much && written.lock().unwrap().len() >= machines).then_some(())
            };
            poll("the box to be at work", PATIENCE, done).unwrap();
            board.cut_power().unwrap()
        });
        let at = self.moment(begin..=end);
        self.written += written.lock().unwrap().iter().filter(|length| **length <= at).count();
        at
    }

    fn bundle(&mut self) -> PathBuf {
        self.updates += 1;
        let release = format!("9.{}.0", self.updates);
        let variant = Variant { release: Some(&release), ..Variant::default() };
        let image = Image::variant(&self.folder.join("image"), &variant).unwrap().path;
        fs::remove_file(&image).unwrap();
        image.with_extension("update")
    }

    /// Starts the box once more after all cuts, and waits until its slot is good.
    fn stands(&mut self) {
        let drive = Drive::new(&self.disk, Bus::Ahci);
        let board = self.rack.add_board(&drive, (Segment::Near, Nic::E1000e, MAC)).unwrap();
        self.serves(board.serial());
        board.serial().wait_for("its slot is good", PATIENCE).unwrap();
    }
}

fn name_of(machine: &Value) -> Option<&str> {
    machine["metadata"]["name"].as_str()
}

/// Creates one more machine; returns true if the box has acknowledged it.
fn push(owner: &Owner<'_>, number: usize, folder: &Path) -> bool {
    let file = folder.join("machine.yaml");
    let text = format!(
        "apiVersion: tinkerbell.org/v1alpha1\n\
         kind: Hardware\n\
         metadata: {{name: written-{number}}}\n\
         spec:\n\
         \x20 interfaces:\n\
         \x20 - dhcp: {{mac: \"52:54:00:99:{:02x}:{:02x}\"}}\n",
        number >> 8 & 0xff,
        number & 0xff,
    );
    fs::write(&file, text).unwrap();
    run(owner.tinbox().args(["hardware", "push", "--file"]).arg(&file)).is_ok()
}
