//! Reservations of known machines, and their lookup.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use stdx::MacAddr;

/// Default lease time in seconds for a hardware record without one: one day.
pub const DEFAULT_LEASE_SECS: u32 = 86_400;

/// Lookup of machines. The service calls it once for each packet, so it must answer from memory.
pub trait Directory: Send + Sync + 'static {
    /// Returns the reservation of a machine; `None` for an unknown machine.
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation>;

    /// Returns true if a record reserves the address, so that no pool may assign it.
    fn is_reserved(&self, address: Ipv4Addr) -> bool;
}

/// Reservation for one network interface of a known machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Host name (option 12).
    pub hostname: Option<String>,
    /// MAC address of the interface.
    pub mac: MacAddr,
    /// Reserved address of the interface; `None`: the address comes from a pool, if there is one.
    pub fixed: Option<FixedAddress>,
    /// Default gateway (option 3).
    pub gateway: Option<Ipv4Addr>,
    /// DNS servers (option 6), in order of preference.
    pub name_servers: Vec<Ipv4Addr>,
    /// NTP servers (option 42), in order of preference.
    pub time_servers: Vec<Ipv4Addr>,
    /// Domain name (option 15), also the only entry of the search list (option 119).
    pub domain_name: Option<String>,
    /// Lease time of a reserved address (option 51), in seconds; 0 means [`DEFAULT_LEASE_SECS`].
    pub lease_secs: u32,
    /// Permission to boot from the network.
    pub netboot: Netboot,
    /// True while the machine is being installed: [`crate::ServeMode::ProxyOnly`] still serves it.
    pub installing: bool,
    /// True if the record disables DHCP on this interface.
    pub disable_dhcp: bool,
    /// TFTP server name (option 66). This field or [`Self::boot_file_name`] replaces all boot
    /// options of the box, whatever [`Self::netboot`] is (as in Smee, for U-Boot boards).
    pub tftp_server_name: Option<String>,
    /// Boot file name (option 67 and the header's `file`).
    pub boot_file_name: Option<String>,
    /// Classless static routes (option 121).
    pub classless_static_routes: Vec<Route>,
    /// Loader file for this machine, for any architecture; `None`: the architecture decides.
    pub ipxe_binary: Option<String>,
}

impl Reservation {
    /// Creates a reservation of an address only: no other settings, no netboot, a day's lease.
    pub fn new(mac: MacAddr, address: Ipv4Addr, netmask: Ipv4Addr) -> Self {
        Self { fixed: Some(FixedAddress { address, netmask }), ..Self::without_address(mac) }
    }

    /// Creates a reservation without an address: only the MAC address is known.
    pub fn without_address(mac: MacAddr) -> Self {
        Self {
            hostname: None,
            mac,
            fixed: None,
            gateway: None,
            name_servers: Vec::new(),
            time_servers: Vec::new(),
            domain_name: None,
            lease_secs: DEFAULT_LEASE_SECS,
            netboot: Netboot::NotAllowed,
            installing: false,
            disable_dhcp: false,
            tftp_server_name: None,
            boot_file_name: None,
            classless_static_routes: Vec::new(),
            ipxe_binary: None,
        }
    }
}

/// Reserved address with its netmask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedAddress {
    /// Address of the client (`yiaddr`).
    pub address: Ipv4Addr,
    /// Netmask (option 1), from which the broadcast address (option 28) is computed.
    pub netmask: Ipv4Addr,
}

/// Permission to boot from the network (`netboot.allowPXE`; absent means not allowed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Netboot {
    /// The machine gets a loader and a script.
    Allowed,
    /// The machine gets its address, and a boot file name that makes its firmware continue with the
    /// next boot device soonest.
    NotAllowed,
}

/// Classless static route (option 121).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Destination of the route.
    pub destination: Prefix,
    /// Router of the route; 0.0.0.0 means that the destination is on the link.
    pub router: Ipv4Addr,
}

/// IPv4 network: an address without host bits, and a prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: Ipv4Addr,
    length: u8,
}

/// Error: the text is not an IPv4 network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an IPv4 network such as 192.0.2.0/24 or, in RFC 3442 form, 24.192.0.2; found {0:?}"
)]
pub struct InvalidPrefix(String);

impl Prefix {
    /// Creates a prefix; `None` if `length` exceeds 32. Clears host bits, as RFC 3442 requires.
    pub fn new(address: Ipv4Addr, length: u8) -> Option<Self> {
        let host_bits = 32_u32.checked_sub(u32::from(length))?;
        let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
        Some(Self { address: Ipv4Addr::from_bits(address.to_bits() & mask), length })
    }

    /// Returns the first address of the network.
    pub fn address(self) -> Ipv4Addr {
        self.address
    }

    /// Returns the prefix length in bits, 0 to 32.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Returns the prefix length as a netmask.
    pub fn netmask(self) -> Ipv4Addr {
        let host_bits = 32 - u32::from(self.length);
        Ipv4Addr::from_bits(u32::MAX.checked_shl(host_bits).unwrap_or(0))
    }

    /// Returns the last address: the broadcast address, if the network has more than two addresses.
    pub fn last(self) -> Ipv4Addr {
        self.address | !self.netmask()
    }

    /// Returns true if the address is in this network.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        address & self.netmask() == self.address
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Parses `192.0.2.0/24`, or RFC 3442's destination descriptor `24.192.0.2` (width, then only the
/// significant octets).
impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        let invalid = || InvalidPrefix(text.chars().take(40).collect());
        if let Some((address, length)) = text.split_once('/') {
            let address = address.parse().map_err(|_| invalid())?;
            let length = length.parse().map_err(|_| invalid())?;
            return Self::new(address, length).ok_or_else(invalid);
        }
        let mut parts = text.split('.').map(str::parse::<u8>);
        let length = parts.next().and_then(Result::ok).ok_or_else(invalid)?;
        let mut octets = [0_u8; 4];
        let mut count = 0;
        for part in parts {
            *octets.get_mut(count).ok_or_else(invalid)? = part.map_err(|_| invalid())?;
            count += 1;
        }
        if count != usize::from(length).div_ceil(8) {
            return Err(invalid());
        }
        Self::new(octets.into(), length).ok_or_else(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::Prefix;

    #[test]
    fn a_prefix_reads_both_spellings() {
        for (text, printed) in [
            ("192.0.2.77/24", "192.0.2.0/24"),
            ("24.192.0.2", "192.0.2.0/24"),
            ("0", "0.0.0.0/0"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("25.192.0.2.128", "192.0.2.128/25"),
            ("32.192.0.2.1", "192.0.2.1/32"),
        ] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), printed, "{text}");
        }
        for text in
            ["", "10.0.0.0/33", "24.192.0", "24.192.0.2.0", "192.0.2.0", "a/8", "33.1.2.3.4.5"]
        {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
