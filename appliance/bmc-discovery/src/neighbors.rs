//! Neighbors of the box by ARP, as the kernel lists them.

use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Reads the text of `/proc/net/arp` (proc(5)): address, hardware type, flags, MAC, mask, device.
/// Entries without an answer have the flags `0x0` and are left out.
pub fn neighbors(table: &str) -> HashMap<Ipv4Addr, String> {
    let entry = |line: &str| {
        let mut fields = line.split_whitespace();
        let address: Ipv4Addr = fields.next()?.parse().ok()?;
        let (flags, mac) = (fields.nth(1)?, fields.next()?);
        (flags != "0x0").then(|| (address, mac.to_ascii_lowercase()))
    };
    table.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::neighbors;

    #[test]
    fn entries_with_an_answer_are_read() {
        let table = "IP address       HW type     Flags       HW address            Mask   Device\n\
            10.0.0.9         0x1         0x2         52:54:00:AA:00:09     *        eth0\n\
            10.0.0.8         0x1         0x0         00:00:00:00:00:00     *        eth0\n";
        let found = neighbors(table);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&[10, 0, 0, 9].into()], "52:54:00:aa:00:09");
    }
}
