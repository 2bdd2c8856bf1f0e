//! Prompts at a terminal.

pub mod confirm;

use std::io::{self, BufRead as _, Read, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use stdx::Secret;

use crate::error::Error;

/// Maximum length of an answer, in bytes.
const ANSWER_MAX: usize = 4096;
/// Control characters that a terminal sends.
const CONTROL_C: u8 = 3;
const CONTROL_D: u8 = 4;
const CONTROL_U: u8 = 21;
const BACKSPACE: [u8; 2] = [8, 127];

/// Shows a prompt on the terminal and reads the answer. Without `echo`, typed characters are
/// hidden, and characters typed before the prompt are dropped.
pub fn question(words: &str, echo: bool) -> Result<Secret, Error> {
    let silent = if echo { None } else { RawTerminal::begin() };
    // A closed standard error hides the question, and the answer is still wanted.
    let _ = io::stderr().write_all(words.as_bytes());
    match silent {
        Some(_silent) => typed(&mut io::stdin().lock()),
        None => read_line(),
    }
}

/// Terminal without echo and signals. Control-C is read as a character, so that the terminal is
/// restored before the program ends.
struct RawTerminal(Termios);

impl RawTerminal {
    fn begin() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent).ok()?;
        Some(Self(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        let _ = io::stderr().write_all(b"\n");
    }
}

/// Reads the answer character by character.
fn typed(keys: &mut impl Read) -> Result<Secret, Error> {
    let mut line = Vec::new();
    let mut key = [0];
    loop {
        let read = keys.read(&mut key);
        let read = read.map_err(|source| Error::Read { file: standard_input(), source })?;
        match key[0] {
            b'\r' | b'\n' if read > 0 => break,
            CONTROL_C if read > 0 => return Err(Error::Interrupted),
            CONTROL_D if read > 0 && !line.is_empty() => break,
            _ if read == 0 || key[0] == CONTROL_D || line.len() == ANSWER_MAX => return Err(cut()),
            CONTROL_U => line.clear(),
            it if BACKSPACE.contains(&it) => {
                // A character may have several bytes.
                while line.pop().is_some_and(|byte: u8| byte & 0xc0 == 0x80) {}
            }
            it => line.push(it),
        }
    }
    match String::from_utf8(line) {
        Ok(line) => Ok(Secret::from(line)),
        Err(_) => {
            let why = "the answer is not valid UTF-8".to_owned();
            Err(Error::Content { file: standard_input(), why })
        }
    }
}

/// Reads a line of standard input.
pub fn read_line() -> Result<Secret, Error> {
    let mut line = String::new();
    let count = io::stdin().lock().read_line(&mut line);
    match count.map_err(|source| Error::Read { file: standard_input(), source })? {
        0 => Err(cut()),
        _ => Ok(Secret::from(line.trim_end_matches(['\r', '\n']).to_owned())),
    }
}

fn standard_input() -> String {
    "standard input".to_owned()
}

fn cut() -> Error {
    Error::Content { file: standard_input(), why: "it ended too early".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::typed;
    use crate::error::Error;

    #[test]
    fn control_c_at_a_passphrase_ends_the_question_and_not_the_program() {
        let answer = typed(&mut &b"half\x03"[..]);
        assert!(matches!(answer, Err(Error::Interrupted)), "{answer:?}");
        for (keys, expected) in [
            (&b"word\r"[..], "word"),
            (b"word\nmore", "word"),
            (b"wop\x7frd\n", "word"),
            (b"w\xc3\xb6\x08ord\n", "word"),
            (b"other\x15word\n", "word"),
            (b"\x7fword\x04", "word"),
            (b"\n", ""),
        ] {
            assert_eq!(typed(&mut &keys[..]).unwrap().expose(), expected, "{keys:?}");
        }
        for keys in [&b""[..], b"wor", b"\x04", &[b'x'; 5000]] {
            let answer = typed(&mut &keys[..]);
            assert!(matches!(answer, Err(Error::Content { .. })), "{answer:?}");
        }
    }
}
