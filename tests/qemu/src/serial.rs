//! A NUC's serial console: all its output, line by line, with the time of arrival.
//!
//! Firmware draws with terminal escapes and repaints the screen. Here a carriage return or a cursor
//! movement ends a line like a line feed does; escapes and empty lines are removed. The log file
//! has the unchanged bytes.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use regex::Regex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::{Error, hold};

/// Lines kept for [`Serial::wait_for`]; a boot prints about a thousand.
const MAX_LINES: usize = 100_000;
/// Maximum bytes of a line; the rest becomes the next line.
const MAX_LINE: usize = 4096;
/// Maximum bytes written to the log file: a guest in a print loop must not fill the disk.
const MAX_LOG: u64 = 64 << 20;
/// Consecutive reads before other threads may lock the console: a guest in a print loop never
/// pauses.
const MAX_READS: usize = 64;
/// Number of last console lines in the error message when an expected line did not come.
const SHOWN: usize = 25;

/// One line of a serial console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Arrival time of the last byte; for a line that is still being printed, the time of the
    /// match.
    pub at: SystemTime,
    /// Text without escapes, control characters and the line end.
    pub text: String,
}

/// A position in a console's log: lines printed later are after the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

impl Mark {
    /// The beginning of the log.
    pub const START: Self = Self(0);
}

/// A serial console of a NUC, with one log for all power cycles.
#[derive(Debug)]
pub struct Serial {
    number: u8,
    screen: Mutex<Screen>,
    grew: Condvar,
    log: Mutex<(File, u64)>,
    input: Mutex<Option<std::process::ChildStdin>>,
    /// Pipe from the running QEMU's standard output; locked while reading, so that bytes keep their
    /// order.
    output: Mutex<Option<Arc<OwnedFd>>>,
    next_output: Mutex<Option<Hook>>,
}

/// Function to call at the next console output; empty when a new QEMU starts.
#[derive(Default)]
pub(crate) struct Hook(Option<Box<dyn FnOnce() + Send>>);

#[derive(Debug, Default)]
struct Screen {
    /// Number of the first line that is still stored.
    first: u64,
    lines: VecDeque<Line>,
    partial: String,
    /// State of an escape sequence that is not complete yet.
    escape: Escape,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Started,
    Sequence,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Hook(waiting)" } else { "Hook(empty)" })
    }
}

impl Serial {
    pub(crate) fn new(number: u8, log: File) -> Self {
        Self {
            number,
            screen: Mutex::default(),
            grew: Condvar::new(),
            log: Mutex::new((log, 0)),
            input: Mutex::default(),
            output: Mutex::default(),
            next_output: Mutex::default(),
        }
    }

    /// Connects a new QEMU's standard input and output to the console.
    pub(crate) fn attach(self: &Arc<Self>, child: &mut Child) -> Result<(), Error> {
        *hold(&self.input) = child.stdin.take();
        *hold(&self.next_output) = Some(Hook::default());
        let Some(output) = child.stdout.take() else { return Ok(()) };
        let output = Arc::new(OwnedFd::from(output));
        rustix::io::ioctl_fionbio(&output, true)
            .map_err(|errno| Error::io("read the console without waiting")(errno.into()))?;
        *hold(&self.output) = Some(Arc::clone(&output));
        let serial = Arc::clone(self);
        std::thread::spawn(move || {
            loop {
                let mut ready = [PollFd::new(&output, PollFlags::IN)];
                let waited = poll(&mut ready, None);
                let _order = hold(&serial.output);
                if waited.is_err_and(|errno| errno != Errno::INTR) || !serial.pump(&output) {
                    break;
                }
            }
            hold(&serial.screen).end_line(SystemTime::now());
            serial.grew.notify_all();
        });
        Ok(())
    }

    /// Reads the available output. Returns false when QEMU has closed the pipe, or reading fails.
    fn pump(&self, output: &OwnedFd) -> bool {
        let mut buffer = vec![0; 1 << 16];
        for _ in 0..MAX_READS {
            match rustix::io::read(output, &mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.receive(buffer.get(..count).unwrap_or_default()),
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Sets `hook` as the function to call at the next console output; replaces the previous
    /// function. Returns true if nothing was printed since the previous call, or since QEMU
    /// started.
    pub(crate) fn on_next_output(&self, hook: impl FnOnce() + Send + 'static) -> bool {
        let output = hold(&self.output);
        if let Some(output) = &*output {
            self.pump(output);
        }
        hold(&self.next_output).replace(Hook(Some(Box::new(hook)))).is_some()
    }

    fn receive(&self, bytes: &[u8]) {
        {
            let mut log = hold(&self.log);
            if log.1 < MAX_LOG {
                log.1 += bytes.len() as u64;
                // The file is for people; tests read the stored lines.
                let _ = log.0.write_all(bytes);
            }
        }
        hold(&self.screen).receive(bytes, SystemTime::now());
        self.grew.notify_all();
        let hook = hold(&self.next_output).take();
        if let Some(Hook(Some(hook))) = hook {
            hook();
        }
    }

    /// Types `text` on the console.
    ///
    /// # Errors
    /// The machine is off, or QEMU no longer reads.
    pub fn send(&self, text: &str) -> Result<(), Error> {
        let mut input = hold(&self.input);
        let off = || std::io::Error::other("the machine is off");
        let written = input.as_mut().ok_or_else(off).and_then(|cable| {
            cable.write_all(text.as_bytes())?;
            cable.flush()
        });
        written.map_err(Error::io(format!("type on the console of NUC {}", self.number)))
    }

    /// The current end of the log.
    pub fn mark(&self) -> Mark {
        let screen = hold(&self.screen);
        Mark(screen.first + screen.lines.len() as u64)
    }

    /// Waits for a line that matches `pattern`, in the whole log since the rack was built.
    ///
    /// # Errors
    /// [`Error::Deadline`] with the last lines of the console; [`Error::Config`] for a pattern that
    /// is not a valid regular expression.
    pub fn wait_for(&self, pattern: &str, within: Duration) -> Result<Line, Error> {
        self.wait_for_after(Mark::START, pattern, within).map(|(line, _)| line)
    }

    /// Waits for a line after `mark` that matches `pattern`. Returns the line and the mark after
    /// this line.
    ///
    /// A line still being printed (a prompt) matches too.
    ///
    /// # Errors
    /// As [`Serial::wait_for`].
    pub fn wait_for_after(
        &self,
        mark: Mark,
        pattern: &str,
        within: Duration,
    ) -> Result<(Line, Mark), Error> {
        self.wait(mark, pattern, within, Screen::find)
    }

    /// As [`Serial::wait_for_after`], but only for complete lines: a line that is still being
    /// printed does not match.
    ///
    /// # Errors
    /// As [`Serial::wait_for`].
    pub fn wait_for_whole(
        &self,
        mark: Mark,
        pattern: &str,
        within: Duration,
    ) -> Result<(Line, Mark), Error> {
        self.wait(mark, pattern, within, Screen::find_finished)
    }

    fn wait(
        &self,
        mark: Mark,
        pattern: &str,
        within: Duration,
        find: impl Fn(&Screen, &mut Mark, &Regex) -> Option<(Line, Mark)>,
    ) -> Result<(Line, Mark), Error> {
        let regex = Regex::new(pattern)
            .map_err(|error| Error::Config(format!("pattern `{pattern}`: {error}")))?;
        let deadline = Instant::now() + within;
        let mut next = mark;
        let mut screen = hold(&self.screen);
        loop {
            if let Some(found) = find(&screen, &mut next, &regex) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let seen = screen.tail(SHOWN);
                drop(screen);
                let what = format!("`{pattern}` on the console of NUC {}", self.number);
                return Err(Error::Deadline { what, after: within, seen });
            }
            let waited = self.grew.wait_timeout(screen, left);
            screen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// All finished lines after `mark`.
    pub fn lines_after(&self, mark: Mark) -> Vec<Line> {
        let screen = hold(&self.screen);
        let skip = mark.0.saturating_sub(screen.first) as usize;
        screen.lines.iter().skip(skip).cloned().collect()
    }

    /// All finished lines, since the rack was built.
    pub fn lines(&self) -> Vec<Line> {
        self.lines_after(Mark::START)
    }
}

impl Screen {
    fn receive(&mut self, bytes: &[u8], at: SystemTime) {
        for &byte in bytes {
            self.escape = match (self.escape, byte) {
                (Escape::None, 0x1b) => Escape::Started,
                (Escape::None, _) => {
                    self.print(byte, at);
                    Escape::None
                }
                (Escape::Started, b'[') => Escape::Sequence,
                (Escape::Started, _) => Escape::None,
                // ECMA-48 5.4: a control sequence ends with its first byte from 0x40 to 0x7e.
                (Escape::Sequence, 0x40..=0x7e) => {
                    if matches!(byte, b'H' | b'f' | b'J') {
                        self.end_line(at);
                    }
                    Escape::None
                }
                (Escape::Sequence, _) => Escape::Sequence,
            };
        }
    }

    fn print(&mut self, byte: u8, at: SystemTime) {
        match byte {
            b'\n' | b'\r' => self.end_line(at),
            b'\t' | 0x20..=0x7e => self.partial.push(char::from(byte)),
            // Consoles here print ASCII; other bytes are line drawing or noise.
            0x80.. => self.partial.push('?'),
            _ => {}
        }
        if self.partial.len() >= MAX_LINE {
            self.end_line(at);
        }
    }

    fn end_line(&mut self, at: SystemTime) {
        let text = std::mem::take(&mut self.partial);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        if self.lines.len() >= MAX_LINES {
            self.lines.pop_front();
            self.first += 1;
        }
        self.lines.push_back(Line { at, text: text.to_owned() });
    }

    /// Returns the first match at or after `next`, which moves past the finished lines that were
    /// checked.
    fn find(&self, next: &mut Mark, regex: &Regex) -> Option<(Line, Mark)> {
        if let Some(found) = self.find_finished(next, regex) {
            return Some(found);
        }
        let unfinished = Mark(self.first + self.lines.len() as u64);
        if *next <= unfinished && regex.is_match(&self.partial) {
            let line = Line { at: SystemTime::now(), text: self.partial.clone() };
            return Some((line, Mark(unfinished.0 + 1)));
        }
        None
    }

    fn find_finished(&self, next: &mut Mark, regex: &Regex) -> Option<(Line, Mark)> {
        let skip = next.0.saturating_sub(self.first) as usize;
        for (index, line) in self.lines.iter().enumerate().skip(skip) {
            next.0 = self.first + index as u64 + 1;
            if regex.is_match(&line.text) {
                return Some((line.clone(), *next));
            }
        }
        None
    }

    fn tail(&self, count: usize) -> String {
        let skip = self.lines.len().saturating_sub(count);
        let lines = self.lines.iter().skip(skip).map(|line| line.text.as_str());
        let partial = Some(self.partial.as_str()).filter(|text| !text.is_empty());
        let shown: String = lines.chain(partial).map(|text| format!("\n  | {text}")).collect();
        if shown.is_empty() { "; it printed nothing".into() } else { format!("; it ends:{shown}") }
    }
}

#[cfg(test)]
mod tests;
