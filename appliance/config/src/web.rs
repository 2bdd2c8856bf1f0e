//! `[web]`: web pages of `tinboxd` on a Linux host.

use std::net::SocketAddr;

use serde::Deserialize;

/// Error text for a flashed box, which refuses `[web]`.
pub const NOT_HERE: &str = "web: a flashed box serves its pages on port 443 of every address; \
                            remove this section";

/// Web pages of the box.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Required. Address and TCP port on which the pages are served over HTTPS.
    pub listen: SocketAddr,
}

impl Web {
    /// Returns the address for the box's certificate; `None` if the pages listen on all addresses.
    pub fn name(&self) -> Option<String> {
        let ip = self.listen.ip();
        (!ip.is_unspecified()).then(|| ip.to_string())
    }
}
