//! dnsmasq as a DHCP and TFTP server.

use std::path::Path;

use super::{Pool, wait_for_log};
use crate::{BoxProcess, BoxProgram, Error, Host};

/// Configuration of a dnsmasq.
#[derive(Debug, Clone)]
pub struct Dnsmasq {
    lines: Vec<String>,
}

impl Dnsmasq {
    /// An authoritative DHCP server for `pool`, which is also the router of its clients. It has no
    /// lease file: its leases are lost when it ends.
    pub fn new(pool: Pool) -> Self {
        let Pool { first, last } = pool;
        let lines = [
            "port=0",
            "keep-in-foreground",
            "user=root",
            "log-facility=-",
            "log-dhcp",
            "bind-interfaces",
            "interface=eth0",
            "except-interface=lo",
            "leasefile-ro",
            "no-ping",
            "dhcp-authoritative",
        ];
        let mut lines = lines.map(str::to_owned).to_vec();
        lines.push(format!("dhcp-range={first},{last},255.255.255.0,1h"));
        Self { lines }
    }

    /// Adds a line to the configuration file, for instance `dhcp-boot=undionly.kpxe`.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Serves the files of `folder` by TFTP.
    #[must_use]
    pub fn tftp(self, folder: &Path) -> Self {
        self.line("enable-tftp").line(format!("tftp-root={}", folder.display()))
    }

    /// Starts dnsmasq on `host` and waits until it serves. Configuration and log go to
    /// `dir/NAME.conf` and `dir/NAME.log`.
    ///
    /// # Errors
    /// dnsmasq is not installed, or the configuration is invalid.
    pub fn start(&self, host: &Host, dir: &Path, name: &str) -> Result<BoxProcess, Error> {
        let file = dir.join(format!("{name}.conf"));
        std::fs::write(&file, self.lines.join("\n") + "\n").map_err(Error::path("write", &file))?;
        let program = BoxProgram::new("dnsmasq", dir.join(format!("{name}.log")));
        let mut process = host.spawn(program.args(["-C".as_ref(), file.as_os_str()]))?;
        wait_for_log(&mut process, "dnsmasq", "DHCP, IP range")?;
        Ok(process)
    }
}
