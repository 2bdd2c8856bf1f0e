//! List of machines that sent DHCP requests in the last hour, each with the last decision of the
//! DHCP server (NW-9).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhcp::DhcpEvent;
use jiff::{SignedDuration, Timestamp};
use stdx::MacAddr;

/// Time after its last request for which a machine stays in the list.
const KEPT: SignedDuration = SignedDuration::from_hours(1);
/// Maximum number of machines. For a further machine, the entry with the oldest request is removed.
const MACHINES_MAX: usize = 1024;

/// Last request of each DHCP client, by hardware address.
#[derive(Default)]
pub struct DhcpRequests(Mutex<HashMap<MacAddr, LastRequest>>);

/// Last request of a DHCP client, with the server's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRequest {
    /// Time of the last request.
    pub at: Timestamp,
    /// Decision as a phrase, such as `offered 10.77.0.11`.
    pub decision: String,
}

/// Effect of a DHCP event on the list.
#[derive(Debug, PartialEq, Eq)]
enum ListChange {
    /// New request of a machine, with a preliminary decision.
    Requested(MacAddr, String),
    /// Decision about the last request of a machine.
    Answered(MacAddr, String),
}

impl DhcpRequests {
    /// Updates the list with a DHCP event at the time `now`.
    pub fn note(&self, event: &DhcpEvent, now: Timestamp) {
        let mut machines = self.machines();
        match news(event) {
            Some(ListChange::Requested(mac, decision)) => {
                machines.insert(mac, LastRequest { at: now, decision });
                if machines.len() > MACHINES_MAX
                    && let Some(eldest) = machines.iter().min_by_key(|(_, it)| it.at)
                {
                    let eldest = *eldest.0;
                    machines.remove(&eldest);
                }
            }
            Some(ListChange::Answered(mac, decision)) => {
                if let Some(asked) = machines.get_mut(&mac) {
                    asked.decision = decision;
                }
            }
            None => {}
        }
    }

    /// Returns the clients of the hour before `now`, newest request first.
    pub fn list(&self, now: Timestamp) -> Vec<(MacAddr, LastRequest)> {
        let mut machines = self.machines();
        machines.retain(|_, asked| now.duration_since(asked.at) < KEPT);
        let mut list: Vec<_> = machines.iter().map(|(mac, asked)| (*mac, asked.clone())).collect();
        list.sort_by_key(|(mac, asked)| (std::cmp::Reverse(asked.at), mac.0));
        list
    }

    fn machines(&self) -> MutexGuard<'_, HashMap<MacAddr, LastRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn news(event: &DhcpEvent) -> Option<ListChange> {
    Some(match event {
        DhcpEvent::Discover { mac, .. } => {
            ListChange::Requested(*mac, "not answered yet".to_owned())
        }
        DhcpEvent::UnknownMac { mac, drop_reason: None, .. } => {
            ListChange::Requested(*mac, "not answered yet".to_owned())
        }
        DhcpEvent::UnknownMac { mac, drop_reason: Some(why), .. } => {
            ListChange::Requested(*mac, format!("not answered: {why}"))
        }
        // With another DHCP server on the network, the offer contains boot options only.
        DhcpEvent::Offered { mac, address } if address.is_unspecified() => {
            ListChange::Answered(*mac, "received the boot file".to_owned())
        }
        DhcpEvent::Offered { mac, address } => {
            ListChange::Answered(*mac, format!("offered {address}"))
        }
        DhcpEvent::Acked { mac, address, .. } if address.is_unspecified() => {
            ListChange::Answered(*mac, "received the boot file".to_owned())
        }
        DhcpEvent::Acked { mac, address, .. } => {
            ListChange::Answered(*mac, format!("has {address}"))
        }
        DhcpEvent::Refused { mac, reason } => {
            ListChange::Answered(*mac, format!("refused: {reason}"))
        }
        DhcpEvent::Ignored { mac, reason } => {
            ListChange::Answered(*mac, format!("not answered: {reason}"))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use dhcp::{DhcpEvent, DropReason, Stage};
    use jiff::{SignedDuration, Timestamp};
    use stdx::MacAddr;

    use super::{DhcpRequests, KEPT, MACHINES_MAX};

    const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
    const STRANGER: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 9]);

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    fn unknown_machine(mac: MacAddr) -> DhcpEvent {
        DhcpEvent::UnknownMac {
            mac,
            vendor_class: None,
            arch: None,
            drop_reason: Some(DropReason::Unknown),
        }
    }

    #[test]
    fn everybody_who_asked_within_the_hour_stands_with_the_last_word() {
        let list = DhcpRequests::default();
        let address = Ipv4Addr::new(10, 77, 0, 11);
        list.note(&DhcpEvent::Acked { mac: MAC, address, file: None }, at(0));
        assert_eq!(list.list(at(0)), [], "a renewal is no question");
        list.note(&DhcpEvent::Discover { mac: MAC, stage: Stage::Pxe }, at(1));
        list.note(&unknown_machine(STRANGER), at(2));
        list.note(&DhcpEvent::Offered { mac: MAC, address }, at(3));
        let words = |now| -> Vec<(MacAddr, String)> {
            list.list(now).into_iter().map(|(mac, asked)| (mac, asked.decision)).collect()
        };
        let unknown = "not answered: no Hardware has this MAC address; enroll it?".to_owned();
        let offered = (MAC, "offered 10.77.0.11".to_owned());
        assert_eq!(words(at(3)), [(STRANGER, unknown.clone()), offered]);
        list.note(&DhcpEvent::Ignored { mac: MAC, reason: DropReason::Held }, at(4));
        assert!(words(at(4))[1].1.starts_with("not answered: DHCP is held"));
        assert_eq!(words(at(1) + KEPT), [(STRANGER, unknown)]);
        assert_eq!(words(at(2) + KEPT), []);
    }

    #[test]
    fn invented_addresses_push_out_the_eldest_and_no_more() {
        let list = DhcpRequests::default();
        for number in 0..u16::try_from(MACHINES_MAX + 10).unwrap() {
            let [high, low] = number.to_be_bytes();
            list.note(&unknown_machine(MacAddr([2, 0, 0, 0, high, low])), at(number.into()));
        }
        let kept = list.list(at(0));
        assert_eq!(kept.len(), MACHINES_MAX);
        assert_eq!(kept.last().unwrap().0, MacAddr([2, 0, 0, 0, 0, 10]));
    }
}
