//! DHCP clients of the last hour and the answer each got (NW-9), so that the reason for a missing
//! address is visible.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stdx::MacAddr;

/// A DHCP client in the list that the API serves, latest first. Path of the API:
/// `/apis/tinbox.dev/v1alpha1/heard`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DhcpClient {
    /// MAC address of the client.
    pub mac: MacAddr,
    /// `namespace/name` of its Hardware; empty when it has none.
    #[serde(default)]
    pub hardware: String,
    /// Time of the latest request; without Hardware, to the minute.
    pub asked: Timestamp,
    /// Answer, or the reason for none: `offered 10.77.0.11`, `not answered: …`.
    pub decision: String,
}
