//! Boot options of an answer.

use std::net::Ipv4Addr;

/// Boot options of an OFFER or ACK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Boot {
    /// Adds no boot options.
    Nothing,
    /// TFTP from the box: `siaddr` and `file`; option 60 `PXEClient` and 43.6 = 8.
    Tftp { server: Ipv4Addr, file: String },
    /// UEFI HTTP Boot: option 60 `HTTPClient` and the URL.
    Http { url: String },
    /// Script for iPXE: its URL, and the flag that no ProxyDHCP offer follows.
    Script { url: String },
    /// No file for iPXE, so that it continues with the next boot device, without a wait for
    /// ProxyDHCP.
    Exit,
    /// The values of the hardware record, unchanged (options 66 and 67, `file`).
    Fixed { server: Option<String>, file: Option<String> },
}

impl Boot {
    /// Returns the name or URL of the file that the client loads; `None` if there is none.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Nothing | Self::Exit => None,
            Self::Tftp { file, .. } => Some(file),
            Self::Http { url } | Self::Script { url } => Some(url),
            Self::Fixed { file, .. } => file.as_deref(),
        }
    }
}
