//! DHCPv4 messages: requests as checked bytes and then as values, answers as bytes.

pub(crate) mod boot;
pub(crate) mod client;
pub(crate) mod options;
#[cfg(test)]
pub(crate) mod oracle;
pub(crate) mod reply;
pub(crate) mod request;
