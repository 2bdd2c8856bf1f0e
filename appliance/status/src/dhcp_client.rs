//! DHCP clients of the last hour, each with its answer (NW-9): why a machine has no address.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stdx::MacAddr;

/// DHCP client in the response to a GET of `/apis/tinbox.dev/v1alpha1/heard`; the list is sorted by
/// time, latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DhcpClient {
    /// MAC address of the client.
    pub mac: MacAddr,
    /// `namespace/name` of the client's Hardware; empty for an unknown machine.
    #[serde(default)]
    pub hardware: String,
    /// Time of the latest request; to the minute for a client without Hardware.
    pub asked: Timestamp,
    /// Answer, or the reason for none: `offered 10.77.0.11`, `not answered: …`.
    pub decision: String,
}
