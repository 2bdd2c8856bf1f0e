//! Packet socket for whole Ethernet frames of one interface and one protocol (packet(7)).
//!
//! Packet sockets receive arriving frames and never this machine's own (the kernel passes those
//! only to sockets of all protocols). They work without an IP address, and bypass the firewall.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, SockAddr, SockFilter, Socket, Type};
use stdx::MacAddr;
use tokio::io::unix::AsyncFd;

use crate::sockets::udp::watched;

/// EtherType of frames with IPv4.
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
/// Maximum bytes of a frame that are read; all evaluated fields are well within.
pub(crate) const FRAME_MAX: usize = 2048;

/// Classic BPF instructions (linux/filter.h), with the names of tcpdump's `-d`.
pub(crate) mod bpf {
    use socket2::SockFilter;

    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_HALF_INDEXED: u16 = 0x48;
    const INDEX_IP_HEADER: u16 = 0xb1;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_ANY_BIT: u16 = 0x45;
    const RETURN: u16 = 0x06;
    /// Offset `SKF_AD_OFF + SKF_AD_PKTTYPE`: the kernel's class of the frame's destination.
    const PACKET_TYPE: u32 = 0xffff_f004;
    const FOR_ANOTHER_HOST: u32 = 3;

    /// Adds instructions that drop broadcast frames which the kernel classifies as another host's.
    /// Such a frame had the tag of a VLAN without a device on this interface, so it belongs to
    /// another network. Other frames continue with the next instruction.
    pub fn drop_other_vlans(program: &mut Vec<SockFilter>) {
        program.extend([
            SockFilter::new(LOAD_WORD, 0, 0, PACKET_TYPE),
            SockFilter::new(JUMP_EQUAL, 0, 3, FOR_ANOTHER_HOST),
            SockFilter::new(LOAD_BYTE, 0, 0, 0),
            SockFilter::new(JUMP_ANY_BIT, 0, 1, 1),
            SockFilter::new(RETURN, 0, 0, 0),
        ]);
    }

    /// Adds an instruction that accepts all frames and ends the program.
    pub fn accept_all(program: &mut Vec<SockFilter>) {
        program.push(SockFilter::new(RETURN, 0, 0, u32::MAX));
    }

    /// Adds instructions that accept only IPv4 frames with unfragmented UDP, from port 67, or to
    /// port 67 or 68. They end the program.
    pub fn accept_dhcp(program: &mut Vec<SockFilter>) {
        program.extend([
            SockFilter::new(LOAD_HALF, 0, 0, 12),
            SockFilter::new(JUMP_EQUAL, 0, 11, 0x0800),
            SockFilter::new(LOAD_BYTE, 0, 0, 23),
            SockFilter::new(JUMP_EQUAL, 0, 9, 17),
            SockFilter::new(LOAD_HALF, 0, 0, 20),
            SockFilter::new(JUMP_ANY_BIT, 7, 0, 0x1fff),
            SockFilter::new(INDEX_IP_HEADER, 0, 0, 14),
            SockFilter::new(LOAD_HALF_INDEXED, 0, 0, 14),
            SockFilter::new(JUMP_EQUAL, 3, 0, 67),
            SockFilter::new(LOAD_HALF_INDEXED, 0, 0, 16),
            SockFilter::new(JUMP_EQUAL, 1, 0, 67),
            SockFilter::new(JUMP_EQUAL, 0, 1, 68),
            SockFilter::new(RETURN, 0, 0, u32::MAX),
            SockFilter::new(RETURN, 0, 0, 0),
        ]);
    }
}

/// Packet socket on one interface.
pub(crate) struct PacketSocket {
    socket: AsyncFd<OwnedFd>,
}

impl PacketSocket {
    /// Opens a socket for frames of `ethertype` that pass `filter`. Needs `CAP_NET_RAW` and tokio.
    pub fn open(index: u32, ethertype: u16, filter: &[SockFilter]) -> io::Result<Self> {
        // Protocol 0 until the bind, so that no frame arrives before the filter is set.
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), None)?;
        socket.attach_filter(filter)?;
        socket.bind(&link_address(index, ethertype, None)?)?;
        Ok(Self { socket: watched(socket.into())? })
    }

    /// Makes the interface receive frames to `mac` besides its own, while this socket is open.
    #[allow(unsafe_code)]
    pub fn join(&self, index: u32, mac: MacAddr) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let mut mr_address = [0; 8];
        mr_address[..6].copy_from_slice(&mac.0);
        let request = libc::packet_mreq {
            mr_ifindex: i32::try_from(index).map_err(invalid)?,
            mr_type: u16::try_from(libc::PACKET_MR_UNICAST).map_err(invalid)?,
            mr_alen: 6,
            mr_address,
        };
        // SAFETY: the kernel reads one packet_mreq, which lives until the call is over, and its
        // length is given; the descriptor is open for as long as `self`.
        let result = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of::<libc::packet_mreq>() as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for a frame, writes it to `buffer` and returns its length.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.socket.readable().await?;
            let received =
                ready.try_io(|fd| Ok(rustix::net::recv(fd, &mut *buffer, RecvFlags::DONTWAIT)?.0));
            match received {
                // The kernel reports an interface that goes down once; the interface may come back.
                Ok(Err(error)) if error.kind() == io::ErrorKind::NetworkDown => {}
                Ok(result) => return result,
                Err(_would_block) => {}
            }
        }
    }

    /// Sends a whole Ethernet frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        Ok(rustix::net::send(&self.socket, frame, SendFlags::DONTWAIT).map(|_| ())?)
    }
}

/// Returns the socket address of one station on an interface, or of all stations, for one protocol.
#[allow(unsafe_code)]
pub(crate) fn link_address(
    index: u32,
    ethertype: u16,
    station: Option<MacAddr>,
) -> io::Result<SockAddr> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let mut sll_addr = [0; 8];
    if let Some(mac) = station {
        sll_addr[..6].copy_from_slice(&mac.0);
    }
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).map_err(invalid)?,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: i32::try_from(index).map_err(invalid)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: if station.is_some() { 6 } else { 0 },
        sll_addr,
    };
    // SAFETY: `storage` is a zeroed sockaddr_storage, larger than and aligned for any socket
    // address; the closure writes one whole sockaddr_ll, whose family is set, and its length.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            storage.cast::<libc::sockaddr_ll>().write(address);
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}
