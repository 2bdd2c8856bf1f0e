//! Leases in a backup. JSON is independent of the format of the lease file.

use std::net::Ipv4Addr;
use std::path::Path;

use dhcp::{Change, Lease, LeaseFile, LeaseState, LeaseStore as _};
use provisioning::networks::leases::OpenLeases;
use serde::{Deserialize, Serialize};
use stdx::MacAddr;

use super::{BackupError, disk};

#[derive(Serialize, Deserialize)]
struct StoredLease {
    address: Ipv4Addr,
    mac: MacAddr,
    state: State,
    expires: u64,
    heard: u64,
    #[serde(default)]
    reserved: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum State {
    Bound,
    Released,
    Declined,
}

/// Returns the leases of an interface as JSON, without offers. DHCP may have the lease file open.
pub fn read(open: &OpenLeases, interface: &str, file: &Path) -> Result<Vec<u8>, BackupError> {
    let leases = match open.read(interface) {
        Some(read) => read?,
        None => closed(file)?,
    };
    let kept = leases.into_iter().filter_map(|lease| {
        let state = match lease.state {
            LeaseState::Offered => return None,
            LeaseState::Bound => State::Bound,
            LeaseState::Released => State::Released,
            LeaseState::Declined => State::Declined,
        };
        let Lease { address, mac, expires, last_seen: heard, reserved, .. } = lease;
        Some(StoredLease { address, mac, state, expires, heard, reserved })
    });
    let kept: Vec<StoredLease> = kept.collect();
    serde_json::to_vec(&kept).map_err(|error| disk("write the leases")(error.into()))
}

/// Reads a lease file that DHCP does not have open. Reads a copy, because DHCP may open the file.
fn closed(file: &Path) -> Result<Vec<Lease>, BackupError> {
    let copy = file.with_extension("part");
    std::fs::copy(file, &copy).map_err(disk("copy the leases"))?;
    let read = LeaseFile::open(&copy).and_then(|file| file.load());
    std::fs::remove_file(&copy).map_err(disk("remove a copy of the leases"))?;
    Ok(read?)
}

/// Writes a lease file from JSON, and returns the number of leases.
pub fn write(content: &[u8], file: &Path) -> Result<u64, BackupError> {
    let kept: Vec<StoredLease> = serde_json::from_slice(content)
        .map_err(|error| BackupError::Unfit(format!("its leases cannot be read: {error}")))?;
    let changes = kept.into_iter().map(|kept| {
        let state = match kept.state {
            State::Bound => LeaseState::Bound,
            State::Released => LeaseState::Released,
            State::Declined => LeaseState::Declined,
        };
        let StoredLease { address, mac, expires, heard, reserved, .. } = kept;
        Change::Put(Lease { address, mac, state, expires, last_seen: heard, reserved })
    });
    let changes: Vec<Change> = changes.collect();
    LeaseFile::open(file)?.commit(&changes)?;
    Ok(changes.len() as u64)
}
