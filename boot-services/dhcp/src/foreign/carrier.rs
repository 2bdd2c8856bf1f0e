//! Link state of an interface, from the kernel (rtnetlink(7), linux/if_link.h).
//!
//! Uses netlink: /sys shows the interfaces of the network namespace in which it was mounted.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use stdx::MacAddr;
use tokio::io::unix::AsyncFd;

use crate::sockets::udp::watched;

const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const NLM_F_REQUEST: u16 = 1;
const RTMGRP_LINK: u32 = 1;
/// Interface flag: up, and with a carrier (linux/if.h).
const IFF_LOWER_UP: u32 = 0x1_0000;
const IFLA_ADDRESS: u16 = 1;
const IFLA_CARRIER_CHANGES: u16 = 35;
/// Mask of an attribute's type; the two high bits are flags.
const NLA_TYPE: u16 = 0x3fff;
const AF_UNSPEC: u8 = 0;

const HEADER: usize = 16;
const INTERFACE_INFO: usize = 16;
/// Receive buffer in bytes; some link messages of current kernels have 2 KiB.
const BUFFER: usize = 32 << 10;

/// Link state of an Ethernet interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub index: u32,
    pub mac: MacAddr,
    pub carrier: bool,
    /// Number of carrier changes since the interface was created.
    pub changes: u32,
}

/// Netlink message about the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkMessage {
    Link(Link),
    /// The interface was removed, was moved to another namespace, or never existed.
    Gone,
}

/// Subscription to link messages of one interface.
pub(crate) struct Monitor {
    socket: AsyncFd<OwnedFd>,
    index: u32,
    buffer: Vec<u8>,
}

impl Monitor {
    /// Subscribes, and requests the current link state, which arrives as the first message.
    pub fn open(index: u32) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // No protocol is protocol 0, which is NETLINK_ROUTE.
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, RTMGRP_LINK))?;
        let monitor = Self { socket: watched(socket)?, index, buffer: vec![0; BUFFER] };
        monitor.request_link()?;
        Ok(monitor)
    }

    /// Returns the current link state. Must be called before the first call of [`Self::next`].
    pub async fn current(&mut self) -> io::Result<Link> {
        match self.next().await? {
            LinkMessage::Link(link) => Ok(link),
            LinkMessage::Gone => Err(rustix::io::Errno::NODEV.into()),
        }
    }

    /// Waits until the interface is removed or the socket fails, and returns the error.
    pub async fn gone(&mut self) -> io::Error {
        loop {
            match self.next().await {
                Ok(LinkMessage::Link(_)) => {}
                Ok(LinkMessage::Gone) => return rustix::io::Errno::NODEV.into(),
                Err(error) => return error,
            }
        }
    }

    /// Waits for the next message about the interface.
    pub async fn next(&mut self) -> io::Result<LinkMessage> {
        loop {
            let mut ready = self.socket.readable().await?;
            let buffer = &mut self.buffer;
            let received = ready
                .try_io(|fd| Ok(rustix::net::recv(fd, &mut buffer[..], RecvFlags::DONTWAIT)?.0));
            match received {
                Ok(Ok(length)) => {
                    if let Some(message) = latest(&self.buffer[..length], self.index) {
                        return Ok(message);
                    }
                }
                // Messages were lost, so the current state is requested again.
                Ok(Err(error)) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.request_link()?
                }
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }

    fn request_link(&self) -> io::Result<()> {
        let length = HEADER + INTERFACE_INFO;
        let mut message = Vec::with_capacity(length);
        message.extend(u32::try_from(length).unwrap_or_default().to_ne_bytes());
        message.extend(RTM_GETLINK.to_ne_bytes());
        message.extend(NLM_F_REQUEST.to_ne_bytes());
        message.extend([0; 8]);
        // ifinfomsg: family, pad, type, index, flags, change.
        message.extend([AF_UNSPEC, 0, 0, 0]);
        message.extend(self.index.to_ne_bytes());
        message.extend([0; 8]);
        rustix::net::send(&self.socket, &message, SendFlags::DONTWAIT)?;
        Ok(())
    }
}

/// Returns the last message about the interface in a batch; `None` if the batch has none.
fn latest(mut batch: &[u8], index: u32) -> Option<LinkMessage> {
    let mut latest = None;
    while let Some(length) = u32_at(batch, 0) {
        let Some(message) = batch.get(..length as usize).filter(|m| m.len() >= HEADER) else {
            break;
        };
        latest = read(message, index).or(latest);
        let aligned = message.len().next_multiple_of(4).min(batch.len());
        batch = &batch[aligned..];
    }
    latest
}

fn read(message: &[u8], index: u32) -> Option<LinkMessage> {
    let kind = u16_at(message, 4)?;
    let body = message.get(HEADER..)?;
    if kind == NLMSG_ERROR {
        // The only request is for this link.
        return u32_at(body, 0).filter(|errno| *errno != 0).map(|_| LinkMessage::Gone);
    }
    // A bridge reports its ports in the same format with its own family. A port that leaves the
    // bridge still exists.
    if *body.first()? != AF_UNSPEC || u32_at(body, 4)? != index {
        return None;
    }
    match kind {
        RTM_DELLINK => Some(LinkMessage::Gone),
        RTM_NEWLINK => {
            let carrier = u32_at(body, 8)? & IFF_LOWER_UP != 0;
            let (mac, changes) = attributes(body.get(INTERFACE_INFO..)?)?;
            Some(LinkMessage::Link(Link { index, mac, carrier, changes }))
        }
        _ => None,
    }
}

/// Returns the MAC address and the number of carrier changes from a message's attributes.
fn attributes(mut rest: &[u8]) -> Option<(MacAddr, u32)> {
    let (mut mac, mut changes) = (None, None);
    while let Some(length) = u16_at(rest, 0) {
        let value = rest.get(4..usize::from(length))?;
        match u16_at(rest, 2)? & NLA_TYPE {
            IFLA_ADDRESS => mac = value.try_into().ok().map(MacAddr),
            IFLA_CARRIER_CHANGES => changes = u32_at(value, 0),
            _ => {}
        }
        let aligned = usize::from(length).next_multiple_of(4).min(rest.len());
        rest = &rest[aligned..];
    }
    Some((mac?, changes?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
