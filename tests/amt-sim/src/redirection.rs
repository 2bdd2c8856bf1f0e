//! Redirection of the engine: one session of serial-over-LAN at a time. As tolerant as firmware:
//! sequence numbers and settings have no effect, and the question for logins may be left out.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::AmtSim;
use super::login::{REALM, hash};

/// Login with user name and password in the clear, and login with a digest.
const CLEAR: u8 = 1;
const DIGEST: u8 = 4;
/// Maximum length of a message, in bytes.
const MESSAGE_BYTES_MAX: usize = 70_000;
/// Maximum wait for a message before new output is sent.
const PAUSE: Duration = Duration::from_millis(20);

/// Serial port of the machine, and the session that has it.
#[derive(Debug, Default)]
pub struct SerialPort(Mutex<PortState>);

#[derive(Debug, Default)]
struct PortState {
    /// Output of the machine that no session has sent.
    output: Vec<u8>,
    /// Characters that were typed.
    typed: Vec<u8>,
    /// Connection of the open session, to end it.
    session: Option<TcpStream>,
    is_overrun: bool,
    /// Kinds of the accepted logins, first to last.
    logins: Vec<u8>,
    refused: usize,
}

impl SerialPort {
    /// Prints output of the machine.
    pub fn print(&self, characters: &[u8]) {
        self.state().output.extend(characters);
    }

    /// Reports lost output before the next output.
    pub fn overrun(&self) {
        self.state().is_overrun = true;
    }

    /// Returns the characters that were typed so far.
    pub fn typed(&self) -> Vec<u8> {
        self.state().typed.clone()
    }

    /// Returns true while a session is open.
    pub fn is_open(&self) -> bool {
        self.state().session.is_some()
    }

    /// Returns the kinds of the accepted logins, and the number of refused ones.
    pub fn logins(&self) -> (Vec<u8>, usize) {
        let state = self.state();
        (state.logins.clone(), state.refused)
    }

    /// Ends the session, as the redirection service does when it is switched off.
    pub fn end_session(&self) {
        if let Some(session) = self.state().session.take() {
            let _ = session.shutdown(std::net::Shutdown::Both);
        }
    }

    fn state(&self) -> MutexGuard<'_, PortState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the port for a session. Returns false if another session has it.
    fn begin(&self, control: &TcpStream) -> Result<bool> {
        let mut state = self.state();
        if state.session.is_some() {
            return Ok(false);
        }
        state.session = Some(control.try_clone()?);
        Ok(true)
    }
}

/// Behavior of the engine towards a session.
pub struct Options {
    /// Kinds of login that the engine offers.
    pub logins: Vec<u8>,
    /// Status of the start of serial-over-LAN; 0 is success.
    pub sol_status: u8,
}

/// Serves one connection until its end. `control` is the connection under TLS.
pub fn serve(
    stream: impl Read + Write,
    control: &TcpStream,
    port: &SerialPort,
    options: &Options,
) -> Result<()> {
    control.set_read_timeout(Some(PAUSE))?;
    let mut session =
        Session { stream, control, port, options, received: Vec::new(), step: Step::Connected };
    let done = session.run();
    if session.step != Step::Connected {
        port.end_session();
    }
    done
}

/// Progress of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Connected,
    /// The session has the serial port.
    Session,
    Login,
    Sol,
}

struct Session<'a, S> {
    stream: S,
    control: &'a TcpStream,
    port: &'a SerialPort,
    options: &'a Options,
    received: Vec<u8>,
    step: Step,
}

impl<S: Read + Write> Session<'_, S> {
    fn run(&mut self) -> Result<()> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => self.received.extend(&buffer[..length]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
            while let Some(message) = self.next()? {
                if !self.answer(&message)? {
                    return Ok(());
                }
            }
            if self.step == Step::Sol {
                self.show()?;
            }
        }
    }

    /// Takes the next complete message.
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let field = |range: std::ops::Range<usize>| {
            let bytes = self.received.get(range)?.iter().rev();
            Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
        };
        let length = match self.received.first() {
            None => None,
            Some(0x10 | 0x22 | 0x24 | 0x25 | 0x2B) => Some(8),
            Some(0x12) => Some(4),
            Some(0x13) => field(5..9).map(|length| 9 + length),
            Some(0x20) => Some(24),
            // Settings that MeshCentral sends after the start.
            Some(0x27) => Some(14),
            Some(0x28) => field(8..10).map(|length| 10 + length),
            Some(_) => return Err(ErrorKind::InvalidData.into()),
        };
        if length.is_some_and(|length| length > MESSAGE_BYTES_MAX) {
            return Err(ErrorKind::InvalidData.into());
        }
        let complete = length.filter(|length| self.received.len() >= *length);
        Ok(complete.map(|length| self.received.drain(..length).collect()))
    }

    /// Answers a message. Returns false at the end of the session.
    fn answer(&mut self, message: &[u8]) -> Result<bool> {
        match (message[0], self.step) {
            (0x10, Step::Connected) => {
                let status = match &message[4..] {
                    b"SOL " if self.port.begin(self.control)? => 0,
                    b"SOL " => 2,
                    _ => 1,
                };
                self.send(&[0x11, status, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
                if status != 0 {
                    return Ok(false);
                }
                self.step = Step::Session;
            }
            (0x13, Step::Session) => {
                let kind = message[4];
                let answered = login(kind, &message[9..], self.port, self.options);
                let (status, answer) = answered.ok_or(ErrorKind::InvalidData)?;
                if kind != 0 && status == 0 {
                    self.step = Step::Login;
                }
                let length = (answer.len() as u32).to_le_bytes();
                self.send(&[&[0x14, status, 0, 0, kind], &length[..], &answer].concat())?;
            }
            (0x20, Step::Login) => {
                let mut answer = [0; 23];
                (answer[0], answer[1]) = (0x21, self.options.sol_status);
                self.send(&answer)?;
                self.step = Step::Sol;
            }
            (0x28, Step::Sol) => self.port.state().typed.extend(&message[10..]),
            (0x22, _) => self.send(&[0x23, 0, 0, 0, 0, 0, 0, 0])?,
            (0x24 | 0x25 | 0x27 | 0x2B, _) => {}
            (0x12, _) => return Ok(false),
            _ => return Err(ErrorKind::InvalidData.into()),
        }
        Ok(true)
    }

    /// Sends the output of the machine.
    fn show(&mut self) -> Result<()> {
        let (output, is_overrun) = {
            let mut state = self.port.state();
            (std::mem::take(&mut state.output), std::mem::take(&mut state.is_overrun))
        };
        if is_overrun {
            self.send(&[0x29, 0, 0, 0, 0, 0, 0, 0, 3, 1 | 4])?;
        }
        for piece in output.chunks(1000) {
            let length = (piece.len() as u16).to_le_bytes();
            self.send(&[&[0x2A, 0, 0, 0, 0, 0, 0, 0], &length[..], piece].concat())?;
        }
        Ok(())
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.stream.write_all(message)?;
        self.stream.flush()
    }
}

/// Returns the status of a login and the data of the answer; `None` for a login that is not valid.
fn login(kind: u8, data: &[u8], port: &SerialPort, options: &Options) -> Option<(u8, Vec<u8>)> {
    if kind == 0 {
        return Some((0, options.logins.clone()));
    }
    if !options.logins.contains(&kind) {
        return Some((2, Vec::new()));
    }
    let texts = texts(data)?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (user, password) = (AmtSim::USERNAME, AmtSim::PASSWORD);
    let nonce = "zicaAAAAAAAAAAAAa8tMnB1xbyLK5UFG";
    let is_right = match (kind, texts.as_slice()) {
        (CLEAR, [name, word]) => *name == user && *word == password,
        (DIGEST, [_, "", "", _, "", "", "", ""]) => {
            let challenge = [REALM, nonce, "auth"];
            let text = |text: &&str| [&[text.len() as u8], text.as_bytes()].concat();
            return Some((1, challenge.iter().flat_map(text).collect()));
        }
        (DIGEST, [name, realm, sent, uri, cnonce, count, response, quality]) => {
            let who = hash(&[user, REALM, password]);
            let what = hash(&["POST", "/RedirectionService"]);
            let expected = hash(&[&who, nonce, count, cnonce, quality, &what]);
            (*name, *realm, *sent) == (user, REALM, nonce)
                && *uri == "/RedirectionService"
                && *response == expected
        }
        _ => return None,
    };
    let mut state = port.state();
    if is_right {
        state.logins.push(kind);
        return Some((0, Vec::new()));
    }
    state.refused += 1;
    Some((1, Vec::new()))
}

/// Splits texts with their lengths in front.
fn texts(mut data: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let text = rest.get(..usize::from(*length))?;
        texts.push(String::from_utf8(text.to_vec()).ok()?);
        data = &rest[text.len()..];
    }
    Some(texts)
}
