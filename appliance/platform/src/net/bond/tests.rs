use rtnetlink::packet_core::Emitable as _;
use rtnetlink::packet_route::link::LinkMessage;
use stdx::MacAddr;

use super::super::netlink::vlan;
use super::{Bond, BondMode, join, prefer};

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);

/// Attributes IFLA_LINKINFO, which is nested, and IFLA_INFO_KIND, the first attribute in it.
const LINK_INFO: u16 = 18;
const KIND: u16 = 1;

/// Netlink attributes as pairs of number and value.
type Attributes = Vec<(u16, Vec<u8>)>;

/// Returns the attributes in `bytes`.
fn attributes(mut bytes: &[u8]) -> Attributes {
    let mut found = Vec::new();
    while let [low, high, first, second, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([low, high]));
        found.push((u16::from_ne_bytes([first, second]), bytes[4..length].to_vec()));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// Returns the fixed part of an RTM_NEWLINK, its attributes, and the nested attributes. The order
/// of the attributes has no meaning. A terminating zero of the kind has no meaning either
/// (`nla_strscpy` of the kernel's lib/nlattr.c).
fn parts(message: &[u8]) -> (Vec<u8>, Attributes, Attributes) {
    let (fixed, rest) = message.split_at(16);
    let mut all = attributes(rest);
    all.sort();
    let info = all.iter().position(|(number, _)| *number == LINK_INFO);
    let mut inner = info.map(|at| attributes(&all.remove(at).1)).unwrap_or_default();
    for (_, kind) in inner.iter_mut().filter(|(number, _)| *number == KIND) {
        kind.pop_if(|last| *last == 0);
    }
    (fixed.to_vec(), all, inner)
}

fn bytes(message: &LinkMessage) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

/// Compares a message with the bytes that `ip` sent to the kernel for the same change (iproute2
/// 6.1.0 under strace, without the netlink header).
fn same(message: &LinkMessage, sent: &str) {
    assert_eq!(parts(&bytes(message)), parts(&hex(sent)));
}

fn bond(mode: BondMode) -> Bond {
    let ports = ["aaa", "bbb"].map(str::to_owned).to_vec();
    Bond { name: "bond0".to_owned(), ports, mode, primary: None, fast_lacp: false }
}

#[test]
fn a_bond_is_made_as_ip_makes_it() {
    // ip link add name bond0 address 52:54:00:77:00:01 type bond mode active-backup miimon 100
    // primary aaa
    same(
        &bond(BondMode::ActiveBackup).message(MAC, Some(3)),
        "00000000 00000000 00000000 00000000 0a000100 52540077 00010000 0a000300
         626f6e64 30000000 28001200 08000100 626f6e64 1c000200 05000100 01000000
         08000300 64000000 08000b00 03000000",
    );
    // … type bond mode 802.3ad miimon 100 xmit_hash_policy layer2+3 lacp_rate fast
    let fast = Bond { fast_lacp: true, ..bond(BondMode::Lacp) };
    same(
        &fast.message(MAC, None),
        "00000000 00000000 00000000 00000000 0a000100 52540077 00010000 0a000300
         626f6e64 30000000 30001200 08000100 626f6e64 24000200 05000100 04000000
         08000300 64000000 05000e00 02000000 05001500 01000000",
    );
    // … type bond mode balance-alb miimon 100
    same(
        &bond(BondMode::BalanceAlb).message(MAC, None),
        "00000000 00000000 00000000 00000000 0a000100 52540077 00010000 0a000300
         626f6e64 30000000 20001200 08000100 626f6e64 14000200 05000100 06000000
         08000300 64000000",
    );
}

#[test]
fn a_bond_is_changed_as_ip_changes_it() {
    // ip link set dev aaa master bbb
    same(&join(3, 2), "00000000 03000000 00000000 00000000 08000a00 02000000");
    // ip link set dev aaa type bond primary bbb
    same(
        &prefer(3, 2),
        "00000000 03000000 00000000 00000000 18001200 08000100 626f6e64 0c000200
         08000b00 02000000",
    );
}

#[test]
fn a_vlan_is_made_as_ip_makes_it() {
    // ip link add link aaa name aaa.7 up type vlan id 7
    same(
        &vlan("aaa.7", 3, 7),
        "00000000 00000000 01000000 01000000 08000500 03000000 0a000300 6161612e
         37000000 18001200 08000100 766c616e 0c000200 06000100 07000000",
    );
}

#[test]
fn a_mode_has_the_kernels_word() {
    let all = [BondMode::ActiveBackup, BondMode::Lacp, BondMode::BalanceAlb];
    assert_eq!(all.map(BondMode::word), ["active-backup", "802.3ad", "balance-alb"]);
    assert_eq!(all.map(|mode| u8::from(mode.kernel())), [1, 4, 6]);
}

#[tokio::test]
async fn a_bond_without_any_of_its_ports_is_refused() {
    let none = Bond { ports: vec!["no-such-card".to_owned()], ..bond(BondMode::ActiveBackup) };
    let error = super::bond(&none).await.unwrap_err().to_string();
    assert!(error.contains("all ports of bond0 are missing: no-such-card"), "{error}");
}
