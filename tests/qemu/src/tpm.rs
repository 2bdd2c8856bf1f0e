//! A TPM 2.0 in software (swtpm), for one run of a machine. The state of the TPM remains after the
//! run, as the state of a real TPM does.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use stdx::testing::PATIENCE;

use crate::{Error, children, poll};

/// A running TPM, ended when dropped.
#[derive(Debug)]
pub(crate) struct Tpm {
    child: Child,
    /// QEMU arguments that connect the machine to the TPM.
    pub(crate) arguments: [String; 6],
}

impl Tpm {
    /// Starts the TPM whose state is in the folder `state`, which is created when it does not
    /// exist. Socket and log of the TPM go to `folder`.
    ///
    /// # Errors
    /// The error of a file or of swtpm.
    pub(crate) fn start(state: &Path, folder: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(state).map_err(Error::path("create", state))?;
        let (socket, log) = (folder.join("tpm.socket"), folder.join("tpm.log"));
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new("swtpm");
        command.args(["socket", "--tpm2", "--terminate"]);
        command.arg("--tpmstate").arg(format!("dir={}", state.display()));
        command.arg("--ctrl").arg(format!("type=unixio,path={}", socket.display()));
        let log = File::create(&log).map_err(Error::path("create", &log))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = children::spawn(command).map_err(Error::io("start swtpm"))?;
        poll("the TPM to listen", PATIENCE, || socket.exists().then_some(()))?;
        let chip = format!("socket,id=tpm,path={}", socket.display());
        let arguments = ["-chardev", &chip, "-tpmdev", "emulator,id=tpm0,chardev=tpm"];
        let [chardev, chip, backend, emulator] = arguments.map(str::to_owned);
        let device = ["-device", "tpm-tis,tpmdev=tpm0"].map(str::to_owned);
        let [option, device] = device;
        Ok(Self { child, arguments: [chardev, chip, backend, emulator, option, device] })
    }
}

impl Drop for Tpm {
    fn drop(&mut self) {
        children::end(&mut self.child);
    }
}
