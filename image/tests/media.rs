//! Boots the agent OS from a medium. OVMF reads the CD that the box serves over HTTP, range by
//! range as a BMC's virtual drive does, or loads the unified kernel image over TFTP. The kernel
//! then prints its command line.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use image::{Cpio, compress};
use netboot::assemble::{CD, STUB, UNIFIED, refresh};
use netboot::http::{HttpConfig, router, serve};
use netboot::iso::load_unified;
use netboot::{AgentBoot, FetchEvent, Files, Medium, Observer, Owner, Plan, Plans, Services};
use stdx::MacAddr;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const MAC: &str = "52:54:00:77:00:01";
/// Timeout of a boot: firmware, a self-extracting kernel and a first process, emulated, with other
/// tests in parallel.
const PATIENCE: Duration = Duration::from_secs(600);
/// First process: prints the kernel command line, and switches the machine off.
const INIT: &str = "#!/bin/busybox sh\n\
    /bin/busybox mount -t proc proc /proc\n\
    echo \"TOLD $(/bin/busybox cat /proc/cmdline) END\"\n\
    /bin/busybox poweroff -f\n";

struct One;

impl Plans for One {
    fn by_mac(&self, _: MacAddr) -> Option<Plan> {
        None
    }
    fn by_address(&self, _: IpAddr) -> Option<Plan> {
        None
    }
    fn medium(&self, owner: Owner<'_>) -> Option<Medium> {
        let mac = MAC.parse().unwrap();
        let boot = AgentBoot {
            grpc_authority: "10.77.0.1:42113".to_owned(),
            worker_id: "rack1-nuc7".to_owned(),
            consoles: vec!["ttyS0,115200".to_owned()],
            args: vec!["tinbox.token=00ff".to_owned(), "panic=-1".to_owned()],
            ..AgentBoot::default()
        };
        // QEMU reads the medium itself, as a BMC does for its machine.
        let controller = Some(IpAddr::from([127, 0, 0, 1]));
        let medium = Medium { boot, controller, ..Medium::new(mac, "default/nuc-1") };
        (owner == Owner::Mac(mac)).then_some(medium)
    }
}

impl Observer for One {
    fn fetched(&self, _: FetchEvent) {}
}

/// Returns the box's kernel, or Debian's with `KERNEL=stock`; built once, then from the cache.
fn kernel() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel/build.sh");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success());
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    if path.is_dir() { path.join("vmlinuz") } else { path }
}

fn initramfs() -> Vec<u8> {
    let mut archive = Cpio::default();
    for folder in ["bin", "dev", "proc"] {
        archive.folder(folder, 0o755);
    }
    archive.character("dev/console", 0o600, 5, 1);
    archive.file("bin/busybox", 0o755, fs::read("/bin/busybox").unwrap());
    archive.file("init", 0o755, INIT.as_bytes().to_vec());
    compress(&archive.into_bytes().unwrap()).unwrap()
}

fn artifacts(root: &Path) {
    let agent = root.join("agent");
    fs::create_dir(&agent).unwrap();
    fs::copy(kernel(), agent.join("vmlinuz-x86_64")).unwrap();
    fs::write(agent.join("initramfs-x86_64"), initramfs()).unwrap();
    fs::copy("/usr/lib/systemd/boot/efi/linuxx64.efi.stub", agent.join(STUB)).unwrap();
    assert!(refresh(&Files::new(root), "vmlinuz-x86_64", "initramfs-x86_64").unwrap());
}

/// Boots a machine with `devices` and waits until it is off. Returns its serial output.
fn boot(folder: &Path, devices: &[String]) -> String {
    let variables = folder.join("variables");
    fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &variables).unwrap();
    let serial = folder.join("serial");
    let flash = "if=pflash,format=raw";
    // QEMU ends with this test, also when the test is killed.
    let mut machine = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
        .args(["-machine", "q35,accel=tcg", "-m", "768", "-nodefaults", "-no-user-config"])
        .args(["-display", "none", "-no-reboot"])
        .args(["-serial", &format!("file:{}", serial.display())])
        .args(["-drive", &format!("{flash},readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd")])
        .args(["-drive", &format!("{flash},file={}", variables.display())])
        .args(devices)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while machine.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            machine.kill().unwrap();
            machine.wait().unwrap();
            panic!("still on after {PATIENCE:?}: {}", said(&serial));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    said(&serial)
}

fn said(serial: &Path) -> String {
    String::from_utf8_lossy(&fs::read(serial).unwrap_or_default()).into_owned()
}

/// Boots a machine and checks the command line of its kernel.
async fn told(folder: &Path, devices: &[&str]) {
    let (place, devices) = (folder.to_owned(), devices.iter().map(|it| (*it).to_owned()));
    let devices: Vec<String> = devices.collect();
    let said = tokio::task::spawn_blocking(move || boot(&place, &devices)).await.unwrap();
    let told = said.split_once("TOLD ").and_then(|(_, rest)| rest.split_once(" END"));
    let told = told.unwrap_or_else(|| panic!("no first process spoke: {said}")).0;
    assert_eq!(
        told.trim_end(),
        "facility= grpc_authority=10.77.0.1:42113 tinkerbell_tls=false \
         tinkerbell_insecure_tls=false worker_id=rack1-nuc7 hw_addr=52:54:00:77:00:01 \
         console=ttyS0,115200 tinbox.token=00ff panic=-1"
    );
}

fn services(root: &Path) -> Services {
    Services { files: Files::new(root), plans: Arc::new(One), observer: Arc::new(One) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_boots_what_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    tokio::task::spawn_blocking(move || artifacts(&root)).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let machine = MAC.replace(':', "-");
    let url = format!("http://{}/iso/{machine}/{CD}", listener.local_addr().unwrap());
    let config = HttpConfig { script_base: String::new(), version: String::new() };
    let routes = router(config, services(folder.path()));
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(serve(listener, routes, shutdown.clone()));
    let drive = format!("if=none,id=cd,readonly=on,format=raw,file={url}");
    let medium = ["-nic", "none", "-drive", &drive, "-device"];
    told(folder.path(), &[&medium[..], &["ide-cd,drive=cd"]].concat()).await;
    // For BMCs that present their media as a USB stick.
    let stick = ["qemu-xhci", "-device", "usb-storage,drive=cd"];
    told(folder.path(), &[&medium[..], &stick].concat()).await;

    // Over the network without iPXE: the firmware's own TFTP client loads the whole system.
    let name = format!("{machine}/{UNIFIED}");
    let read =
        async |name: &str| fs::read(folder.path().join("agent").join(name)).map(Arc::<[u8]>::from);
    let peer = IpAddr::from([127, 0, 0, 1]);
    let (file, patch) = load_unified(&services(folder.path()), &name, peer, read).await.unwrap();
    let mut loader = file.to_vec();
    patch.apply(0, &mut loader);
    let shelf = folder.path().join("tftp");
    fs::create_dir(&shelf).unwrap();
    fs::write(shelf.join(UNIFIED), loader).unwrap();
    let lan = format!("user,id=lan,ipv6=off,tftp={},bootfile={UNIFIED}", shelf.display());
    let card = "virtio-net-pci,netdev=lan,romfile=";
    told(folder.path(), &["-netdev", &lan, "-device", card]).await;
    shutdown.cancel();
    server.await.unwrap();
}
