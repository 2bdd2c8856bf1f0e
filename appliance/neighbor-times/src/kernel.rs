//! Neighbor table of the kernel (rtnetlink(7), `RTM_GETNEIGH`), and datagrams that refresh it.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use rtnetlink::Handle;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress as Address, NeighbourAttribute as Attribute, NeighbourMessage as Message,
    NeighbourState as State,
};
use stdx::MacAddr;

/// UDP port `discard` (RFC 863): no program expects a datagram there.
const DISCARD: u16 = 9;
/// Clock ticks per second of the times in `struct nda_cacheinfo` (`USER_HZ`).
const TICKS: u64 = 100;

/// Reason why the answers of machines are unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No socket could be opened.
    #[error("cannot open a socket for {0}")]
    Socket(&'static str, #[source] io::Error),
    /// The kernel did not return the neighbor table.
    #[error("cannot read the neighbor table of the kernel")]
    Table(#[source] Box<rtnetlink::Error>),
}

/// Neighbor that has answered lately, in the state `NUD_REACHABLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbor {
    pub address: Ipv4Addr,
    pub mac: MacAddr,
    /// Time since the last answer.
    pub confirmed: Duration,
}

/// Connection to the kernel, closed when dropped.
pub struct Table(Handle);

impl Table {
    pub fn open() -> Result<Self, Error> {
        let opened = rtnetlink::new_connection();
        let (connection, handle, _) =
            opened.map_err(|error| Error::Socket("the neighbor table", error))?;
        tokio::spawn(connection);
        Ok(Self(handle))
    }

    pub async fn neighbors(&self) -> Result<Vec<Neighbor>, Error> {
        let dump = self.0.neighbours().get().set_address_family(AddressFamily::Inet).execute();
        let found = dump.try_filter_map(async |message| Ok(neighbor(&message)));
        found.try_collect().await.map_err(|error| Error::Table(Box::new(error)))
    }
}

/// Sends an empty datagram to each address, so that the kernel sends ARP requests. Errors of single
/// addresses are normal: a machine that is off has no entry in the table.
pub fn probe(addresses: &[Ipv4Addr]) -> Result<(), Error> {
    let opened = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
    let socket = opened.map_err(|error| Error::Socket("datagrams to machines", error))?;
    socket.set_nonblocking(true).map_err(|error| Error::Socket("datagrams to machines", error))?;
    for address in addresses {
        if let Err(error) = socket.send_to(&[], (*address, DISCARD)) {
            tracing::debug!(%address, %error, "no datagram sent");
        }
    }
    Ok(())
}

fn neighbor(message: &Message) -> Option<Neighbor> {
    if message.header.state != State::Reachable {
        return None;
    }
    let (mut address, mut mac, mut confirmed) = (None, None, None);
    for attribute in &message.attributes {
        match attribute {
            Attribute::Destination(Address::Inet(it)) => address = Some(*it),
            Attribute::LinkLayerAddress(bytes) => {
                mac = bytes.as_slice().try_into().ok().map(MacAddr);
            }
            Attribute::CacheInfo(info) => {
                let millis = u64::from(info.confirmed) * 1000 / TICKS;
                confirmed = Some(Duration::from_millis(millis));
            }
            _ => {}
        }
    }
    Some(Neighbor { address: address?, mac: mac?, confirmed: confirmed? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(state: State) -> Message {
        let mut message = Message::default();
        message.header.state = state;
        let address = Address::Inet(Ipv4Addr::new(10, 77, 0, 11));
        // `struct nda_cacheinfo` of the kernel: confirmed, used, updated, references.
        let times = [250_u32, 9, 7, 1].map(u32::to_ne_bytes).concat();
        let times = rtnetlink::packet_route::neighbour::NeighbourCacheInfo::parse(&times).unwrap();
        message.attributes = vec![
            Attribute::Destination(address),
            Attribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 1]),
            Attribute::CacheInfo(times),
        ];
        message
    }

    #[test]
    fn only_a_neighbor_that_has_answered_lately_counts() {
        let found = neighbor(&message(State::Reachable)).unwrap();
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let (address, confirmed) = (Ipv4Addr::new(10, 77, 0, 11), Duration::from_millis(2500));
        assert_eq!(found, Neighbor { address, mac, confirmed });
        for state in [State::Stale, State::Failed, State::Permanent] {
            assert_eq!(neighbor(&message(state)), None, "{state:?}");
        }
        let mut without_mac = message(State::Reachable);
        without_mac.attributes.remove(1);
        assert_eq!(neighbor(&without_mac), None);
    }
}
