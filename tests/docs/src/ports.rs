//! `docs/reference/ports.md`: the ports of the box, with the constant of each.

use std::collections::BTreeMap;

use regex::Regex;

use crate::page::head;
use crate::source::product;

const ABOUT: &str = "\
Each port is a constant of the code. A network of the rack needs the boot ports; your own network \
needs 80, 443 and 6443. The box keeps no other port open on a network. A control-plane \
endpoint has the port of its cluster, on an address of its own.";

/// A port: number, protocol, crates that name it, purpose.
type Row = (u16, &'static str, &'static [&'static str], &'static str);

const ROWS: &[Row] = &[
    (67, "udp", &["dhcp"], "DHCP server; also the port to which relay agents send"),
    (69, "udp", &[], "TFTP: boot loaders"),
    (80, "tcp", &[], "web page: leads to 443"),
    (123, "udp", &["ntp"], "NTP for the rack"),
    (443, "tcp", &[], "web page, claim, `ca.pem`, Cluster API provider, updates and backups"),
    (514, "udp", &[], "syslog of machines"),
    (547, "udp", &["dhcp"], "DHCPv6 server"),
    (2222, "tcp", &["serial-console"], "serial consoles over SSH"),
    (4011, "udp", &["dhcp"], "PXE boot server, in mode `proxy`"),
    (5353, "udp", &[], "multicast DNS: `NAME.local`"),
    (6443, "tcp", &[], "Kubernetes API (`[api] listen`)"),
    (7080, "tcp", &["dhcp"], "HTTP boot, scripts, images, cache, registry, metadata"),
    (7173, "tcp", &[], "boot files without folders"),
    (7443, "tcp", &[], "the same as 7080 over HTTPS"),
    (42113, "tcp", &[], "agents (gRPC)"),
    (50061, "tcp", &[], "metadata"),
    (68, "udp", &["dhcp", "platform"], "client: the box's own address, the probe for servers"),
    (161, "udp", &["poe"], "client: SNMP, to switches with Power over Ethernet"),
    (623, "udp", &["ipmi"], "client: IPMI, to BMCs"),
    (1900, "udp", &["bmc-discovery"], "client: search for Redfish services (SSDP)"),
    (9, "udp", &["bmc"], "client: Wake-on-LAN, broadcast to machines"),
];

/// Ports of the code that are neither of the box nor of its clients on the network.
const OTHERS: [u16; 2] = [2, 4];

/// Ports that an external crate opens; no constant of the product names them.
const ELSEWHERE: [u16; 1] = [5353];

/// Returns the page as Markdown text.
pub fn page() -> String {
    let mut text = head("Ports", ABOUT);
    text.push_str("\n| port | protocol | purpose |\n|---|---|---|\n");
    for (port, protocol, _, purpose) in ROWS {
        text.push_str(&format!("| {port} | {protocol} | {purpose} |\n"));
    }
    text
}

/// Returns port constants of the code that the table lacks, and rows without a constant in the
/// code.
///
/// # Panics
/// Never: the patterns are valid.
pub fn mistakes() -> Vec<String> {
    let named = Regex::new(r"const ([A-Z_]*PORT[A-Z_]*): u16 = (\d+);").expect("a valid pattern");
    let mut ports: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let sources = product();
    for source in &sources {
        for found in named.captures_iter(&source.text) {
            let port = found[2].parse().unwrap_or_default();
            ports.entry(port).or_default().push(source.krate().to_owned());
        }
    }
    let known = |port: &u16| OTHERS.contains(port) || ROWS.iter().any(|(row, ..)| row == port);
    let mut mistakes: Vec<String> = ports
        .keys()
        .filter(|port| !known(port))
        .map(|port| format!("port {port} has no row in docs/reference/ports.md"))
        .collect();
    for &(port, _, crates, _) in ROWS {
        let places = ports.get(&port).cloned().unwrap_or_default();
        let written = ELSEWHERE.contains(&port)
            || sources.iter().any(|source| source.text.contains(&port.to_string()));
        let missing = crates.iter().any(|krate| !places.iter().any(|place| place == krate));
        if missing || !written {
            mistakes.push(format!("port {port}: no such constant in the code"));
        }
    }
    mistakes
}
