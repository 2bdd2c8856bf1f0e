//! Datagrams on ports 67 and 4011, from known and unknown machines, in every mode.

#![no_main]

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use dhcp::{
    Config, DEFAULT_POOL_LEASE_SECS, DhcpEvent, Directory, Engine, Lease, Mode, Netboot, Observer,
    Outgoing, Output, Prefix, Range, Reservation, Route, ServeMode, Subnet,
};
use dhcproto::v4::{self, OptionCode, borrowed};
use dhcproto::{Decodable as _, Decoder};
use fuzz::{Input, KNOWN};
use libfuzzer_sys::fuzz_target;
use stdx::MacAddr;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Maximum UDP payload of an Ethernet frame, in bytes.
const FRAME_MAX: usize = 1472;

/// Directory that returns, for each MAC address, the reservation that the bits of the input
/// describe.
struct Everyone(u8);

impl Directory for Everyone {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        let is = |bit: u8| self.0 & (1 << bit) != 0;
        if is(0) {
            return None;
        }
        let mut known = match is(7) {
            false => Reservation::new(mac, KNOWN, Ipv4Addr::new(255, 255, 255, 0)),
            true => Reservation::without_address(mac),
        };
        known.disable_dhcp = is(1);
        known.netboot = if is(2) { Netboot::NotAllowed } else { Netboot::Allowed };
        if is(3) {
            known.hostname = Some("h".repeat(300));
            known.domain_name = Some("d.".repeat(150));
        }
        if is(4) {
            known.name_servers = vec![KNOWN; 100];
            known.time_servers = vec![KNOWN; 100];
            let destination = "24.192.0.2".parse().expect("a prefix");
            known.classless_static_routes = vec![Route { destination, router: KNOWN }; 60];
        }
        if is(5) {
            known.boot_file_name = Some("b".repeat(200));
            known.tftp_server_name = Some("t".repeat(100));
        }
        known.ipxe_binary = is(6).then(|| "snp.efi".to_owned());
        Some(known)
    }

    fn is_reserved(&self, address: Ipv4Addr) -> bool {
        address == KNOWN && self.0 & 0x81 == 0
    }
}

impl Observer for Everyone {
    fn observe(&self, event: DhcpEvent) {
        // Events are written to logs and to the history, so their text must be bounded.
        assert!(format!("{event:?}").len() < 16 << 10);
    }
}

/// Configuration that the settings byte describes.
fn config(settings: u8) -> Config {
    let mut config = Config::new("eth0", SERVER);
    config.mode = [Mode::Proxy, Mode::Reserved, Mode::Pool][usize::from(settings % 3)];
    config.enroll = settings & 4 != 0;
    config.conflict_checks = settings & 8 != 0;
    let [a, b, c, _] = SERVER.octets();
    let at = |last| Ipv4Addr::new(a, b, c, last);
    let mut subnet = Subnet::new(Prefix::new(SERVER, 24).expect("a prefix"));
    subnet.ranges = vec![Range { first: at(100), last: at(103) }];
    config.subnets = vec![subnet];
    config
}

/// Leases that the engine has acknowledged: address, client and end.
type Promises = HashMap<Ipv4Addr, (MacAddr, Instant)>;

/// Checks that an ACK of a pool lease does not give an address that another client still has.
fn promise(promises: &mut Promises, message: &[u8], now: Instant) {
    let field = |at: usize| <[u8; 4]>::try_from(&message[at..at + 4]).expect("four bytes");
    let address = Ipv4Addr::from(field(16));
    let mac = MacAddr(message[28..34].try_into().expect("six bytes"));
    if let Some((holder, until)) = promises.get(&address) {
        assert!(*holder == mac || *until <= now, "{address} is leased twice");
    }
    let secs = DEFAULT_POOL_LEASE_SECS.into();
    promises.insert(address, (mac, now + Duration::from_secs(secs)));
}

/// Checks that dhcproto can parse the value of every option; its parser stops at the first
/// malformed option. The relay agent option is not checked: it is echoed unchanged, as the last
/// option.
fn agrees(message: &[u8]) {
    let relay = OptionCode::RelayAgentInformation;
    let raw = borrowed::Message::new(message).expect("a message");
    let mut sent: HashSet<OptionCode> = raw.opts().map(|option| option.code()).collect();
    let typed = v4::Message::decode(&mut Decoder::new(message)).expect("a message");
    let mut read: HashSet<OptionCode> = typed.opts().iter().map(|(code, _)| *code).collect();
    sent.remove(&relay);
    read.remove(&relay);
    assert_eq!(read, sent, "options that dhcproto reads as their types");
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let everyone = Everyone(input.byte());
    let config = config(input.byte());
    let mut now = Instant::now();
    let mut engine = Engine::new(config.clone(), &[], 1_000_000, now);
    let mut promises = Promises::new();
    let from = SocketAddrV4::new(KNOWN, 4011);
    // Up to eight datagrams, with lengths from the input.
    for _ in 0..8 {
        let steer = input.byte();
        let length = (usize::from(input.byte()) << 2).min(input.0.len());
        let (datagram, rest) = input.0.split_at(length);
        input = Input(rest);
        now += Duration::from_secs(u64::from(steer >> 4) * 400);
        engine.set_serve_mode(
            [ServeMode::Open, ServeMode::Open, ServeMode::ProxyOnly, ServeMode::Closed]
                [usize::from(steer & 3)],
        );
        let outputs = if steer & 4 == 0 {
            engine.handle(datagram, &everyone, &everyone, now)
        } else {
            engine.handle_boot_server(datagram, from, &everyone, &everyone, now)
        };
        let mut outputs = outputs.unwrap_or_default();
        while let Some(output) = outputs.pop() {
            let Outgoing { message, needs_commit: leases, .. } = match output {
                Output::Send(outgoing) => outgoing,
                Output::Check { address } => {
                    let holder = (steer & 8 != 0).then_some(MacAddr([2, 0, 0, 0, 0, 9]));
                    outputs.extend(engine.checked(address, holder, &everyone, &everyone, now));
                    continue;
                }
            };
            assert_eq!(message[0], 2, "a server's message");
            assert_eq!(message[4..8], datagram[4..8], "the client's exchange");
            assert_eq!(message[28..34], datagram[28..34], "the client's address");
            assert!((240..=FRAME_MAX).contains(&message.len()), "{} bytes", message.len());
            assert!(steer & 3 != 3, "a closed service answered");
            assert!(everyone.0 & 3 != 2, "one that wants silence was answered");
            agrees(&message);
            if leases {
                promise(&mut promises, &message, now);
            }
        }
        // A restart of the engine with the committed leases.
        if steer & 0xf == 0xf {
            let leases: Vec<Lease> = engine.leases().collect();
            engine = Engine::new(config.clone(), &leases, engine.lease_time(now), now);
        }
    }
});
