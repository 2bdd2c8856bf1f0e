//! Static addresses of a machine as a kernel argument.

use std::net::Ipv4Addr;

use stdx::MacAddr;

/// Static addresses for a machine without DHCP: the kernel argument `ipam=` of HookOS, in Smee's
/// format. A missing field stays empty between its colons.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ipam {
    /// VLAN ID; `None` for an untagged network.
    pub vlan_id: Option<String>,
    /// IPv4 address of the machine.
    pub address: Option<Ipv4Addr>,
    /// Network mask, such as 255.255.255.0.
    pub netmask: Option<Ipv4Addr>,
    /// IPv4 address of the default gateway.
    pub gateway: Option<Ipv4Addr>,
    /// Host name; `:` and unprintable characters are removed.
    pub hostname: String,
    /// Addresses of DNS servers, in order of preference.
    pub name_servers: Vec<Ipv4Addr>,
    /// DNS search domains of the machine.
    pub search: Vec<String>,
    /// Addresses of NTP servers, in order of preference.
    pub time_servers: Vec<Ipv4Addr>,
}

impl Ipam {
    /// Returns the kernel argument: nine fields, separated by eight colons.
    pub fn argument(&self, mac: MacAddr) -> String {
        fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
            let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
            items.join(",")
        }
        // A colon inside a field would start the next field.
        let plain = |text: &str| {
            text.chars().filter(|c| *c != ':' && c.is_ascii_graphic()).collect::<String>()
        };
        let fields = [
            mac.dashed(),
            plain(self.vlan_id.as_deref().unwrap_or_default()),
            list(self.address),
            list(self.netmask),
            list(self.gateway),
            plain(&self.hostname),
            list(&self.name_servers),
            list(self.search.iter().map(|domain| plain(domain))),
            list(&self.time_servers),
        ];
        format!("ipam={}", fields.join(":"))
    }
}
