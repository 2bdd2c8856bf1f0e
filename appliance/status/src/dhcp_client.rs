//! Who asked for an address lately, and what became of it (NW-9), so that nobody has to guess why a
//! machine gets none.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stdx::MacAddr;

/// One machine, as `/apis/tinbox.dev/v1alpha1/heard` answers; a list of them, who asked last first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heard {
    /// Its hardware address.
    pub mac: MacAddr,
    /// `namespace/name` of its Hardware; empty when it has none.
    #[serde(default)]
    pub hardware: String,
    /// When it asked last; of a machine without Hardware to the minute.
    pub asked: Timestamp,
    /// What it got, or the reason why not: `offered 10.77.0.11`, `not answered: …`.
    pub decision: String,
}
