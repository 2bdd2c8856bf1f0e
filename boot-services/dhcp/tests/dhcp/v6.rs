//! Tests a real DHCPv6 client and real firmware against the running service.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use dhcp::v6::{Config, Directory, Event, Identity, Observer, Reservation, run};
use dhcp::{Netboot, Stage};
use stdx::testing::{PATIENCE, until, wait_for};
use tokio_util::sync::CancellationToken;

use crate::rack::networkd::Networkd;
use crate::rack::{self, BOOT, MAC, Wire, servers, sh, wait_for_boot};

fn server() -> Ipv6Addr {
    "fd77::1".parse().unwrap()
}

fn machine() -> Reservation {
    let address = "fd77::11".parse().unwrap();
    let name_servers = vec![server()];
    Reservation { netboot: Netboot::Allowed, name_servers, ..Reservation::new(MAC, address) }
}

#[derive(Default)]
struct One(Mutex<Vec<Event>>);

impl Directory for One {
    fn find(&self, identity: Identity) -> Option<Reservation> {
        (identity == Identity::Mac(MAC)).then(machine)
    }
}

impl Observer for One {
    fn observe(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl One {
    fn has(&self, is: impl Fn(&Event) -> bool) -> Option<Event> {
        self.0.lock().unwrap().iter().find(|event| is(event)).cloned()
    }
}

/// DHCPv6 service that runs until dropped.
struct Service {
    events: Arc<One>,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<Result<(), dhcp::Error>>>,
}

impl Service {
    fn start(wire: &Wire) -> Self {
        sh(&format!("ip -n {} addr add {}/64 dev box0 nodad", wire.box_space, server()));
        let events = Arc::new(One::default());
        let (directory, shutdown) = (Arc::clone(&events), CancellationToken::new());
        let (observer, stop) = (Arc::clone(&events), shutdown.clone());
        let interface = "box0".to_owned();
        let binaries = BTreeMap::new();
        let config = Config { interface, server: server(), http_port: 7080, binaries };
        let thread = wire.in_box(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(run(config, directory, observer, stop))
        });
        Self { events, shutdown, thread: Some(thread) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the client's link-local address is usable.
fn settled(wire: &Wire) {
    until("a link-local address", || {
        let shown = wire.rack("ip").args(["-6", "addr", "show", "dev", "nuc0"]).output().unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        shown.contains("fe80::") && !shown.contains("tentative")
    });
}

#[test]
fn dhclient_gets_the_reservation() {
    let wire = Wire::new();
    let service = Service::start(&wire);
    settled(&wire);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    fs::write(file("config"), format!("timeout {};\n", PATIENCE.as_secs())).unwrap();
    let client = |mode: &[&str]| {
        let mut dhclient = wire.rack("dhclient");
        dhclient.args(["-6", "-1", "-D", "LL", "-sf", "/bin/true", "-cf", &file("config")]);
        dhclient.args(["-lf", &file("leases"), "-pf", &file("pid")]).args(mode).arg("nuc0");
        dhclient
            .stderr(Stdio::null())
            .status()
            .expect("ip (iproute2) and dhclient (isc-dhcp-client) are installed")
    };
    // dhclient stays in the background, and ends with the release.
    assert!(client(&[]).success(), "{:?}", service.events.0.lock().unwrap());
    let leases = fs::read_to_string(file("leases")).unwrap();
    assert!(leases.contains("iaaddr fd77::11 {"), "{leases}");
    assert!(leases.contains("option dhcp6.name-servers fd77::1;"), "{leases}");
    let replied =
        |event: &Event| *event == Event::Replied { mac: MAC, stage: Stage::System, url: None };
    wait_for("the report of the reply", || service.events.has(replied));
    assert!(client(&["-r"]).success());
    let released = |event: &Event| *event == Event::Ended { mac: MAC, declined: false };
    wait_for("the release", || service.events.has(released));
}

#[test]
fn networkd_gets_the_reservation_by_the_address_its_link_gave_it() {
    let wire = Wire::new();
    let service = Service::start(&wire);
    // No router advertisement makes networkd send requests, so its settings must. Its DUID has the
    // enterprise type (RFC 8415 §11.3), without a hardware address.
    let sections = "[Network]\nDHCP=ipv6\nIPv6AcceptRA=no\n[DHCPv6]\nWithoutRA=solicit\n";
    let client = Networkd::start(&wire, sections);
    let link = client.link("ADMIN_STATE", "configured");
    assert!(link["DHCP6_CLIENT_DUID"].starts_with("DUID-EN/"), "{link:#?}");
    let expected = machine();
    assert_eq!(link["DNS"], expected.name_servers[0].to_string(), "{link:#?}");
    let shown = wire.rack("ip").args(["-6", "-oneline", "addr", "show", "dev", "nuc0"]).output();
    let shown = String::from_utf8_lossy(&shown.unwrap().stdout).into_owned();
    assert!(shown.contains(&format!(" {}/128 ", expected.address)), "{shown}");
    let whole = expected.lease_secs;
    let oldest = whole - PATIENCE.as_secs() as u32;
    let remains = shown.split("valid_lft ").filter_map(|rest| rest.split_once("sec"));
    let remains: Vec<u32> = remains.filter_map(|(secs, _)| secs.parse().ok()).collect();
    assert!(matches!(*remains, [secs] if (oldest..=whole).contains(&secs)), "{shown}");
    let replied = Event::Replied { mac: MAC, stage: Stage::System, url: None };
    wait_for("the report of the reply", || service.events.has(|event| *event == replied));
    // systemd 252 does not release its IPv6 address when it stops.
    client.stop();
}

/// Starts OVMF without PXE over IPv4; `pxe` selects PXE over IPv6 or not. OVMF tries HTTP after
/// PXE.
fn firmware(wire: &Wire, folder: &Path, pxe: &str) -> Process {
    let space = &wire.rack_space;
    sh(&format!(
        "ip -n {space} link add br0 type bridge stp_state 0 forward_delay 0
         ip -n {space} tuntap add tap0 mode tap
         ip -n {space} link set nuc0 address 02:00:00:00:00:01
         ip -n {space} link set nuc0 master br0; ip -n {space} link set tap0 master br0
         ip -n {space} link set br0 up; ip -n {space} link set tap0 up"
    ));
    let vars = folder.join("vars");
    fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &vars).expect("the package ovmf");
    let code = "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd";
    let mut qemu = wire.rack("qemu-system-x86_64");
    qemu.args(["-machine", "q35,accel=tcg", "-m", "256", "-nodefaults"])
        .args(["-display", "none", "-no-user-config", "-drive", code])
        .args(["-serial", &format!("file:{}", folder.join("serial").display())])
        .args(["-drive", &format!("if=pflash,format=raw,file={}", vars.display())])
        .args(["-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no"])
        // Without an option ROM, the firmware's own clients use the NIC.
        .args(["-device", &format!("virtio-net-pci,netdev=n0,mac={MAC},bootindex=1,romfile=")])
        .args(["-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n"])
        .args(["-fw_cfg", &format!("name=opt/org.tianocore/IPv6PXESupport,string={pxe}")]);
    Process(qemu.stdin(Stdio::null()).spawn().expect("ip runs"))
}

#[test]
fn uefi_pxe_over_ipv6_asks_for_the_loader() {
    let wire = Wire::new();
    let service = Service::start(&wire);
    let tftp = wire.in_box(|| {
        let socket = UdpSocket::bind((server(), 69)).unwrap();
        socket.set_read_timeout(Some(BOOT)).unwrap();
        let mut buffer = [0; 1500];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[2..length]).split('\0').next().map(str::to_owned)
    });
    let folder = tempfile::tempdir().unwrap();
    let _firmware = firmware(&wire, folder.path(), "y");
    let replied =
        || service.events.has(|event| matches!(event, Event::Replied { stage: Stage::Pxe, .. }));
    let reply = wait_for_boot("an address for the firmware", replied);
    let url = Some("tftp://[fd77::1]/snponly.efi".to_owned());
    assert_eq!(reply, Event::Replied { mac: MAC, stage: Stage::Pxe, url });
    assert_eq!(tftp.join().unwrap().as_deref(), Some("snponly.efi"));
}

#[test]
fn uefi_http_boot_over_ipv6_asks_for_the_loader_by_url() {
    let wire = Wire::new();
    let service = Service::start(&wire);
    // HTTP over IPv4 comes first; a missing file makes the firmware continue.
    let _nothing = servers::http(&wire);
    let _over_ipv4 = rack::Service::start(&wire, rack::machine(Netboot::NotAllowed));
    // The thread runs until the test's process ends.
    let (sender, requests) = std::sync::mpsc::sync_channel(1);
    wire.in_box(move || {
        let listener = TcpListener::bind((server(), 7080)).unwrap();
        let mut line = String::new();
        BufReader::new(listener.accept().unwrap().0).read_line(&mut line).unwrap();
        sender.send(line).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let _firmware = firmware(&wire, folder.path(), "n");
    let request = requests.recv_timeout(BOOT).expect("a request for the loader");
    assert_eq!(request, "HEAD /ipxe/binary/52:54:00:77:00:01/snponly.efi HTTP/1.1\r\n");
    let offered = Event::Offered { mac: MAC, stage: Stage::HttpBoot };
    wait_for("the report of the offer", || service.events.has(|event| *event == offered));
}
