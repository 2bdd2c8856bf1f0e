//! Management controllers that a scan found.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::asf::{AmtPong, Pong};
use crate::ipmi;
use crate::ssdp::RedfishService;

/// Protocol of a management controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolKind {
    /// Intel AMT with TLS, on port 16993.
    AmtTls,
    /// Intel AMT without TLS, on port 16992.
    AmtPlain,
    /// Redfish over HTTP or HTTPS.
    Redfish,
    /// IPMI over LAN, on port 623.
    Ipmi,
}

/// Management controller on a segment of the box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredBmc {
    /// Address from which the answers came.
    pub address: Ipv4Addr,
    /// MAC of the address by ARP, in lower case; empty if unknown.
    #[serde(default)]
    pub mac: String,
    /// Protocols that answered, best first.
    pub protocols: Vec<ProtocolKind>,
    /// Possible UUIDs of the machine, in lower case. An IPMI GUID has three readings.
    #[serde(default)]
    pub uuids: Vec<String>,
    /// Description for display: `Intel AMT 12.0, provisioned`.
    pub description: String,
}

/// Answers of one address during a scan.
#[derive(Debug, Default)]
pub struct Answers {
    pub pong: Option<Pong>,
    pub guid: Option<[u8; 16]>,
    pub redfish: Option<RedfishService>,
    pub has_amt_tls: bool,
    /// Header `Server` of WS-Management without TLS.
    pub amt_server: Option<String>,
}

impl Answers {
    /// Returns the management controller at `address`; `None` if nothing identifies one. IANA
    /// assigned port 16993 to AMT with TLS, so an open port is evidence.
    pub fn bmc(&self, address: Ipv4Addr, mac: &str) -> Option<DiscoveredBmc> {
        let amt = self.pong.and_then(|pong| pong.amt);
        let is_amt = amt.is_some() || self.amt_server.is_some() || self.has_amt_tls;
        let has_tls = self.has_amt_tls || amt.is_some_and(|amt| amt.port == 16993);
        let has_plain = self.amt_server.is_some() || amt.is_some_and(|amt| amt.port == 16992);
        let has_ipmi = self.guid.is_some() || self.pong.is_some_and(|pong| pong.has_ipmi);
        let protocols: Vec<ProtocolKind> = [
            (ProtocolKind::AmtTls, is_amt && has_tls),
            (ProtocolKind::AmtPlain, is_amt && has_plain),
            (ProtocolKind::Redfish, self.redfish.is_some()),
            (ProtocolKind::Ipmi, has_ipmi && amt.is_none()),
        ]
        .into_iter()
        .filter_map(|(protocol, is_there)| is_there.then_some(protocol))
        .collect();
        if protocols.is_empty() {
            return None;
        }
        let mut uuids: Vec<String> = self.redfish.iter().map(|it| it.uuid.clone()).collect();
        uuids.extend(self.guid.map(ipmi::uuids).into_iter().flatten());
        let description = self.description(amt, has_ipmi);
        Some(DiscoveredBmc { address, mac: mac.to_owned(), protocols, uuids, description })
    }

    fn description(&self, amt: Option<AmtPong>, has_ipmi: bool) -> String {
        let mut parts = Vec::new();
        match (&self.amt_server, amt) {
            (Some(server), _) => parts.push(server.clone()),
            (None, Some(AmtPong { version: (major, minor), is_provisioned, .. })) => {
                let state = if is_provisioned { "provisioned" } else { "not provisioned" };
                // The field of the major number has four bits.
                let version = if major < 15 { format!(" {major}.{minor}") } else { String::new() };
                parts.push(format!("Intel AMT{version}, {state}"));
            }
            (None, None) if self.has_amt_tls => parts.push("port 16993 of Intel AMT".to_owned()),
            (None, None) => {}
        }
        parts.extend(self.redfish.as_ref().map(|service| format!("Redfish at {}", service.url)));
        if has_ipmi && amt.is_none() {
            parts.push("IPMI".to_owned());
        }
        parts.join(", ")
    }
}

/// Answers by address. The number of addresses is limited.
#[derive(Debug, Default)]
pub struct AnswerTable(BTreeMap<Ipv4Addr, Answers>);

impl AnswerTable {
    /// Maximum number of addresses; a scanned segment has at most 254.
    const ADDRESSES_MAX: usize = 4096;

    /// Returns the answers of an address, or `None` if the table is full.
    pub fn at(&mut self, address: Ipv4Addr) -> Option<&mut Answers> {
        if self.0.len() >= Self::ADDRESSES_MAX && !self.0.contains_key(&address) {
            return None;
        }
        Some(self.0.entry(address).or_default())
    }

    /// Returns the addresses that `wanted` selects.
    pub fn select(&self, wanted: impl Fn(&Answers) -> bool) -> Vec<Ipv4Addr> {
        self.0.iter().filter(|(_, it)| wanted(it)).map(|(address, _)| *address).collect()
    }

    /// Returns all management controllers, by address. `mac` returns the MAC of an address.
    pub fn bmcs(&self, mac: impl Fn(Ipv4Addr) -> String) -> Vec<DiscoveredBmc> {
        self.0.iter().filter_map(|(address, it)| it.bmc(*address, &mac(*address))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{Answers, ProtocolKind};
    use crate::asf::{AmtPong, Pong};
    use crate::ssdp::RedfishService;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    #[test]
    fn an_address_without_evidence_is_not_a_bmc() {
        assert_eq!(Answers::default().bmc(ADDRESS, ""), None);
        let pong = Some(Pong { has_ipmi: false, amt: None });
        assert_eq!(Answers { pong, ..Answers::default() }.bmc(ADDRESS, ""), None);
    }

    #[test]
    fn amt_is_not_offered_as_ipmi() {
        let amt = AmtPong { port: 16992, version: (11, 8), is_provisioned: true };
        let pong = Some(Pong { has_ipmi: true, amt: Some(amt) });
        let answers = Answers { pong, has_amt_tls: true, ..Answers::default() };
        let bmc = answers.bmc(ADDRESS, "").unwrap();
        assert_eq!(bmc.protocols, [ProtocolKind::AmtTls, ProtocolKind::AmtPlain]);
        assert_eq!(bmc.description, "Intel AMT 11.8, provisioned");
    }

    #[test]
    fn a_server_has_two_protocols() {
        let redfish = RedfishService {
            uuid: "92384634-2938-2342-8820-489239905423".into(),
            url: "https://10.0.0.9/redfish/v1/".into(),
        };
        let guid = Some([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let answers = Answers { redfish: Some(redfish), guid, ..Answers::default() };
        let bmc = answers.bmc(ADDRESS, "52:54:00:00:00:01").unwrap();
        assert_eq!(bmc.protocols, [ProtocolKind::Redfish, ProtocolKind::Ipmi]);
        assert_eq!(bmc.uuids.len(), 4);
        assert_eq!(bmc.description, "Redfish at https://10.0.0.9/redfish/v1/, IPMI");
    }
}
