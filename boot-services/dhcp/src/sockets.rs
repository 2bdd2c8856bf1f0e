//! UDP and packet sockets of one interface, and the frames that they carry.

pub(crate) mod frame;
pub(crate) mod packet;
pub(crate) mod udp;
