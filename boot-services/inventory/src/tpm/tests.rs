//! Tests with a software TPM (swtpm, by libtpms), and with invalid responses.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use proptest::prelude::{any, prop, proptest};
use stdx::testing::wait_for;

use super::{HEADER, certificate, tpm};

/// Software TPM with certificates, initialized as by a manufacturer (swtpm_setup).
struct Swtpm {
    process: Child,
    folder: tempfile::TempDir,
}

impl Swtpm {
    fn made(certified: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        let mut setup = Command::new("swtpm_setup");
        setup.args(["--tpm2", "--tpmstate"]).arg(&state);
        if certified {
            setup.arg("--create-ek-cert").arg("--write-ek-cert-files").arg(folder.path());
        }
        let made = setup.output().expect("this test needs swtpm_setup (package swtpm-tools)");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        let (socket, control) = (folder.path().join("tpm"), folder.path().join("control"));
        let process = Command::new("swtpm")
            .args(["socket", "--tpm2", "--flags", "startup-clear", "--tpmstate"])
            .arg(format!("dir={}", state.display()))
            .arg("--server")
            .arg(format!("type=unixio,path={}", socket.display()))
            .arg("--ctrl")
            .arg(format!("type=unixio,path={}", control.display()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, folder }
    }

    fn connect(&self) -> UnixStream {
        let socket = self.folder.path().join("tpm");
        wait_for("swtpm", || UnixStream::connect(&socket).ok())
    }
}

impl Drop for Swtpm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_tpm_shows_its_makers_certificate() {
    let swtpm = Swtpm::made(true);
    let mut stream = swtpm.connect();
    let read = certificate(&mut stream).unwrap().expect("it has one");
    let written = fs::read_dir(swtpm.folder.path()).unwrap().flatten().find_map(|file| {
        let is_one = file.file_name().to_string_lossy().contains("rsa");
        is_one.then(|| fs::read(file.path()).unwrap())
    });
    assert_eq!(Some(&read), written.as_ref());
    assert_eq!(certificate(&mut stream).unwrap().as_ref(), Some(&read), "again the same");
}

#[test]
fn a_tpm_without_a_certificate_has_none() {
    let swtpm = Swtpm::made(false);
    assert_eq!(certificate(&mut swtpm.connect()).unwrap(), None);
}

#[test]
fn a_machine_may_have_none_or_an_older_one() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(tpm(root.path()), None);
    let class = root.path().join("sys/class/tpm/tpm0");
    fs::create_dir_all(&class).unwrap();
    for (major, version) in [("1", "1.2"), ("2", "2.0")] {
        fs::write(class.join("tpm_version_major"), major).unwrap();
        let found = tpm(Path::new(root.path())).unwrap();
        assert_eq!((found.version.as_str(), found.endorsement.as_str()), (version, ""));
    }
}

/// Fake TPM that returns the same bytes to each command.
struct Wrong(Vec<u8>);

impl Read for Wrong {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.0.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        Ok(count)
    }
}

impl Write for Wrong {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_answer_is_too_wrong(bytes in prop::collection::vec(any::<u8>(), 0..200), right: bool) {
        let mut bytes = bytes;
        if right && bytes.len() > HEADER {
            let size = u32::try_from(bytes.len()).unwrap();
            bytes[2..6].copy_from_slice(&size.to_be_bytes());
            bytes[6..10].fill(0);
        }
        let _ = certificate(&mut Wrong(bytes));
    }
}
