//! A NUC's Redfish service at `10.77.0.(100+N)` port 443: OpenStack's sushy-emulator with TLS 1.2
//! and basic authentication, one process each.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use stdx::testing::PATIENCE;

use crate::namespace::Namespace;
use crate::{BmcAccess, Error, bmc, children, machine, poll};

/// Port of HTTPS, at which the box expects a service.
const PORT: u16 = 443;
/// Folder with the scripts that install and start the emulator.
const SUSHY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/sushy");

/// A running emulator, killed when dropped.
#[derive(Debug)]
pub struct RedfishService {
    child: Child,
}

impl RedfishService {
    /// Starts the service of NUC `number` and waits until the service listens. Configuration and
    /// state go to `work`, the log goes to `out`.
    pub fn start(
        number: u8,
        access: &BmcAccess,
        rack: &Namespace,
        work: &Path,
        out: &Path,
    ) -> Result<Self, Error> {
        let python = python()?;
        let dir = work.join(format!("bmc{number}"));
        fs::create_dir_all(&dir).map_err(Error::path("create", &dir))?;
        let config = configure(number, access, &dir, &python)?;
        let log = out.join(format!("nuc{number}.bmc.log"));
        let output = File::create(&log).map_err(Error::path("create", &log))?;
        let errors = output.try_clone().map_err(Error::path("clone", &log))?;
        let mut command = rack.command(&python);
        command.arg(Path::new(SUSHY).join("rack.py")).arg(bmc::chassis_socket(work));
        command.arg(number.to_string()).arg("--config").arg(config);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = children::spawn(command).map_err(Error::io("start sushy-emulator"))?;
        let mut service = Self { child };
        let address = (access.address, PORT);
        poll(&format!("sushy-emulator at {address:?}"), PATIENCE, || {
            let ended = !matches!(service.child.try_wait(), Ok(None));
            let listens = rack.enter(|| TcpStream::connect(address)).is_ok_and(|it| it.is_ok());
            (ended || listens).then_some(!ended)
        })?
        .then_some(())
        .ok_or_else(|| Error::Command {
            command: "sushy-emulator".to_owned(),
            outcome: format!("it ended at once: {}", children::tail(&log)),
        })?;
        Ok(service)
    }
}

impl Drop for RedfishService {
    fn drop(&mut self) {
        children::end(&mut self.child);
    }
}

/// Installs the emulator unless an earlier run did, and returns its interpreter.
fn python() -> Result<PathBuf, Error> {
    let script = Path::new(SUSHY).join("build.sh");
    let printed = children::run(Command::new(script), "")?;
    Ok(PathBuf::from(printed.trim()))
}

/// Writes the certificate, the account and the configuration; returns the path of the latter.
fn configure(number: u8, access: &BmcAccess, dir: &Path, python: &Path) -> Result<PathBuf, Error> {
    let written = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(Error::path("write", &path))?;
        Ok::<_, Error>(path)
    };
    let made = rcgen::generate_simple_self_signed([format!("nuc{number}")])
        .map_err(|error| Error::Config(format!("make a certificate: {error}")))?;
    let certificate = written("certificate.pem", &made.cert.pem())?;
    let key = written("key.pem", &made.signing_key.serialize_pem())?;
    let mut hash = Command::new(python);
    hash.arg("-c").arg(
        "import bcrypt, sys; \
         print(bcrypt.hashpw(sys.stdin.buffer.read(), bcrypt.gensalt(4)).decode())",
    );
    let hash = children::run(hash, access.password.expose())?;
    let account = written("htpasswd", &format!("{}:{}\n", access.user, hash.trim()))?;
    let config = format!(
        "SUSHY_EMULATOR_LISTEN_IP = '{address}'\n\
         SUSHY_EMULATOR_LISTEN_PORT = {PORT}\n\
         SUSHY_EMULATOR_SSL_CERT = '{certificate}'\n\
         SUSHY_EMULATOR_SSL_KEY = '{key}'\n\
         SUSHY_EMULATOR_AUTH_FILE = '{account}'\n\
         SUSHY_EMULATOR_STATE_DIR = '{state}'\n\
         SUSHY_EMULATOR_FAKE_DRIVER = True\n\
         SUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': '{uuid}', 'name': 'nuc{number}', \
         'power_state': 'Off', 'nics': []}}]\n",
        address = access.address,
        certificate = certificate.display(),
        key = key.display(),
        account = account.display(),
        state = dir.display(),
        uuid = machine::uuid(number),
    );
    written("emulator.conf", &config)
}
