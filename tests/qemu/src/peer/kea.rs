//! ISC Kea's DHCPv4 server.

use std::path::Path;

use serde_json::json;

use super::{Pool, wait_for_log};
use crate::{BoxProcess, BoxProgram, Error, Host};

/// Starts Kea on `host` as DHCP server for `pool`, with leases in memory, and waits until Kea
/// serves. Configuration and log go to `dir/kea.conf` and `dir/kea.log`.
///
/// # Errors
/// Kea is not installed, or does not start.
pub fn start(host: &Host, dir: &Path, pool: Pool) -> Result<BoxProcess, Error> {
    let Pool { first, last } = pool;
    let [a, b, c, _] = first.octets();
    let config = json!({ "Dhcp4": {
        "interfaces-config": { "interfaces": ["eth0"] },
        "lease-database": { "type": "memfile", "persist": false },
        "valid-lifetime": 3600,
        "subnet4": [{
            "id": 1,
            "subnet": format!("{a}.{b}.{c}.0/24"),
            "pools": [{ "pool": format!("{first} - {last}") }],
        }],
        "loggers": [{
            "name": "kea-dhcp4",
            "severity": "INFO",
            "output_options": [{ "output": "stdout", "flush": true }],
        }],
    }});
    let file = dir.join("kea.conf");
    std::fs::write(&file, config.to_string()).map_err(Error::path("write", &file))?;
    let program = BoxProgram::new("kea-dhcp4", dir.join("kea.log"))
        .args(["-c".as_ref(), file.as_os_str()])
        // By default, Kea uses folders that only its systemd service creates.
        .env("KEA_PIDFILE_DIR", dir)
        .env("KEA_LOCKFILE_DIR", "none");
    let mut process = host.spawn(program)?;
    wait_for_log(&mut process, "kea-dhcp4", "DHCP4_STARTED")?;
    Ok(process)
}
