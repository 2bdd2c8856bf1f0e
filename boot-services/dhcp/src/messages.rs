//! DHCPv4 messages: decodes requests, encodes answers.

pub(crate) mod boot;
pub(crate) mod client;
pub(crate) mod options;
#[cfg(test)]
pub(crate) mod oracle;
pub(crate) mod reply;
pub(crate) mod request;
