//! UDP and packet sockets of one interface, and the frames for packet sockets.

pub(crate) mod frame;
pub(crate) mod packet;
pub(crate) mod udp;
