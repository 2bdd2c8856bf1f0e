//! Operations of the supervisor that need rights of process 1: making the boot volume writable or
//! read-only, and setting the host name.
//!
//! A request is one line on a socket that the supervisor inherits. The response is one line:
//! `done`, or `failed REASON`. Process 1 makes the boot volume read-only again if the supervisor
//! ends during a change.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};

use crate::disk::mount_points;
use crate::error::one_line;
use crate::{Error, sys};

/// Environment variable with the descriptor number of the supervisor's end of the socket.
pub(crate) const SOCKET: &str = "TINBOX_REQUESTS";
/// Maximum wait for a response. Making the volume read-only first writes all cached data.
const ANSWER: Duration = Duration::from_secs(60);
/// Maximum length of a request or response line in bytes.
const LINE_MAX: u64 = 512;
/// Maximum length of a host name in characters (hostname(7)).
const NAME_MAX: usize = 64;

/// Returns true if this process has the process ID 1.
pub fn is_first_process() -> bool {
    std::process::id() == 1
}

/// Operation that only process 1 may perform.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    /// Change of the boot volume to writable, or to read-only again.
    Boot { writable: bool },
    /// New host name of the machine.
    Name(String),
}

impl Request {
    fn parse(line: &str) -> Option<Self> {
        let allowed = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '.';
        match line.split_once(' ')? {
            ("boot", "writable") => Some(Self::Boot { writable: true }),
            ("boot", "read-only") => Some(Self::Boot { writable: false }),
            ("name", name) if (1..=NAME_MAX).contains(&name.len()) => {
                name.chars().all(allowed).then(|| Self::Name(name.to_owned()))
            }
            _ => None,
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Boot { writable: true } => "boot writable\n".to_owned(),
            Self::Boot { writable: false } => "boot read-only\n".to_owned(),
            Self::Name(name) => format!("name {name}\n"),
        }
    }

    fn carry_out(&self) -> Result<(), Error> {
        match self {
            Self::Boot { writable } => mount_points::set_boot_writable(*writable),
            Self::Name(name) => {
                let what = format!("set the host name to {name}");
                rustix::system::sethostname(name.as_bytes()).map_err(Error::io(what))
            }
        }
    }
}

/// Handles requests in a new thread until the supervisor ends. Returns the supervisor's end of the
/// socket, which the next started program inherits.
pub(crate) fn serve() -> io::Result<OwnedFd> {
    let (own, given) = UnixStream::pair()?;
    fcntl_setfd(given.as_fd(), FdFlags::empty())?;
    std::thread::Builder::new().name("requests".to_owned()).spawn(move || {
        let open = answer(&own, Request::carry_out);
        if open && let Err(error) = mount_points::set_boot_writable(false) {
            eprintln!("tinbox: {}", stdx::chain(&error));
        }
    })?;
    Ok(given.into())
}

/// Responds to requests until the supervisor closes its end. Returns true if the boot volume is
/// then writable.
fn answer(stream: &UnixStream, carry_out: impl Fn(&Request) -> Result<(), Error>) -> bool {
    let mut open = false;
    let mut lines = BufReader::new(stream);
    loop {
        let Ok(Some(line)) = read_line(&mut lines) else { return open };
        let done = match Request::parse(&line) {
            Some(request) => {
                let done = carry_out(&request).map_err(|error| stdx::chain(&error));
                if let (Request::Boot { writable }, Ok(())) = (&request, &done) {
                    open = *writable;
                }
                done
            }
            None => Err("process 1 does not support this request".to_owned()),
        };
        let reply = match done {
            Ok(()) => "done\n".to_owned(),
            Err(reason) => format!("failed {}\n", one_line(&reason)),
        };
        if (&*stream).write_all(reply.as_bytes()).is_err() {
            return open;
        }
    }
}

/// Reads the next line without its line feed. Returns `None` if the other end is closed.
fn read_line(lines: &mut BufReader<&UnixStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    lines.take(LINE_MAX).read_line(&mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let whole = line.strip_suffix('\n').map(str::to_owned);
    whole.map(Some).ok_or_else(|| io::Error::other("a line is incomplete"))
}

/// Supervisor's end of the socket. `None` in process 1, and after a request without a response.
static OWN: OnceLock<Mutex<Option<UnixStream>>> = OnceLock::new();

fn own() -> &'static Mutex<Option<UnixStream>> {
    OWN.get_or_init(|| {
        let number = std::env::var(SOCKET).ok().and_then(|text| text.parse().ok());
        let stream = number.and_then(|number| sys::inherited(number).ok()).map(UnixStream::from);
        Mutex::new(stream)
    })
}

/// Sends a request to process 1. A process without the socket carries the request out itself. Only
/// process 1 remounts the boot volume: another program uses the volume as it is mounted, so a
/// read-only volume rejects the following write.
fn request(request: &Request) -> Result<(), Error> {
    if std::env::var_os(SOCKET).is_none() {
        let is_starters = matches!(request, Request::Boot { .. }) && !is_first_process();
        return if is_starters { Ok(()) } else { request.carry_out() };
    }
    let mut own = own().lock().unwrap_or_else(PoisonError::into_inner);
    let asked = match own.as_ref() {
        Some(stream) => ask(stream, request),
        None => Err(io::Error::other("it does not respond; restart the box")),
    };
    // The connection is dropped. A late response would otherwise be taken for the response to the
    // next request.
    let asked = asked.inspect_err(|_| *own = None);
    let what = format!("request \"{}\" from process 1", request.line().trim_end());
    let done = asked.and_then(|answer| match answer.as_str() {
        "done" => Ok(()),
        reply => Err(io::Error::other(reply.trim_start_matches("failed ").to_owned())),
    });
    done.map_err(Error::io(what))
}

fn ask(stream: &UnixStream, request: &Request) -> io::Result<String> {
    stream.set_read_timeout(Some(ANSWER))?;
    (&*stream).write_all(request.line().as_bytes())?;
    let answer = read_line(&mut BufReader::new(stream))?;
    answer.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Makes the boot volume writable, or read-only again.
///
/// # Errors
/// Process 1 does not respond, or the kernel refuses the remount.
pub(crate) fn set_boot_writable(writable: bool) -> Result<(), Error> {
    request(&Request::Boot { writable })
}

/// Sets the host name of the machine, at most 64 characters.
///
/// # Errors
/// Process 1 does not respond, or the kernel refuses the name.
pub fn set_host_name(name: &str) -> Result<(), Error> {
    request(&Request::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write as _};
    use std::os::unix::net::UnixStream;

    use super::{Request, answer, ask};
    use crate::Error;

    const BOOT: [Request; 2] =
        [Request::Boot { writable: true }, Request::Boot { writable: false }];

    #[test]
    fn requests_are_lines_and_nothing_else_is_carried_out() {
        for request in BOOT.into_iter().chain([Request::Name("box-c061".into())]) {
            assert_eq!(Request::parse(request.line().trim_end()), Some(request));
        }
        let long = format!("name {}", "a".repeat(65));
        for line in ["boot", "boot /etc", "name ", "name a b", "name /x", "mount a", &long] {
            assert_eq!(Request::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_supervisor_that_ends_in_a_change_leaves_the_volume_to_be_closed() {
        for (requests, is_left_open) in [(&BOOT[..], false), (&BOOT[..1], true), (&[], false)] {
            let (own, given) = UnixStream::pair().unwrap();
            let served = std::thread::spawn(move || answer(&own, |_| Ok(())));
            for request in requests {
                assert_eq!(ask(&given, request).unwrap(), "done");
            }
            drop(given);
            assert_eq!(served.join().unwrap(), is_left_open, "{requests:?}");
        }
    }

    #[test]
    fn what_the_kernel_refuses_is_said() {
        let (own, given) = UnixStream::pair().unwrap();
        let served = std::thread::spawn(move || {
            answer(&own, |_| Err(Error::io("mount /boot anew")(io::Error::other("it is gone"))))
        });
        let reply = ask(&given, &BOOT[0]).unwrap();
        assert_eq!(reply, "failed cannot mount /boot anew: it is gone");
        (&given).write_all(b"boot /etc\n").unwrap();
        drop(given);
        assert!(!served.join().unwrap());
    }
}
