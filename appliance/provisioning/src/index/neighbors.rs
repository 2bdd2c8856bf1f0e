//! Reader of the kernel's IPv4 neighbor table (ARP).

use std::net::Ipv4Addr;

use stdx::MacAddr;

/// ARP table of the kernel with the columns address, hardware type, flags, hardware address, mask,
/// device.
const TABLE: &str = "/proc/net/arp";
/// Flag of a complete entry (`ATF_COM` of `linux/if_arp.h`).
const COMPLETE: u32 = 2;

/// Returns the hardware address for an IPv4 address from the ARP table; `None` without a complete
/// entry. The sender of a recent request always has an entry.
pub fn hardware_address(address: Ipv4Addr) -> Option<MacAddr> {
    find(&std::fs::read_to_string(TABLE).ok()?, address)
}

/// Returns the interface of the box in the last ARP entry of a hardware address. An entry stays for
/// minutes after the machine is off.
pub fn interface(mac: MacAddr) -> Option<String> {
    interface_in(&std::fs::read_to_string(TABLE).ok()?, mac)
}

fn interface_in(table: &str, mac: MacAddr) -> Option<String> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let is_own = fields.nth(3)?.parse() == Ok(mac);
        is_own.then(|| fields.nth(1).map(str::to_owned))?
    })
}

fn find(table: &str, address: Ipv4Addr) -> Option<MacAddr> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        if fields.next()?.parse() != Ok(address) {
            return None;
        }
        let flags = u32::from_str_radix(fields.nth(1)?.trim_start_matches("0x"), 16).ok()?;
        (flags & COMPLETE != 0).then(|| fields.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::{find, interface_in};

    const TABLE: &str = "IP address  HW type  Flags  HW address  Mask  Device\n\
        10.77.0.11       0x1         0x2         52:54:00:77:00:01     *        eth0\n\
        10.77.0.12       0x1         0x0         00:00:00:00:00:00     *        eth0\n";

    #[test]
    fn only_complete_entries_count() {
        let mac = "52:54:00:77:00:01".parse().ok();
        assert_eq!(find(TABLE, [10, 77, 0, 11].into()), mac);
        assert_eq!(find(TABLE, [10, 77, 0, 12].into()), None);
        assert_eq!(find(TABLE, [10, 77, 0, 1].into()), None);
        assert_eq!(find("", [10, 77, 0, 11].into()), None);
    }

    #[test]
    fn the_interface_of_a_machine_is_the_one_of_its_entry() {
        let mac = |last| stdx::MacAddr([0x52, 0x54, 0, 0x77, 0, last]);
        assert_eq!(interface_in(TABLE, mac(1)).as_deref(), Some("eth0"));
        assert_eq!(interface_in(TABLE, mac(2)), None);
    }
}
