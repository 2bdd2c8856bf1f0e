//! Messages of redirection: session, login and serial-over-LAN, as MeshCentral, amtterm and Intel's
//! MPS exchange them with real firmware. Integers are little-endian.

/// Path of the service in the digest login.
pub const PATH: &str = "/RedirectionService";
/// Login with user name and password in the clear.
pub const CLEAR: u8 = 1;
/// Login with a digest.
pub const DIGEST: u8 = 4;
/// Start of a session of serial-over-LAN.
pub const START_SESSION: [u8; 8] = *b"\x10\0\0\0SOL ";
/// Question for the offered logins.
pub const QUERY_LOGINS: [u8; 9] = [0x13, 0, 0, 0, 0, 0, 0, 0, 0];
/// Start of serial-over-LAN. Buffer of 10,000 bytes; wait for more output 100 ms, no limit for a
/// full buffer; the firmware ends the session 10 s after the last message from the client; no
/// heartbeat of the firmware.
pub const START_SOL: [u8; 24] =
    [0x20, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x27, 100, 0, 0, 0, 0x10, 0x27, 100, 0, 0, 0, 0, 0, 0, 0];
/// Sign of life of the client.
pub const HEARTBEAT: [u8; 8] = [0x2B, 0, 0, 0, 0, 0, 0, 0];
/// End of serial-over-LAN, which the firmware answers.
pub const END_SOL: [u8; 8] = [0x22, 0, 0, 0, 0, 0, 0, 0];
/// Answer to a ping of the firmware.
pub const PONG: [u8; 8] = [0x25, 0, 0, 0, 0, 0, 0, 0];
/// Maximum characters of one message to the machine.
const TYPED_BYTES_MAX: usize = 256;
/// Maximum length of the data of a login, in bytes. A challenge has about 90.
const LOGIN_BYTES_MAX: usize = 1024;
/// Bit of the status of a console: the firmware lost output of the machine.
const OVERFLOW: u8 = 1;

/// Reason why a message of the firmware cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMessage {
    /// The type of the message is not known, so its length is not known either.
    #[error("expected a message of redirection, found the type {0:#04x}")]
    Type(u8),
    /// The data of a login is too long.
    #[error("the data of a login has {0} bytes, and the limit is {LOGIN_BYTES_MAX}")]
    Length(u32),
    /// The digest challenge has no realm, nonce or quality.
    #[error("the digest challenge is not complete")]
    Challenge,
}

/// Message from the firmware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Answer to the start of a session. Status 0 is success.
    SessionStarted(u8),
    /// Answer to a login. Status 1 is also the status of a challenge.
    Login {
        /// Status; 0 is success.
        status: u8,
        /// Number of the kind of login.
        kind: u8,
        /// Offered logins, or a challenge.
        data: Vec<u8>,
    },
    /// Answer to the start of serial-over-LAN. Status 0 is success.
    SolStarted(u8),
    /// The firmware ended serial-over-LAN.
    SolEnded,
    /// Question whether the client still exists.
    Ping,
    /// Output of the machine.
    Characters(Vec<u8>),
    /// The firmware lost output of the machine.
    Overflow,
    /// Message without an effect for a client, such as a heartbeat.
    Other,
}

impl Message {
    /// Reads the first message of `bytes`. Returns the message and its length; `None` if the
    /// message is not complete.
    ///
    /// # Errors
    /// The message is not valid, and the start of the next message cannot be found.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, InvalidMessage> {
        let Some(kind) = bytes.first() else { return Ok(None) };
        let status = bytes.get(1).copied();
        Ok(match kind {
            0x11 => match status {
                // Only a success has the data of the manufacturer.
                Some(status) if status != 0 => whole(bytes, 4, |_| Self::SessionStarted(status)),
                _ => {
                    let length = bytes.get(12).map(|extra| 13 + usize::from(*extra));
                    length.and_then(|length| whole(bytes, length, |_| Self::SessionStarted(0)))
                }
            },
            0x14 => match bytes.get(5..9).and_then(|field| field.try_into().ok()) {
                None => None,
                Some(field) => {
                    let length = u32::from_le_bytes(field);
                    let data = usize::try_from(length).ok().filter(|it| *it <= LOGIN_BYTES_MAX);
                    let length = 9 + data.ok_or(InvalidMessage::Length(length))?;
                    whole(bytes, length, |it| Self::Login {
                        status: it[1],
                        kind: it[4],
                        data: it[9..].to_vec(),
                    })
                }
            },
            0x21 => match status {
                Some(status) if status != 0 => Some((Self::SolStarted(status), bytes.len())),
                _ => whole(bytes, 23, |_| Self::SolStarted(0)),
            },
            0x22 | 0x23 => whole(bytes, 8, |_| Self::SolEnded),
            0x24 => whole(bytes, 8, |_| Self::Ping),
            0x29 => whole(bytes, 10, |it| match it[9] & OVERFLOW {
                0 => Self::Other,
                _ => Self::Overflow,
            }),
            0x2A => match bytes.get(8..10).and_then(|field| field.try_into().ok()) {
                None => None,
                Some(field) => {
                    let length = 10 + usize::from(u16::from_le_bytes(field));
                    whole(bytes, length, |it| Self::Characters(it[10..].to_vec()))
                }
            },
            0x25 | 0x2B => whole(bytes, 8, |_| Self::Other),
            other => return Err(InvalidMessage::Type(*other)),
        })
    }
}

/// Reads a message of `length` bytes if it is complete.
fn whole(
    bytes: &[u8],
    length: usize,
    read: impl FnOnce(&[u8]) -> Message,
) -> Option<(Message, usize)> {
    bytes.get(..length).map(|message| (read(message), length))
}

/// Returns the message of a login. `data` is the whole data.
pub fn login(kind: u8, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    [&[0x13, 0, 0, 0, kind], length.to_le_bytes().as_slice(), data].concat()
}

/// Returns texts with their lengths in front; `None` if a text has more than 255 bytes.
pub fn texts(texts: &[&str]) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for text in texts {
        data.push(u8::try_from(text.len()).ok()?);
        data.extend(text.as_bytes());
    }
    Some(data)
}

/// Reads the realm, the nonce and the qualities of a digest challenge.
///
/// # Errors
/// A text is cut off, or is not UTF-8.
pub fn challenge(data: &[u8]) -> Result<[String; 3], InvalidMessage> {
    let mut rest = data;
    let mut next = || {
        let (length, after) = rest.split_first()?;
        let text = after.get(..usize::from(*length))?;
        rest = &after[text.len()..];
        String::from_utf8(text.to_vec()).ok()
    };
    match (next(), next(), next()) {
        (Some(realm), Some(nonce), Some(qualities)) => Ok([realm, nonce, qualities]),
        _ => Err(InvalidMessage::Challenge),
    }
}

/// Returns the messages that type `characters`.
pub fn typed(characters: &[u8]) -> Vec<u8> {
    let mut messages = Vec::new();
    for piece in characters.chunks(TYPED_BYTES_MAX) {
        let length = u16::try_from(piece.len()).unwrap_or(u16::MAX);
        messages.extend([0x28, 0, 0, 0, 0, 0, 0, 0]);
        messages.extend(length.to_le_bytes());
        messages.extend(piece);
    }
    messages
}
