//! Runs the scripts with the iPXE of 2019 that Debian's QEMU has as the ROM of its NIC.
//!
//! QEMU's user network passes a script's address on loopback to the ROM. The tests check the
//! machine's fetches, and the text that its disk's boot sector wrote to the serial port.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use netboot::http::{Downloads, HttpConfig, HttpService, router, serve};
use netboot::{AgentBoot, Boot, FetchEvent, Files, Observer, Plan, Plans, Services};
use stdx::MacAddr;
use stdx::testing::Wait;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

const QEMU: &str = "/usr/bin/qemu-system-x86_64";
const MAC: &str = "52:54:00:77:00:01";
/// Maximum time to wait for an emulated machine; the ROM's own delays take about ten seconds.
const BOOT: Duration = Duration::from_secs(480);
const KERNEL: &str = "/agent/vmlinuz-x86_64";
const INITRD: &str = "/agent/initramfs-x86_64";

struct One(Boot);

impl Plans for One {
    fn by_mac(&self, mac: MacAddr) -> Option<Plan> {
        let (hardware, boot) = ("default/nuc-1".to_owned(), self.0.clone());
        // Requests from QEMU's user network come from the host's loopback address.
        let addresses = vec![[127, 0, 0, 1].into()];
        (mac.to_string() == MAC).then_some(Plan { mac, hardware, addresses, boot })
    }
    fn by_address(&self, _: IpAddr) -> Option<Plan> {
        None
    }
}

/// Callback that runs with all fetches so far, before the machine fetches more.
type Then = Box<dyn Fn(&[(String, u16)]) + Send + Sync>;

#[derive(Default)]
struct EventLog {
    fetched: Mutex<Vec<(String, u16)>>,
    then: Mutex<Option<Then>>,
}

impl Observer for EventLog {
    fn fetched(&self, event: FetchEvent) {
        let mut all = self.fetched.lock().unwrap();
        all.push(match event {
            FetchEvent::Http { path, status, .. } => (path, status),
            FetchEvent::Script { boot, status, .. } => (boot.to_owned(), status),
            other @ FetchEvent::Tftp { .. } => (format!("{other:?}"), 0),
        });
        if let Some(then) = &*self.then.lock().unwrap() {
            then(&all);
        }
    }
}

/// Server and machine with a disk, and the records of both.
struct Rack {
    folder: TempDir,
    events: Arc<EventLog>,
    shutdown: CancellationToken,
    agent_url: String,
    _machine: Child,
}

impl Drop for Rack {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if std::thread::panicking() {
            let serial = std::fs::read(self.folder.path().join("serial")).unwrap_or_default();
            eprintln!("{:?}, serial {:?}", self.events(), String::from_utf8_lossy(&serial));
        }
    }
}

/// Machine code that writes `ONDISK` to the first serial port and stops. `wide` is for 64-bit mode,
/// where the load of a 16-bit register has a prefix.
fn says_disk(wide: bool) -> Vec<u8> {
    let mut code = if wide { vec![0x66] } else { Vec::new() };
    code.extend([0xba, 0xf8, 0x03]);
    for letter in *b"ONDISK" {
        code.extend([0xb0, letter, 0xee]);
    }
    code.extend([0xf4, 0xeb, 0xfd]);
    code
}

/// Disk whose boot sector writes `ONDISK`.
fn disk() -> Vec<u8> {
    let mut sector = says_disk(false);
    sector.resize(510, 0);
    sector.extend([0x55, 0xaa]);
    sector.resize(1 << 20, 0);
    sector
}

/// EFI application that writes `ONDISK`: the minimum that the PE32+ format requires.
fn application() -> Vec<u8> {
    let mut file = b"MZ".to_vec();
    file.resize(0x3c, 0);
    file.extend(0x40_u32.to_le_bytes());
    let put = |file: &mut Vec<u8>, fields: &[(u64, usize)]| {
        for (value, width) in fields {
            file.extend(&value.to_le_bytes()[..*width]);
        }
    };
    file.extend(b"PE\0\0");
    // x86-64, one section, no symbols, 240 bytes of optional header, executable.
    put(&mut file, &[(0x8664, 2), (1, 2), (0, 4), (0, 4), (0, 4), (240, 2), (0x22, 2)]);
    // Entry and code at 0x1000, base 0, alignments 0x1000 and 0x200.
    put(&mut file, &[(0x20b, 2), (0, 2), (0x200, 4), (0, 4), (0, 4), (0x1000, 4), (0x1000, 4)]);
    put(&mut file, &[(0, 8), (0x1000, 4), (0x200, 4), (0, 8), (0, 8)]);
    // Image and header sizes, subsystem 10 (EFI application), 16 empty directories.
    put(&mut file, &[(0x2000, 4), (0x200, 4), (0, 4), (10, 2), (0, 2)]);
    put(&mut file, &[(0, 8), (0, 8), (0, 8), (0, 8), (0, 4), (16, 4)]);
    file.extend([0; 128]);
    file.extend(b".text\0\0\0");
    put(&mut file, &[(0x200, 4), (0x1000, 4), (0x200, 4), (0x200, 4), (0, 8), (0, 4)]);
    put(&mut file, &[(0x6000_0020, 4)]);
    file.resize(0x200, 0);
    file.extend(says_disk(true));
    file.resize(0x400, 0);
    file
}

async fn rack(firmware: Firmware, boot: impl FnOnce(SocketAddr) -> Boot) -> Rack {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("agent")).unwrap();
    std::fs::write(folder.path().join("disk"), disk()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // Address of the host in QEMU's user network.
    let base = SocketAddr::from(([10, 0, 2, 2], port));
    let events = Arc::new(EventLog::default());
    let services = Services {
        files: Files::new(folder.path()),
        plans: Arc::new(One(boot(base))),
        observer: events.clone(),
    };
    let config = HttpConfig { script_base: format!("http://{base}"), version: String::new() };
    let shutdown = CancellationToken::new();
    let routes = router(config, services.clone());
    let service = HttpService::with_downloads(routes, Downloads::boot(services));
    tokio::spawn(serve(listener, service, shutdown.clone()));
    let script = format!("http://{base}/ipxe/script/{MAC}/auto.ipxe");
    let machine = machine(folder.path(), &script, firmware);
    let agent_url = format!("http://{base}/agent");
    Rack { folder, events, shutdown, agent_url, _machine: machine }
}

/// Firmware of the machine, and the way iPXE starts.
#[derive(Clone, Copy)]
enum Firmware {
    /// SeaBIOS, with iPXE in the NIC's ROM; then the disk.
    Bios,
    /// OVMF, with iPXE as a disk's boot loader; then another disk.
    Uefi,
}

fn machine(folder: &Path, script: &str, firmware: Firmware) -> Child {
    let serial = format!("file:{}", folder.join("serial").display());
    assert!(Path::new(QEMU).exists(), "needs Debian's qemu-system-x86 and ipxe-qemu");
    // QEMU ends with this test, also when the test is killed.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", QEMU]);
    command.args(["-machine", "q35,accel=tcg", "-display", "none", "-nodefaults"]);
    command.args(["-vga", "std", "-serial", &serial]);
    command.args(["-netdev", &format!("user,id=lan,ipv6=off,bootfile={script}")]);
    let card = format!("virtio-net-pci,netdev=lan,mac={MAC}");
    match firmware {
        Firmware::Bios => {
            let disk = format!("file={},format=raw,if=virtio", folder.join("disk").display());
            command.args(["-m", "128", "-boot", "order=nc", "-drive", &disk, "-device", &card]);
        }
        Firmware::Uefi => {
            let code = "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd";
            let variables = folder.join("variables.fd");
            std::fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &variables).expect("package ovmf");
            let variables = format!("if=pflash,format=raw,file={}", variables.display());
            command.args(["-m", "256", "-drive", code, "-drive", &variables]);
            command.args(["-device", &format!("{card},romfile=")]);
            let ipxe = std::fs::read("/usr/lib/ipxe/ipxe.efi").expect("package ipxe");
            for (disk, loader) in [("1", ipxe), ("2", application())] {
                let boot = folder.join(disk).join("EFI/BOOT");
                std::fs::create_dir_all(&boot).unwrap();
                std::fs::write(boot.join("BOOTX64.EFI"), loader).unwrap();
                let fat = format!("fat:rw:{}", folder.join(disk).display());
                command.args(["-drive", &format!("file={fat},format=raw,if=none,id=disk{disk}")]);
                let device = format!("virtio-blk-pci,drive=disk{disk},bootindex={disk}");
                command.args(["-device", &device]);
            }
        }
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command.spawn().expect("setpriv (util-linux) runs")
}

impl Rack {
    async fn until(&self, what: &str, done: impl Fn(&[(String, u16)], &str) -> bool) {
        let wait = Wait::limited(what, BOOT);
        loop {
            let serial = std::fs::read(self.folder.path().join("serial")).unwrap_or_default();
            let serial = String::from_utf8_lossy(&serial).into_owned();
            let events = self.events();
            if done(&events, &serial) {
                return;
            }
            tokio::time::sleep(wait.pause()).await;
        }
    }

    fn events(&self) -> Vec<(String, u16)> {
        self.events.fetched.lock().unwrap().clone()
    }
}

fn agent(base: SocketAddr) -> Boot {
    Boot::Agent(AgentBoot {
        base_url: format!("http://{base}/agent"),
        kernel: "vmlinuz-x86_64".to_owned(),
        initrd: "initramfs-x86_64".to_owned(),
        worker_id: MAC.to_owned(),
        ..AgentBoot::default()
    })
}

fn count(events: &[(String, u16)], path: &str, status: u16) -> usize {
    events.iter().filter(|(p, s)| p == path && *s == status).count()
}

#[tokio::test]
async fn a_machine_without_a_workflow_boots_its_disk() {
    let rack = rack(Firmware::Bios, |_| Boot::LocalDisk).await;
    rack.until("the disk's boot sector runs", |_, serial| serial.contains("ONDISK")).await;
    // No repeated request: the script was fetched once, and it boots the disk.
    assert_eq!(rack.events(), [("local-disk".to_owned(), 200)]);
}

#[tokio::test]
async fn the_agent_starts_after_failed_downloads() {
    let rack = rack(Firmware::Bios, agent).await;
    // iPXE boots a script as it boots a kernel; this script reports that it runs.
    let stand_in = format!("#!ipxe\nimgfetch {}/booted || exit 1\n", rack.agent_url);
    let folder = rack.folder.path().join("agent");
    // The server's callback writes the files, so that no retry comes between the second request and
    // the files.
    *rack.events.then.lock().unwrap() = Some(Box::new(move |fetched| {
        if count(fetched, KERNEL, 404) == 2 && count(fetched, KERNEL, 200) == 0 {
            std::fs::write(folder.join("booted"), "").unwrap();
            std::fs::write(folder.join("initramfs-x86_64"), vec![7; 1 << 20]).unwrap();
            std::fs::write(folder.join("vmlinuz-x86_64"), &stand_in).unwrap();
        }
    }));
    rack.until("the kernel runs", |events, _| count(events, "/agent/booted", 200) > 0).await;
    let events = rack.events();
    let failed = count(&events, KERNEL, 404);
    let fetched = (count(&events, KERNEL, 200), count(&events, INITRD, 200));
    assert_eq!((failed, fetched), (2, (1, 1)), "{events:?}");
}

#[tokio::test]
async fn a_machine_that_cannot_be_served_boots_its_disk() {
    let rack = rack(Firmware::Bios, agent).await;
    rack.until("the disk's boot sector runs", |_, serial| serial.contains("ONDISK")).await;
    let events = rack.events();
    // The script sets the number of attempts: only the script repeats requests, not iPXE.
    assert_eq!(count(&events, KERNEL, 404), 5, "{events:?}");
}

/// On UEFI the only way to the disk is an error: the firmware then tries its next device.
#[tokio::test]
async fn uefi_goes_on_to_its_next_device() {
    let rack = rack(Firmware::Uefi, |_| Boot::LocalDisk).await;
    rack.until("the second disk's loader runs", |_, serial| serial.contains("ONDISK")).await;
    assert_eq!(rack.events()[0], ("local-disk".to_owned(), 200));
}
