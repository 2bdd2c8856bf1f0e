//! `ipmitool`, the stock client: the reference for the state of a BMC.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use bmc::{CipherSuite, Endpoint};

use crate::find;

/// A BMC, accessed with `ipmitool`.
#[derive(Debug, Clone)]
pub struct Ipmitool {
    program: PathBuf,
    endpoint: Endpoint,
    /// Cipher suite of IPMI 2.0; `None` for IPMI 1.5.
    suite: Option<CipherSuite>,
}

impl Ipmitool {
    /// A client of the BMC of `endpoint` that uses exactly the cipher suite `suite`.
    pub fn new(endpoint: &Endpoint, suite: CipherSuite) -> Result<Self> {
        Self::with(endpoint, Some(suite))
    }

    /// A client of the BMC of `endpoint` that uses IPMI 1.5 with MD5.
    pub fn legacy(endpoint: &Endpoint) -> Result<Self> {
        Self::with(endpoint, None)
    }

    fn with(endpoint: &Endpoint, suite: Option<CipherSuite>) -> Result<Self> {
        let program = find("ipmitool", "ipmitool")?;
        Ok(Self { program, endpoint: endpoint.clone(), suite })
    }

    /// Runs a command, given as words separated by blanks; returns the output of a successful
    /// command.
    pub fn run(&self, command: &str) -> Result<String> {
        let output = self.command(command).output();
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        // ipmitool reports a refused boot parameter only in its output, not by its exit status.
        if !output.status.success() || complaint.contains(" failed: ") {
            bail!("ipmitool {command} failed: {}{}", said.trim(), complaint.trim());
        }
        Ok(said)
    }

    /// Starts a command that reads what is typed, such as `sol activate`.
    pub fn start(&self, command: &str) -> Result<Child> {
        let mut started = self.command(command);
        started.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        started.spawn().with_context(|| format!("cannot run {}", self.program.display()))
    }

    fn command(&self, words: &str) -> Command {
        let Endpoint { address, credentials, .. } = &self.endpoint;
        let mut command = Command::new(&self.program);
        match self.suite {
            Some(suite) => command.args(["-I", "lanplus", "-C", &suite.to_string()]),
            None => command.args(["-I", "lan", "-A", "MD5"]),
        };
        command
            .args(["-H", &address.host])
            .args(["-p", &address.port.to_string(), "-U", &credentials.username, "-E"])
            // By default ipmitool sends a request again after one second, and the BMC would execute
            // the request twice.
            .args(["-N", "30"])
            .args(words.split_whitespace())
            .env("IPMI_PASSWORD", credentials.password.expose())
            .env("LC_ALL", "C");
        command
    }

    /// True when ipmitool reports the machine as on.
    pub fn is_on(&self) -> Result<bool> {
        match self.run("power status")?.trim() {
            "Chassis Power is on" => Ok(true),
            "Chassis Power is off" => Ok(false),
            other => bail!("ipmitool says {other:?} of the power"),
        }
    }

    /// The boot flags as ipmitool reads them, five bytes in hexadecimal.
    pub fn boot_flags(&self) -> Result<String> {
        let said = self.run("chassis bootparam get 5")?;
        said.lines()
            .find_map(|line| line.strip_prefix("Boot parameter data: "))
            .map(|data| data.trim().to_owned())
            .with_context(|| format!("no boot parameter data in {said:?}"))
    }
}
