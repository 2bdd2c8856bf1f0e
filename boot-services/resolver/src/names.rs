//! Names that are known, and names that are looked up.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{FAILED, FRESH, NAMES_MAX, STALE, THREADS_MAX, WAIT};

/// An error that can be cloned for many callers.
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

/// Next step of a caller.
pub enum Next {
    /// The result is known.
    Known(io::Result<Vec<SocketAddr>>),
    /// The caller waits for a look-up.
    Wait {
        /// The answer comes here.
        answer: oneshot::Receiver<Answer>,
        /// True if the caller must start a thread first.
        is_new_thread: bool,
    },
    /// Too many names are looked up.
    Full,
}

/// State of one name.
struct Name {
    /// Last addresses, with the time of their look-up.
    found: Option<(Vec<SocketAddr>, Instant)>,
    /// Failure of the last look-up, with its time.
    failed: Option<(Failure, Instant)>,
    /// Begin of the look-up under way.
    started: Option<Instant>,
    /// Callers that wait for the look-up.
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

    /// The answer that needs no look-up, or no longer one.
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

/// All names; bounded by [`NAMES_MAX`].
#[derive(Default)]
pub struct Names {
    all: HashMap<String, Name>,
    /// Names whose look-up no thread has begun.
    waiting: VecDeque<String>,
    threads: usize,
}

impl Names {
    /// A caller wants to know a name.
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

    /// Forgets the name that was not used for longest, when there are too many. False when all of
    /// them are looked up.
    fn make_room(&mut self) -> bool {
        if self.all.len() < NAMES_MAX {
            return true;
        }
        let idle = self.all.iter().filter(|(_, name)| name.started.is_none());
        let oldest = idle.min_by_key(|(_, name)| name.used).map(|(host, _)| host.clone());
        oldest.is_some_and(|host| self.all.remove(&host).is_some())
    }

    /// Old addresses of a name, while there is no newer result.
    pub fn stale(&self, host: &str, now: Instant) -> Option<Vec<SocketAddr>> {
        self.all.get(host)?.stale(now)
    }

    /// Next name to look up. The thread ends if there is none.
    pub fn take(&mut self) -> Option<String> {
        let host = self.waiting.pop_front();
        if host.is_none() {
            self.threads -= 1;
        }
        host
    }

    /// A look-up has ended.
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

    /// Handles a thread that could not be started: waiting callers get an error at their time
    /// limit, and the next caller tries again.
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
