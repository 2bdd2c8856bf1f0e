//! Table of resolved names, and queue of names to look up.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{FAILED, FRESH, NAMES_MAX, STALE, THREADS_MAX, WAIT};

/// Error of a look-up, which can be cloned for many callers.
#[derive(Debug, Clone)]
pub struct Failure {
    kind: io::ErrorKind,
    message: String,
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        Self::new(failure.kind, failure.message)
    }
}

/// Result of a look-up.
pub type Answer = Result<Vec<SocketAddr>, Failure>;

/// Next step of a caller of [`Names::request`].
pub enum Next {
    /// The table has the result.
    Known(io::Result<Vec<SocketAddr>>),
    /// The caller waits for a look-up.
    Wait {
        /// Channel for the result.
        answer: oneshot::Receiver<Answer>,
        /// True if the caller must start a thread first.
        is_new_thread: bool,
    },
    /// The table is full, and all of its names are being looked up.
    Full,
}

/// State of one name.
struct Name {
    /// Last addresses found, with the time of their look-up; `None` before the first success.
    found: Option<(Vec<SocketAddr>, Instant)>,
    /// Failure of the last look-up, with its time; `None` after a success.
    failed: Option<(Failure, Instant)>,
    /// Start of the current look-up; `None` if there is none.
    started: Option<Instant>,
    /// Callers that wait for the current look-up.
    waiters: Vec<oneshot::Sender<Answer>>,
    used: Instant,
}

impl Name {
    fn new(now: Instant) -> Self {
        Self { found: None, failed: None, started: None, waiters: Vec::new(), used: now }
    }

    fn stale(&self, now: Instant) -> Option<Vec<SocketAddr>> {
        let (found, at) = self.found.as_ref()?;
        (now.duration_since(*at) < STALE).then(|| found.clone())
    }

    /// Returns the result that can be used without a new look-up; `None` if a look-up is needed.
    fn known(&self, now: Instant) -> Option<io::Result<Vec<SocketAddr>>> {
        if let Some((found, at)) = &self.found
            && now.duration_since(*at) < FRESH
        {
            return Some(Ok(found.clone()));
        }
        if let Some((failure, at)) = &self.failed
            && now.duration_since(*at) < FAILED
        {
            return Some(self.stale(now).ok_or_else(|| failure.clone().into()));
        }
        let is_late = self.started.is_some_and(|started| now.duration_since(started) >= WAIT);
        if is_late { self.stale(now).map(Ok) } else { None }
    }
}

/// All names, at most [`NAMES_MAX`], and the threads that look them up.
#[derive(Default)]
pub struct Names {
    all: HashMap<String, Name>,
    /// Names that wait for a thread.
    waiting: VecDeque<String>,
    threads: usize,
}

impl Names {
    /// Handles a caller's request for the addresses of a name.
    pub fn request(&mut self, host: &str, now: Instant) -> Next {
        if !self.all.contains_key(host) && !self.make_room() {
            return Next::Full;
        }
        let name = self.all.entry(host.to_owned()).or_insert_with(|| Name::new(now));
        name.used = now;
        if let Some(known) = name.known(now) {
            return Next::Known(known);
        }
        let (sender, answer) = oneshot::channel();
        name.waiters.retain(|waiter| !waiter.is_closed());
        name.waiters.push(sender);
        let mut is_new_thread = false;
        if name.started.is_none() {
            name.started = Some(now);
            self.waiting.push_back(host.to_owned());
            is_new_thread = self.threads < THREADS_MAX;
            self.threads += usize::from(is_new_thread);
        }
        Next::Wait { answer, is_new_thread }
    }

    /// If the table is full, removes the name that was not used for longest. Returns false if all
    /// names are being looked up.
    fn make_room(&mut self) -> bool {
        if self.all.len() < NAMES_MAX {
            return true;
        }
        let idle = self.all.iter().filter(|(_, name)| name.started.is_none());
        let oldest = idle.min_by_key(|(_, name)| name.used).map(|(host, _)| host.clone());
        oldest.is_some_and(|host| self.all.remove(&host).is_some())
    }

    /// Returns the last addresses of a name, if they are not older than [`STALE`].
    pub fn stale(&self, host: &str, now: Instant) -> Option<Vec<SocketAddr>> {
        self.all.get(host)?.stale(now)
    }

    /// Returns the next name to look up. `None`: no name waits, and the calling thread must end.
    pub fn take(&mut self) -> Option<String> {
        let host = self.waiting.pop_front();
        if host.is_none() {
            self.threads -= 1;
        }
        host
    }

    /// Stores the result of a look-up and sends it to the waiting callers.
    pub fn end(&mut self, host: &str, found: io::Result<Vec<SocketAddr>>) {
        let Some(name) = self.all.get_mut(host) else { return };
        let started = name.started.take().unwrap_or(name.used);
        let answer = match found {
            Ok(found) if found.is_empty() => {
                Err(Failure { kind: io::ErrorKind::NotFound, message: "no address".to_owned() })
            }
            Ok(found) => Ok(found),
            Err(error) => Err(Failure { kind: error.kind(), message: error.to_string() }),
        };
        match &answer {
            Ok(found) => (name.found, name.failed) = (Some((found.clone(), started)), None),
            Err(failure) => name.failed = Some((failure.clone(), started)),
        }
        for waiter in name.waiters.drain(..) {
            // Some gave up.
            waiter.send(answer.clone()).ok();
        }
    }

    /// Handles a thread that could not be started. Without any other thread, waiting callers get an
    /// error at their time limit, and the next caller tries to start a thread.
    pub fn has_no_thread(&mut self) {
        self.threads -= 1;
        if self.threads == 0 {
            for host in self.waiting.drain(..) {
                if let Some(name) = self.all.get_mut(&host) {
                    (name.started, name.waiters) = (None, Vec::new());
                }
            }
        }
    }
}
