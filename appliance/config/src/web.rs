//! `[web]`: the pages of a box that is a guest on somebody's system.

use std::net::SocketAddr;

use serde::Deserialize;

/// Why a flashed box takes none of this.
pub const NOT_HERE: &str = "web: a box that was flashed serves its pages on port 443 of every \
                            address; leave this section out";

/// The pages for people.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Where they are served, over HTTPS.
    pub listen: SocketAddr,
}

impl Web {
    /// What the box's certificate has to say for it.
    pub fn name(&self) -> Option<String> {
        let ip = self.listen.ip();
        (!ip.is_unspecified()).then(|| ip.to_string())
    }
}
