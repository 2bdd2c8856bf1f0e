//! Time to read the power state of sushy-emulator, beside OpenStack's client `sushy`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bmc::{Address, Credentials, Endpoint, Protocol, RedfishOptions, RedfishSecurity, registry};
use figures::{Goal, Table, median};
use stdx::testing::own_address;
use tempfile::TempDir;

use crate::status::read_once;

const UUID: &str = "00000000-0000-0000-0000-000000000001";
/// Number of rounds, each with readings by both clients.
const ROUNDS: usize = 5;
/// Number of readings by each client in one round.
const READINGS: usize = 20;
/// Maximum time until the emulator responds.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Emulator with one machine, ended when dropped.
struct Emulator {
    process: Child,
    address: SocketAddr,
    python: std::path::PathBuf,
    _folder: TempDir,
}

impl Emulator {
    fn start() -> Result<Self> {
        let python = peers::built("sushy", &[])?.remove(0);
        let folder = TempDir::with_prefix("sushy-")?;
        let address = own_address();
        let settings = format!(
            "SUSHY_EMULATOR_LISTEN_IP = '{}'\nSUSHY_EMULATOR_LISTEN_PORT = {}\n\
             SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_STATE_DIR = '{}'\n\
             SUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': '{UUID}', 'name': 'node', \
             'power_state': 'Off', 'nics': []}}]\n",
            address.ip(),
            address.port(),
            folder.path().display(),
        );
        let file = folder.path().join("emulator.conf");
        std::fs::write(&file, settings).context("cannot write the settings of the emulator")?;
        let process = Command::new(&python)
            .args(["-m", "sushy_tools.emulator.main", "--config"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the emulator")?;
        Ok(Self { process, address, python, _folder: folder })
    }

    /// Returns the seconds of each reading by `sushy`.
    fn read(&self) -> Result<Vec<f64>> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers/sushy/status.py");
        let output = Command::new(&self.python)
            .arg(script)
            .arg(format!("http://{}", self.address))
            .arg(format!("/redfish/v1/Systems/{UUID}"))
            .arg(READINGS.to_string())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run sushy")?;
        ensure!(output.status.success(), "sushy cannot read the power state");
        let text = String::from_utf8(output.stdout)?;
        text.lines().map(|line| line.parse().context("sushy printed no time")).collect()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Adds readings per second of both clients.
pub async fn measure(table: &mut Table) -> Result<()> {
    let emulator = tokio::task::spawn_blocking(Emulator::start).await??;
    let driver = registry::open(Endpoint {
        address: Address { host: emulator.address.ip().to_string(), port: emulator.address.port() },
        credentials: Credentials { username: "u".to_owned(), password: "p".into() },
        protocol: Protocol::Redfish(RedfishOptions {
            system: UUID.to_owned(),
            is_basic: true,
            security: RedfishSecurity::Plain,
        }),
    });
    let begin = Instant::now();
    while let Err(error) = read_once(driver.as_ref()).await {
        ensure!(begin.elapsed() < START_LIMIT, "the emulator does not respond: {error:#}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.extend(emulator.read()?);
        for _ in 0..READINGS {
            ours.push(read_once(driver.as_ref()).await?);
        }
    }
    let beside = ("sushy", 1.0 / median(theirs));
    table.add("Redfish power status (1/s)", 1.0 / median(ours), beside, Goal::AtLeast(1.0));
    Ok(())
}
