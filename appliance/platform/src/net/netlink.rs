//! Changes of links, addresses and routes (rtnetlink(7)), each an answered request.

use std::net::{IpAddr, Ipv4Addr};

use futures_util::TryStreamExt as _;
use rtnetlink::packet_core::ErrorMessage;
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::packet_route::route::RouteProtocol;
use rtnetlink::{Handle, LinkUnspec, LinkVlan, RouteMessageBuilder};

use super::link::Link;
use crate::Error;

/// A conversation with the kernel; it ends when this is dropped.
pub(super) struct Netlink(pub(super) Handle);

impl Netlink {
    /// Begin; needs a runtime.
    pub(super) fn open() -> Result<Self, Error> {
        let (connection, handle, _) =
            rtnetlink::new_connection().map_err(Error::io("open a netlink socket"))?;
        tokio::spawn(connection);
        Ok(Self(handle))
    }

    /// Bring a link up.
    pub(super) async fn up(&self, index: u32) -> Result<(), Error> {
        let link = LinkUnspec::new_with_index(index).up().build();
        self.0.link().set(link).execute().await.map_err(Error::netlink("bring a link up"))
    }

    /// Bring a link down.
    pub(super) async fn down(&self, link: &Link) -> Result<(), Error> {
        let what = Error::netlink(format!("bring {} down", link.name));
        let link = LinkUnspec::new_with_index(link.index).down().build();
        self.0.link().set(link).execute().await.map_err(what)
    }

    /// The index of the interface of VLAN `id` over `parent`, made where it is not there yet.
    pub(super) async fn vlan(&self, name: &str, parent: u32, id: u16) -> Result<u32, Error> {
        self.make(vlan(name, parent, id), name).await
    }

    /// The index of the interface `name` that `message` makes, where it is not there yet.
    pub(super) async fn make(&self, message: LinkMessage, name: &str) -> Result<u32, Error> {
        match self.0.link().add(message).execute().await {
            Err(error) if !is(&error, libc::EEXIST) => {
                return Err(Error::netlink(format!("make the interface {name}"))(error));
            }
            Ok(()) | Err(_) => {}
        }
        let find = Error::netlink(format!("find the interface {name}"));
        let found = self.0.link().get().match_name(name).execute().try_next().await;
        let found = found.map_err(find)?;
        found.map(|link| link.header.index).ok_or_else(|| Error::NoAddress {
            reason: format!("the interface {name} is gone as soon as it was made"),
        })
    }

    /// Change the interface `name` as `message` says.
    pub(super) async fn change(&self, message: LinkMessage, name: &str) -> Result<(), Error> {
        let what = Error::netlink(format!("change the interface {name}"));
        self.0.link().change(message).execute().await.map_err(what)
    }

    /// Take an interface away that was made.
    pub(super) async fn remove(&self, link: &Link) -> Result<(), Error> {
        let what = Error::netlink(format!("take the interface {} away", link.name));
        self.0.link().del(link.index).execute().await.map_err(what)
    }

    /// Give a link an address, or let it keep it.
    pub(super) async fn add_address(
        &self,
        index: u32,
        (address, prefix): (Ipv4Addr, u8),
    ) -> Result<(), rtnetlink::Error> {
        self.0.address().add(index, IpAddr::V4(address), prefix).replace().execute().await
    }

    /// Take an address away.
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

    /// Send what is for nobody near to `gateway`.
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

/// What makes the interface of VLAN `id` over `parent`.
pub(super) fn vlan(name: &str, parent: u32, id: u16) -> LinkMessage {
    LinkVlan::new(name, parent, id).up().build()
}

fn is(error: &rtnetlink::Error, errno: i32) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(ErrorMessage { code: Some(code), .. })
        if code.get() == -errno)
}
