//! Real firmware against the running service: SeaBIOS with iPXE's ROM, and OVMF's own PXE and HTTP
//! clients, each in QEMU on a real wire. The times asserted are waits that a server can cause.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use dhcp::{DhcpEvent, Netboot, Stage};

use crate::rack::servers::{http, tftp};
use crate::rack::{MAC, Service, Wire, machine, sh, wait_for_boot};

/// Request for the script by iPXE of 2019, which escapes the colons in the URL.
const SCRIPT: &str = "GET /ipxe/script/52%3A54%3A00%3A77%3A00%3A01/auto.ipxe";
/// Maximum boots before a long delay counts as a fault of the service.
const ATTEMPTS: usize = 5;
const DISK_MESSAGE: &str = "disk boots";

/// Machine with one NIC, first in boot order; the BIOS machine also has a disk.
struct Nuc {
    process: Child,
    folder: tempfile::TempDir,
}

#[derive(Clone, Copy, PartialEq)]
enum Firmware {
    SeaBios,
    UefiPxe,
    UefiHttp,
}

impl Nuc {
    fn on(wire: &Wire, firmware: Firmware) -> Self {
        let space = &wire.rack_space;
        sh(&format!(
            "ip -n {space} link add br0 type bridge stp_state 0 forward_delay 0
             ip -n {space} tuntap add tap0 mode tap
             ip -n {space} link set nuc0 address 02:00:00:00:00:01
             ip -n {space} link set nuc0 master br0; ip -n {space} link set tap0 master br0
             ip -n {space} link set br0 up; ip -n {space} link set tap0 up"
        ));
        let folder = tempfile::tempdir().unwrap();
        let mut qemu = wire.rack("qemu-system-x86_64");
        let graphics = if firmware == Firmware::SeaBios { ",graphics=off" } else { "" };
        qemu.args(["-machine", &format!("q35,accel=tcg{graphics}"), "-m", "256", "-nodefaults"])
            .args(["-display", "none", "-no-user-config"])
            .args(["-serial", &format!("file:{}", folder.path().join("serial").display())])
            .args(["-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no"]);
        let card = format!("virtio-net-pci,netdev=n0,mac={MAC},bootindex=1");
        if firmware == Firmware::SeaBios {
            let disk = bios_disk(folder.path());
            qemu.args(["-device", &card, "-drive", &disk])
                .args(["-device", "virtio-blk-pci,drive=d0,bootindex=2"]);
        } else {
            let vars = folder.path().join("vars");
            fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &vars).expect("the package ovmf");
            let code = "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd";
            qemu.args(["-drive", code])
                .args(["-drive", &format!("if=pflash,format=raw,file={}", vars.display())])
                // Without an option ROM, the firmware's own clients use the NIC.
                .args(["-device", &format!("{card},romfile=")])
                .args(["-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n"]);
        }
        if firmware == Firmware::UefiHttp {
            qemu.args(["-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n"]);
        }
        let process = qemu.stdin(Stdio::null()).spawn().expect("ip runs");
        Self { process, folder }
    }

    fn serial(&self) -> String {
        let bytes = fs::read(self.folder.path().join("serial")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Nuc {
    fn drop(&mut self) {
        // `ip netns exec` replaces itself with the program, so this process is QEMU.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("serial console:\n{}", self.serial());
        }
    }
}

/// Returns a boot sector that prints [`DISK_MESSAGE`] on the serial port.
fn bios_disk(folder: &Path) -> String {
    let mut sector = vec![
        0xba, 0xf8, 0x03, // mov dx, 0x3f8
        0xbe, 0x11, 0x7c, // mov si, message
        0xac, // next: lodsb
        0x84, 0xc0, // test al, al
        0x74, 0x03, // jz stop
        0xee, // out dx, al
        0xeb, 0xf8, // jmp next
        0xf4, // stop: hlt
        0xeb, 0xfd, // jmp stop
    ];
    sector.extend(DISK_MESSAGE.bytes());
    sector.resize(1 << 20, 0);
    sector[510..512].copy_from_slice(&[0x55, 0xaa]);
    let path = folder.join("disk");
    fs::write(&path, sector).unwrap();
    format!("if=none,id=d0,format=raw,file={}", path.display())
}

/// Returns the time at which the machine first got its boot file.
fn acked(service: &Service) -> Instant {
    wait_for_boot("an ACK", || {
        service.events.first(|event| matches!(event, DhcpEvent::Acked { .. }))
    })
}

/// Boots machines until one waits less than `limit`. Other work beside this test makes a wait
/// longer and never shorter, and a wait that the service causes is part of every boot: one short
/// boot proves that the service causes none.
fn waits_less_than(limit: Duration, boot: impl Fn() -> Duration) {
    let mut waits = Vec::new();
    while waits.len() < ATTEMPTS {
        let wait = boot();
        println!("waited {wait:?}");
        if wait < limit {
            return;
        }
        waits.push(wait);
    }
    panic!("every boot waited {limit:?} or more: {waits:?}");
}

/// Returns the time from the first OFFER until the firmware leaves a boot option.
fn given_up(nuc: &Nuc, service: &Service, option: &str) -> Duration {
    let offered = || service.events.first(|event| matches!(event, DhcpEvent::Offered { .. }));
    let offered = wait_for_boot("an OFFER", offered);
    let is_line = |line: &str| line.contains("BdsDxe: failed to load") && line.contains(option);
    wait_for_boot(option, || nuc.serial().lines().any(is_line).then_some(()));
    offered.elapsed()
}

/// Maximum time until EDK2 leaves a boot option. EDK2 collects offers for 4 s; after an offer
/// without a file, EDK2 repeats requests for 68 s.
const OPTION_LEFT: Duration = Duration::from_secs(40);
/// Maximum time until iPXE requests its script. iPXE waits for 3 s without option 175.176, and for
/// 16 s without the router advertisement.
const SCRIPT_ASKED: Duration = Duration::from_millis(2900);
/// Maximum time from the ACK to the boot from disk: normally 2 s; the waits that a server can cause
/// are 16 s and more.
const DISK_STARTED: Duration = Duration::from_secs(15);

fn asked_as(service: &Service, stage: Stage) -> Option<Instant> {
    service
        .events
        .first(|event| matches!(event, DhcpEvent::Discover { stage: found, .. } if *found == stage))
}

#[test]
fn seabios_ipxe_fetches_the_script_without_waiting() {
    waits_less_than(SCRIPT_ASKED, || {
        let wire = Wire::new();
        let http = http(&wire);
        let service = Service::start(&wire, machine(Netboot::Allowed));
        let _nuc = Nuc::on(&wire, Firmware::SeaBios);
        let fetched = wait_for_boot("the script's request", || http.first(SCRIPT));
        fetched.duration_since(asked_as(&service, Stage::Ipxe).unwrap())
    });
}

#[test]
fn seabios_goes_to_its_disk_when_netboot_is_not_allowed() {
    waits_less_than(DISK_STARTED, || {
        let wire = Wire::new();
        let http = http(&wire);
        let service = Service::start(&wire, machine(Netboot::NotAllowed));
        let nuc = Nuc::on(&wire, Firmware::SeaBios);
        let acked = acked(&service);
        wait_for_boot("the disk", || nuc.serial().contains(DISK_MESSAGE).then_some(()));
        assert_eq!(http.all(), Vec::<String>::new());
        acked.elapsed()
    });
}

#[test]
fn uefi_pxe_loads_ipxe_and_ipxe_fetches_the_script() {
    waits_less_than(SCRIPT_ASKED, || {
        let wire = Wire::new();
        let (tftp, http) = (tftp(&wire, "snponly.efi"), http(&wire));
        let service = Service::start(&wire, machine(Netboot::Allowed));
        let _nuc = Nuc::on(&wire, Firmware::UefiPxe);
        let fetched = wait_for_boot("the script's request", || http.first(SCRIPT));
        assert!(tftp.first("snponly.efi").is_some());
        assert!(asked_as(&service, Stage::Pxe).is_some());
        fetched.duration_since(asked_as(&service, Stage::Ipxe).unwrap())
    });
}

#[test]
fn uefi_pxe_gives_up_soon_when_netboot_is_not_allowed() {
    waits_less_than(OPTION_LEFT, || {
        let wire = Wire::new();
        let tftp = tftp(&wire, "snponly.efi");
        let service = Service::start(&wire, machine(Netboot::NotAllowed));
        let nuc = Nuc::on(&wire, Firmware::UefiPxe);
        let waited = given_up(&nuc, &service, "UEFI PXEv4");
        assert!(tftp.all().iter().all(|file| file == dhcp::NOT_ALLOWED_FILE), "{:?}", tftp.all());
        waited
    });
}

#[test]
fn uefi_http_boot_asks_for_the_loader_by_url() {
    let wire = Wire::new();
    let http = http(&wire);
    let _service = Service::start(&wire, machine(Netboot::Allowed));
    let _nuc = Nuc::on(&wire, Firmware::UefiHttp);
    let request = wait_for_boot("the loader's request", || http.all().into_iter().next());
    assert_eq!(request, "HEAD /ipxe/binary/52:54:00:77:00:01/snponly.efi");
}

#[test]
fn uefi_http_boot_gives_up_soon_when_netboot_is_not_allowed() {
    waits_less_than(OPTION_LEFT, || {
        let wire = Wire::new();
        let http = http(&wire);
        let service = Service::start(&wire, machine(Netboot::NotAllowed));
        let nuc = Nuc::on(&wire, Firmware::UefiHttp);
        let waited = given_up(&nuc, &service, "UEFI HTTPv4");
        let refused = "HEAD /ipxe/binary/52:54:00:77:00:01/netboot-not-allowed";
        assert_eq!(http.all()[0], refused);
        waited
    });
}
