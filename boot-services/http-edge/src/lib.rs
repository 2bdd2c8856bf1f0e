//! Limits for HTTP listeners: fair shares of connections, bytes and time for each client, and an
//! end to bytes that no handler requested.
//!
//! Each limit applies to a [`Network`]: an IPv4 address, or the /64 of an IPv6 address, which one
//! machine has to itself.
//!
//! A [`Tunnel`] lets clients reach this server by a name that they cannot resolve.
//!
//! The crate must never: parse a request, identify a client, or connect to another host. Enter at
//! [`Connections::enter`], [`Lanes::enter`], [`Bodies::limit`], [`Proof`] and [`Tunnel::answer`].

mod bodies;
mod connections;
mod lanes;
mod proof;
mod tunnel;

use std::net::{IpAddr, Ipv6Addr};

pub use bodies::{Bodies, BodyError, BodyLimits, Limited};
pub use connections::{Connections, Limits, Place};
pub use lanes::Lanes;
pub use proof::Proof;
pub use tunnel::Tunnel;

/// Prefix length of an IPv6 address that identifies a machine.
const IPV6_NETWORK: u32 = 64;

/// Client addresses that share one limit: an IPv4 address, or an IPv6 /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(IpAddr);

impl Network {
    /// Returns the network of an address; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let mask = u128::MAX << (Ipv6Addr::BITS - IPV6_NETWORK);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
            address => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn addresses_of_one_machine_are_one_network() {
        let of = |address: &str| Network::of(address.parse().unwrap());
        assert_eq!(of("fd77::1"), of("fd77::ffff:0:0:1"));
        assert_ne!(of("fd77::1"), of("fd77:0:0:1::1"));
        assert_eq!(of("10.77.0.1"), of("::ffff:10.77.0.1"));
        assert_ne!(of("10.77.0.1"), of("10.77.0.2"));
    }
}
