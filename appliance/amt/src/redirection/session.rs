//! Session of serial-over-LAN without I/O: the answer to each message, until the console is open.

use http_digest::{Algorithm, Challenge};

use super::message::{self, InvalidMessage, Message};
use crate::line::Login;

/// Line in place of output that the firmware lost.
const OVERFLOW_MARK: &[u8] = b"\r\n[the management engine lost characters here]\r\n";
/// Status of a session that another client has open.
const BUSY: u8 = 2;
/// Number of the requests with the nonce, as all known clients write.
const NONCE_COUNT: u32 = 2;

/// Reason why no serial console was opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectionError {
    /// The port of redirection is closed.
    #[error("port {port} is closed, so the firmware's listener for redirection is off")]
    Closed {
        /// TCP port of redirection.
        port: u16,
    },
    /// The firmware has one session, and another client has it.
    #[error("another client has the serial console open")]
    Busy,
    /// The firmware refused a step.
    #[error("the firmware refused {step} with status {status}")]
    Refused {
        /// Step that was refused.
        step: &'static str,
        /// Status of the answer.
        status: u8,
    },
    /// The firmware rejected user name or password.
    #[error("the user name or password was rejected for redirection")]
    WrongPassword,
    /// The firmware offers only logins that would show the password to the network.
    #[error("the firmware offers no digest login for redirection")]
    NoDigest,
    /// User name or password does not fit into the message of a login.
    #[error("the user name or password has more than 255 bytes")]
    LongLogin,
    /// The firmware ended the connection before the console was open.
    #[error("the firmware ended the connection before the serial console was open")]
    Ended,
    /// No answer in time.
    #[error("no answer of redirection in time")]
    Timeout,
    /// A message of the firmware is not valid.
    #[error("a message of redirection is not valid")]
    Invalid(#[from] InvalidMessage),
}

impl RedirectionError {
    /// Returns true if the same attempt may succeed later.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::WrongPassword | Self::NoDigest | Self::LongLogin)
    }
}

/// Reaction to received bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// Messages that must be sent now, in this order.
    pub reply: Vec<u8>,
    /// Output of the machine.
    pub characters: Vec<u8>,
    /// True if the firmware ended the console.
    pub is_ended: bool,
}

/// Step that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Session,
    Logins,
    Challenge,
    Login,
    Sol,
    Open,
}

/// Session with one machine.
#[derive(Debug)]
pub struct Session {
    login: Login,
    cnonce: String,
    /// True inside TLS, where a password in the clear is hidden from the network.
    is_private: bool,
    step: Step,
    /// Start of a message: less than 65,545 bytes, because its length has 16 bits.
    received: Vec<u8>,
}

impl Session {
    /// Creates a session, which begins with [`message::START_SESSION`]. `is_private` permits a
    /// login without a digest, for firmware that offers no other.
    pub fn new(login: Login, cnonce: String, is_private: bool) -> Self {
        Self { login, cnonce, is_private, step: Step::Session, received: Vec::new() }
    }

    /// Returns true as soon as the console is open.
    pub fn is_open(&self) -> bool {
        self.step == Step::Open
    }

    /// Processes received bytes. The end of a message may come later.
    ///
    /// # Errors
    /// The firmware refused a step, or a message is not valid. The session is unusable then.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Reaction, RedirectionError> {
        self.received.extend(bytes);
        let mut reaction = Reaction::default();
        while let Some((message, length)) = Message::read(&self.received)? {
            self.received.drain(..length);
            self.react(message, &mut reaction)?;
        }
        Ok(reaction)
    }

    fn react(&mut self, message: Message, reaction: &mut Reaction) -> Result<(), RedirectionError> {
        match (self.step, message) {
            (Step::Session, Message::SessionStarted(0)) => {
                self.step = Step::Logins;
                reaction.reply.extend(message::QUERY_LOGINS);
            }
            (Step::Session, Message::SessionStarted(BUSY)) => return Err(RedirectionError::Busy),
            (Step::Session, Message::SessionStarted(status)) => {
                return Err(RedirectionError::Refused { step: "a session", status });
            }
            (Step::Logins, Message::Login { data, .. }) => {
                reaction.reply.extend(self.first_login(&data)?);
            }
            (Step::Challenge, Message::Login { status: 0 | 1, data, .. }) if !data.is_empty() => {
                self.step = Step::Login;
                reaction.reply.extend(self.digest(&data)?);
            }
            (Step::Login, Message::Login { status: 0, .. }) => {
                self.step = Step::Sol;
                reaction.reply.extend(message::START_SOL);
            }
            (Step::Login | Step::Challenge, Message::Login { status: 1, .. }) => {
                return Err(RedirectionError::WrongPassword);
            }
            (Step::Login | Step::Challenge, Message::Login { status, .. }) => {
                return Err(RedirectionError::Refused { step: "the login", status });
            }
            (Step::Sol, Message::SolStarted(0)) => self.step = Step::Open,
            (Step::Sol, Message::SolStarted(status)) => {
                return Err(RedirectionError::Refused { step: "serial-over-LAN", status });
            }
            (_, Message::SolEnded) => reaction.is_ended = true,
            (_, Message::Ping) => reaction.reply.extend(message::PONG),
            (_, Message::Characters(characters)) => reaction.characters.extend(characters),
            (_, Message::Overflow) => reaction.characters.extend(OVERFLOW_MARK),
            // Firmware is not strict about the order, and repeats answers.
            _ => {}
        }
        Ok(())
    }

    /// Returns the first message of the login. `offered` has a byte for each kind.
    fn first_login(&mut self, offered: &[u8]) -> Result<Vec<u8>, RedirectionError> {
        let Login { username, password } = &self.login;
        if offered.contains(&message::DIGEST) {
            self.step = Step::Challenge;
            let texts = message::texts(&[username, "", "", message::PATH, "", "", "", ""]);
            let data = texts.ok_or(RedirectionError::LongLogin)?;
            return Ok(message::login(message::DIGEST, &data));
        }
        if self.is_private && offered.contains(&message::CLEAR) {
            self.step = Step::Login;
            let texts = message::texts(&[username, password.expose()]);
            let data = texts.ok_or(RedirectionError::LongLogin)?;
            return Ok(message::login(message::CLEAR, &data));
        }
        Err(RedirectionError::NoDigest)
    }

    fn digest(&self, data: &[u8]) -> Result<Vec<u8>, RedirectionError> {
        let [realm, nonce, qualities] = message::challenge(data)?;
        if !qualities.split(',').any(|quality| quality.trim() == "auth") {
            return Err(InvalidMessage::Challenge.into());
        }
        let algorithm = Algorithm::Md5;
        let challenge = Challenge { realm, nonce, opaque: None, is_stale: false, algorithm };
        let login = (self.login.username.as_str(), &self.login.password);
        let target = ("POST", message::PATH);
        let response = challenge.response(login, target, &self.cnonce, NONCE_COUNT);
        let count = format!("{NONCE_COUNT:08x}");
        let Challenge { realm, nonce, .. } = &challenge;
        let user = &self.login.username;
        let texts = [user, realm, nonce, message::PATH, &self.cnonce, &count, &response, "auth"];
        let data = message::texts(&texts).ok_or(RedirectionError::LongLogin)?;
        Ok(message::login(message::DIGEST, &data))
    }
}
