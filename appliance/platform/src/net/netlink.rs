//! Changes of interfaces, addresses and routes (rtnetlink(7)). The kernel acknowledges each
//! request.

use std::net::{IpAddr, Ipv4Addr};

use futures_util::TryStreamExt as _;
use rtnetlink::packet_core::ErrorMessage;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::packet_route::route::RouteProtocol;
use rtnetlink::{Handle, LinkUnspec, LinkVlan, RouteMessageBuilder};

use super::link::Link;
use crate::Error;

/// Netlink connection to the kernel, closed on drop.
pub(super) struct Netlink(pub(super) Handle);

impl Netlink {
    /// Opens the connection. The caller must run in a Tokio runtime.
    pub(super) fn open() -> Result<Self, Error> {
        let (connection, handle, _) =
            rtnetlink::new_connection().map_err(Error::io("open a netlink socket"))?;
        tokio::spawn(connection);
        Ok(Self(handle))
    }

    pub(super) async fn up(&self, index: u32) -> Result<(), Error> {
        let link = LinkUnspec::new_with_index(index).up().build();
        self.0.link().set(link).execute().await.map_err(Error::netlink("bring a link up"))
    }

    pub(super) async fn down(&self, link: &Link) -> Result<(), Error> {
        let what = Error::netlink(format!("bring {} down", link.name));
        let link = LinkUnspec::new_with_index(link.index).down().build();
        self.0.link().set(link).execute().await.map_err(what)
    }

    /// Returns the index of the interface of VLAN `id` over `parent`. Creates a missing interface.
    pub(super) async fn vlan(&self, name: &str, parent: u32, id: u16) -> Result<u32, Error> {
        self.make(vlan(name, parent, id), name).await
    }

    /// Returns the index of the interface `name`. Creates a missing interface with `message`.
    pub(super) async fn make(&self, message: LinkMessage, name: &str) -> Result<u32, Error> {
        match self.0.link().add(message).execute().await {
            Err(error) if !is(&error, libc::EEXIST) => {
                return Err(Error::netlink(format!("create the interface {name}"))(error));
            }
            Ok(()) | Err(_) => {}
        }
        let find = Error::netlink(format!("find the interface {name}"));
        let found = self.0.link().get().match_name(name).execute().try_next().await;
        let found = found.map_err(find)?;
        found.map(|link| link.header.index).ok_or_else(|| Error::NoAddress {
            reason: format!("the interface {name} disappeared after its creation"),
        })
    }

    /// Sends `message`, which changes the interface `name`.
    pub(super) async fn change(&self, message: LinkMessage, name: &str) -> Result<(), Error> {
        let what = Error::netlink(format!("change the interface {name}"));
        self.0.link().change(message).execute().await.map_err(what)
    }

    /// Deletes a virtual interface, such as a bond.
    pub(super) async fn remove(&self, link: &Link) -> Result<(), Error> {
        let what = Error::netlink(format!("remove the interface {}", link.name));
        self.0.link().del(link.index).execute().await.map_err(what)
    }

    /// Adds an address to an interface. Succeeds if the interface already has the address.
    pub(super) async fn add_address(
        &self,
        index: u32,
        (address, prefix): (Ipv4Addr, u8),
    ) -> Result<(), rtnetlink::Error> {
        self.0.address().add(index, IpAddr::V4(address), prefix).replace().execute().await
    }

    /// Adds an address of one host with a label (`IFA_LABEL`). Succeeds if the interface already
    /// has the address.
    pub(super) async fn add_labeled(
        &self,
        index: u32,
        address: Ipv4Addr,
        label: &str,
    ) -> Result<(), rtnetlink::Error> {
        let mut request = self.0.address().add(index, IpAddr::V4(address), 32).replace();
        request.message_mut().attributes.push(AddressAttribute::Label(label.to_owned()));
        request.execute().await
    }

    pub(super) async fn remove_address(
        &self,
        index: u32,
        address: (Ipv4Addr, u8),
    ) -> Result<(), rtnetlink::Error> {
        let message = rtnetlink::AddressMessageBuilder::<Ipv4Addr>::new()
            .index(index)
            .address(address.0, address.1)
            .build();
        self.0.address().del(message).execute().await
    }

    /// Sets the default route to `gateway`.
    pub(super) async fn set_default_route(
        &self,
        index: u32,
        gateway: Ipv4Addr,
    ) -> Result<(), rtnetlink::Error> {
        let route = RouteMessageBuilder::<Ipv4Addr>::new()
            .output_interface(index)
            .gateway(gateway)
            .protocol(RouteProtocol::Dhcp)
            .build();
        self.0.route().add(route).replace().execute().await
    }
}

/// Returns the message that creates the interface of VLAN `id` over `parent`.
pub(super) fn vlan(name: &str, parent: u32, id: u16) -> LinkMessage {
    LinkVlan::new(name, parent, id).up().build()
}

fn is(error: &rtnetlink::Error, errno: i32) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(ErrorMessage { code: Some(code), .. })
        if code.get() == -errno)
}
