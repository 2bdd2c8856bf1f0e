//! Tests boot files beside another server, for every recorded ROM, at both ports.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use stdx::MacAddr;

use crate::config::{Config, Mode};
use crate::engine::{Destination, Engine, Output, ServeMode};
use crate::events::{DhcpEvent, DropReason, Observer as _};
use crate::messages::options::Options;
use crate::reservation::{Netboot, Reservation};
use crate::vectors::*;

const SCRIPT: &str = "http://10.77.0.1:7080/ipxe/script/52:54:00:77:00:01/auto.ipxe";
const LOADER: &str = "http://10.77.0.1:7080/ipxe/binary/52:54:00:77:00:01/snponly.efi";
const LEASED: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 55);

struct Bench {
    engine: Engine,
    directory: One,
    events: EventLog,
    now: Instant,
}

/// DHCP answer with its options decoded.
struct Answer {
    message: Vec<u8>,
    to: Destination,
    options: Options,
}

impl Answer {
    fn field(&self, at: usize) -> Ipv4Addr {
        <[u8; 4]>::try_from(&self.message[at..at + 4]).unwrap().into()
    }

    fn text(&self, at: usize) -> &str {
        let bytes = self.message[at..].split(|byte| *byte == 0).next().unwrap();
        std::str::from_utf8(bytes).unwrap()
    }
}

impl Bench {
    fn with(config: Config, machine: Reservation) -> Self {
        let now = Instant::now();
        let engine = Engine::new(config, &[], 0, now);
        Self { engine, directory: One(machine), events: EventLog::default(), now }
    }

    fn new() -> Self {
        Self::with(Config { mode: Mode::Proxy, ..config() }, machine())
    }

    fn at_67(&mut self, packet: Packet) -> Option<Answer> {
        let outputs =
            self.engine.handle(&packet.end(), &self.directory, &self.events, self.now).unwrap();
        self.read(outputs)
    }

    fn at_4011(&mut self, packet: Packet, from: SocketAddrV4) -> Option<Answer> {
        let bytes = packet.end();
        let (directory, events) = (&self.directory, &self.events);
        let outputs = self.engine.handle_boot_server(&bytes, from, directory, events, self.now);
        self.read(outputs.unwrap())
    }

    fn read(&self, mut outputs: Vec<Output>) -> Option<Answer> {
        assert!(outputs.len() < 2, "{outputs:?}");
        let Output::Send(outgoing) = outputs.pop()? else { panic!("a check") };
        assert!(!outgoing.needs_commit);
        let options = Options::read(&outgoing.message[240..], &[], &[]).unwrap();
        self.events.observe(outgoing.event);
        Some(Answer { message: outgoing.message, to: outgoing.to, options })
    }

    fn drop_reason(&self) -> Option<DropReason> {
        self.events.take().into_iter().rev().find_map(|event| match event {
            DhcpEvent::Ignored { reason, .. } => Some(reason),
            _ => None,
        })
    }
}

/// Request of EDK2 to port 4011: unicast, with its address in `ciaddr`, without options 50 and 54.
fn edk2_asks() -> Packet {
    Packet::new(0)
        .ciaddr(LEASED)
        .option(53, &[3])
        .option(55, &[1, 3, 43, 54, 60, 66, 67, 97])
        .option(57, &[0xff, 0])
        .option(60, b"PXEClient:Arch:00007:UNDI:003000")
        .option(93, &[0, 7])
        .option(94, &[1, 3, 0])
        .option(97, &MACHINE_ID)
}

#[test]
fn every_rom_is_told_its_file_and_given_no_address() {
    let control = Some(&[6, 1, 8, 255][..]);
    for (name, packet, class, file, pxe) in [
        ("iPXE BIOS ROM", ipxe_bios(DISCOVER), "PXEClient", SCRIPT, control),
        ("iPXE EFI", ipxe_efi(DISCOVER), "PXEClient", SCRIPT, control),
        ("Tinkerbell's iPXE", tinkerbell(DISCOVER), "PXEClient", SCRIPT, control),
        ("EDK2 PXE", edk2_pxe(DISCOVER), "PXEClient", "snponly.efi", None),
        ("EDK2 HTTP", edk2_http(DISCOVER), "HTTPClient", LOADER, None),
        ("BIOS PXE", bios_pxe(DISCOVER), "PXEClient", "undionly.kpxe", control),
    ] {
        let wants_file = name != "BIOS PXE";
        let answer = Bench::new().at_67(packet).unwrap();
        assert_eq!(answer.to, Destination::Broadcast, "{name}");
        assert_eq!(answer.field(12), Ipv4Addr::UNSPECIFIED, "{name}: ciaddr");
        assert_eq!(answer.field(16), Ipv4Addr::UNSPECIFIED, "{name}: yiaddr");
        assert_eq!(answer.field(20), SERVER, "{name}: siaddr");
        assert_eq!(answer.text(44), "10.77.0.1", "{name}: sname");
        assert_eq!(answer.text(108), file, "{name}: file");
        let options = &answer.options;
        assert_eq!(options.get(53), Some(&[2][..]), "{name}");
        assert_eq!(options.get(54), Some(&SERVER.octets()[..]), "{name}");
        assert_eq!(options.get(60), Some(class.as_bytes()), "{name}");
        assert_eq!(options.get(43), pxe, "{name}");
        let option = [file.as_bytes(), b"\0"].concat();
        assert_eq!(options.get(67), wants_file.then_some(&option[..]), "{name}");
        assert_eq!(options.get(97), Some(&MACHINE_ID[..]), "{name}");
        for code in [1, 3, 6, 12, 15, 28, 42, 51, 66, 119, 175] {
            assert_eq!(options.get(code), None, "{name}: {code}");
        }
    }
}

const PI_MENU: &[u8] = b"\x06\x01\x08\x09\x14\0\0\x11Raspberry Pi Boot\x0a\x04\0PXE\xff";

#[test]
fn a_raspberry_pi_is_shown_its_menu() {
    let pi = MacAddr([0x2c, 0xcf, 0x67, 1, 2, 3]);
    let config = Config { mode: Mode::Proxy, ..config() };
    let mut bench = Bench::with(config, Reservation { mac: pi, ..machine() });
    let answer = bench.at_67(bios_pxe(DISCOVER).mac(pi)).unwrap();
    assert_eq!(answer.text(108), "snp-arm64.efi");
    assert_eq!(answer.options.get(43), Some(PI_MENU));
}

/// Two Raspberry Pis: one has a MAC address that its owner chose, one sends its own architecture.
#[test]
fn a_raspberry_pi_without_its_prefix_is_shown_its_menu() {
    let requests = |arch: u8| {
        Packet::new(0)
            .option(53, &[DISCOVER])
            .option(60, b"PXEClient:Arch:00000:UNDI:002001")
            .option(93, &[0, arch])
    };
    for packet in
        [requests(0).option(97, b"\0RPi5\x14\0\0\0\x12\x34\x56\x78\x90\0\0\0"), requests(41)]
    {
        let answer = Bench::new().at_67(packet).unwrap();
        assert_eq!(answer.text(108), "snp-arm64.efi");
        assert_eq!(answer.options.get(43), Some(PI_MENU));
    }
}

#[test]
fn at_port_4011_every_mode_names_the_file_to_where_the_question_came_from() {
    for mode in [Mode::Proxy, Mode::Reserved, Mode::Pool] {
        let mut bench = Bench::with(Config { mode, ..config() }, machine());
        let from = SocketAddrV4::new(LEASED, 4011);
        let answer = bench.at_4011(edk2_asks(), from).unwrap();
        assert_eq!(answer.to, Destination::BootServer(from));
        assert_eq!(answer.field(12), LEASED, "ciaddr");
        assert_eq!(answer.field(16), Ipv4Addr::UNSPECIFIED, "yiaddr");
        assert_eq!(answer.field(20), SERVER, "siaddr");
        assert_eq!(answer.text(108), "snponly.efi");
        for (code, value) in [
            (53, Some(&[5][..])),
            (54, Some(&SERVER.octets())),
            (60, Some(b"PXEClient")),
            (67, Some(b"snponly.efi\0")),
            (97, Some(&MACHINE_ID)),
            (43, None),
            (51, None),
        ] {
            assert_eq!(answer.options.get(code), value, "{mode:?}: {code}");
        }
        let file = Some("snponly.efi".to_owned());
        let acked = DhcpEvent::Acked { mac: MAC, address: LEASED, file };
        assert_eq!(bench.events.take().last(), Some(&acked));
        // iPXE sends from port 68, with the server identifier.
        let from = SocketAddrV4::new(LEASED, 68);
        let requests = ipxe_bios(REQUEST).ciaddr(LEASED).option(54, &SERVER.octets());
        let answer = bench.at_4011(requests, from).unwrap();
        assert_eq!(answer.to, Destination::BootServer(from));
        assert_eq!((answer.field(20), answer.text(108)), (SERVER, SCRIPT));
        let other = ipxe_bios(REQUEST).ciaddr(LEASED).option(54, &LEASED.octets());
        assert!(bench.at_4011(other, from).is_none());
        assert_eq!(bench.drop_reason(), Some(DropReason::OtherServer(LEASED)));
    }
}

#[test]
fn a_request_at_port_67_is_for_the_server_of_the_address() {
    let mut bench = Bench::new();
    let other = edk2_http(REQUEST).option(54, &LEASED.octets()).option(50, &ADDRESS.octets());
    assert!(bench.at_67(other).is_none());
    assert_eq!(bench.drop_reason(), Some(DropReason::OtherServer(LEASED)));
    let ours = bench.at_67(selecting(edk2_http(REQUEST))).unwrap();
    assert_eq!(ours.options.get(53), Some(&[5][..]));
    assert_eq!(ours.field(16), Ipv4Addr::UNSPECIFIED);
    let relay = Ipv4Addr::new(10, 88, 0, 1);
    let relayed = bench.at_67(edk2_pxe(DISCOVER).giaddr(relay)).unwrap();
    assert_eq!(relayed.to, Destination::Relay(relay));
}

#[test]
fn who_is_told_nothing() {
    let mut bench = Bench::new();
    assert!(bench.at_67(udhcpc(DISCOVER)).is_none());
    assert_eq!(bench.drop_reason(), Some(DropReason::NotNetbooting));
    let unknown = MacAddr([2; 6]);
    assert!(bench.at_67(edk2_pxe(DISCOVER).mac(unknown)).is_none());
    assert!(bench.at_4011(edk2_asks().mac(unknown), SocketAddrV4::new(LEASED, 4011)).is_none());
    bench.directory.0.netboot = Netboot::NotAllowed;
    assert!(bench.at_67(ipxe_efi(DISCOVER)).is_none(), "iPXE goes on by itself");
    assert_eq!(bench.drop_reason(), Some(DropReason::NetbootNotAllowed));
    let answer = bench.at_67(edk2_pxe(DISCOVER)).unwrap();
    assert_eq!(answer.text(108), "/netboot-not-allowed", "firmware must go on");
    bench.directory.0.disable_dhcp = true;
    assert!(bench.at_67(edk2_pxe(DISCOVER)).is_none());
    assert_eq!(bench.drop_reason(), Some(DropReason::Disabled));
}

#[test]
fn beside_a_foreign_server_only_installs_go_on() {
    for mode in [Mode::Reserved, Mode::Pool] {
        let mut bench = Bench::with(Config { mode, ..config() }, machine());
        bench.engine.set_serve_mode(ServeMode::ProxyOnly);
        assert_eq!(bench.at_67(edk2_pxe(DISCOVER)).unwrap().text(108), "snponly.efi");
        let from = SocketAddrV4::new(LEASED, 4011);
        assert!(bench.at_4011(edk2_asks(), from).is_some());
        bench.directory.0.installing = false;
        assert!(bench.at_67(edk2_pxe(DISCOVER)).is_none());
        assert_eq!(bench.drop_reason(), Some(DropReason::Held));
        assert!(bench.at_4011(edk2_asks(), from).is_none());
    }
}

#[test]
fn strangers_are_enrolled_where_that_is_wanted() {
    let config = Config { mode: Mode::Proxy, enroll: true, ..config() };
    let mut bench = Bench::with(config, machine());
    let unknown = MacAddr([2, 0, 0, 0, 0, 9]);
    assert_eq!(bench.at_67(edk2_pxe(DISCOVER).mac(unknown)).unwrap().text(108), "snponly.efi");
    let script = "http://10.77.0.1:7080/ipxe/script/02:00:00:00:00:09/auto.ipxe";
    assert_eq!(bench.at_67(ipxe_efi(DISCOVER).mac(unknown)).unwrap().text(108), script);
}
