//! Tests of sealing with swtpm, a TPM 2.0 in software, over its socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stdx::testing::PATIENCE;
use tempfile::TempDir;

use super::{Error, SECRET_MAX, Sealer as _, Tpm, is_sealed, wire};

/// Command PCR_Extend of PCR 7 with a SHA-256 digest, without the digest itself (TPM 2.0 Library,
/// part 3, §22.2).
const EXTEND_7: [u8; 33] = [
    0x80, 0x02, 0, 0, 0, 65, 0, 0, 0x01, 0x82, // header
    0, 0, 0, 7, // the register
    0, 0, 0, 9, 0x40, 0, 0, 9, 0, 0, 0, 0, 0, // the empty password
    0, 0, 0, 1, 0, 0x0b, // one digest, of SHA-256
];

/// Board with a TPM whose state survives a restart.
struct Board {
    state: TempDir,
}

impl Board {
    fn new() -> Self {
        Self { state: tempfile::tempdir().unwrap() }
    }

    /// Starts the board. All PCRs have their values after a restart.
    fn start(&self) -> Running {
        let socket = self.state.path().join("socket");
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new("swtpm");
        command.args(["socket", "--tpm2", "--flags", "startup-clear,not-need-init"]);
        command.arg("--tpmstate").arg(format!("dir={}", self.state.path().display()));
        command.arg("--server").arg(format!("type=unixio,path={}", socket.display()));
        let log = std::fs::File::create(self.state.path().join("log")).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        Running { process: command.spawn().expect("swtpm; tests/setup.sh installs it"), socket }
    }
}

struct Running {
    process: Child,
    socket: PathBuf,
}

impl Running {
    fn tpm(&self) -> Tpm<UnixStream> {
        Tpm(connected(&self.socket))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn connected(socket: &Path) -> UnixStream {
    let begin = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return stream,
            Err(error) if begin.elapsed() > PATIENCE => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[test]
fn a_secret_opens_on_its_own_board_after_a_restart_and_on_no_other() {
    let secret = [0x5a; 32];
    let board = Board::new();
    let sealed = {
        let running = board.start();
        let mut tpm = running.tpm();
        let sealed = tpm.seal(&secret).unwrap();
        assert_eq!(tpm.unseal(&sealed).unwrap(), secret);
        // The TPM has three slots for loaded objects, so a leak would fail here.
        for _ in 0..8 {
            tpm.unseal(&sealed).unwrap();
        }
        sealed
    };
    assert!(!sealed.windows(8).any(|window| window == [0x5a; 8]), "the secret lies in the open");
    assert_eq!(board.start().tpm().unseal(&sealed).unwrap(), secret);

    let other = Board::new();
    let running = other.start();
    let mut tpm = running.tpm();
    let refused = tpm.unseal(&sealed).unwrap_err();
    assert!(matches!(refused, Error::OtherTpm), "{refused:?}");
    let anew = tpm.seal(&secret).unwrap();
    assert_eq!(tpm.unseal(&anew).unwrap(), secret);
}

#[test]
fn a_secret_stays_closed_in_another_state_of_secure_boot() {
    let board = Board::new();
    let longest = [7; SECRET_MAX];
    let sealed = {
        let running = board.start();
        let mut tpm = running.tpm();
        let sealed = tpm.seal(&longest).unwrap();
        let command = [EXTEND_7.as_slice(), &[1; 32]].concat();
        tpm.ask("extend PCR 7", &command).unwrap();
        let refused = tpm.unseal(&sealed).unwrap_err();
        assert!(matches!(refused, Error::Changed), "{refused:?}");
        sealed
    };
    assert_eq!(board.start().tpm().unseal(&sealed).unwrap(), longest);
}

#[test]
fn what_is_damaged_or_too_long_is_refused() {
    let board = Board::new();
    let running = board.start();
    let mut tpm = running.tpm();
    let refused = tpm.seal(&[0; SECRET_MAX + 1]).unwrap_err();
    assert!(matches!(refused, Error::TooLong(129)), "{refused:?}");
    let sealed = tpm.seal(&[1; 32]).unwrap();
    for length in [0, 7, 8, 9, 12, sealed.len() - 1] {
        let refused = tpm.unseal(&sealed[..length]).unwrap_err();
        assert!(matches!(refused, Error::Damaged), "{length}: {refused:?}");
    }
    assert!(is_sealed(&sealed));
}

/// Device that returns the same bytes for every command, one byte per read.
struct Pieces(Vec<u8>);

impl Read for Pieces {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() || bytes.is_empty() {
            return Ok(0);
        }
        bytes[0] = self.0.remove(0);
        Ok(1)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_answer_that_is_cut_off_or_lies_about_its_size_is_an_error() {
    let whole = [0x80, 1, 0, 0, 0, 14, 0, 0, 0, 0, 0x80, 0, 0, 1];
    for length in 0..whole.len() {
        let answer = super::exchange(&mut Pieces(whole[..length].to_vec()), &[]);
        assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{length}");
    }
    let answer = super::exchange(&mut Pieces(whole.to_vec()), &[]).unwrap();
    assert_eq!(wire::parse(&answer).unwrap().ok().unwrap().u32(), Some(0x8000_0001));
    for size in [0_u32, 9, 5_000, u32::MAX] {
        let mut lie = vec![0; 6_000];
        lie[2..6].copy_from_slice(&size.to_be_bytes());
        let answer = super::exchange(&mut Pieces(lie), &[]);
        let is_read = answer.is_ok_and(|answer| wire::parse(&answer).is_some());
        assert!(!is_read, "{size}");
    }
}
