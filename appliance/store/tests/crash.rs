//! Crashes by `kill -9` during writes. A child process (this program again) writes and reports each
//! acknowledged revision, and is killed at random times. A reopened store must have every reported
//! revision. `CRASH_SEED` chooses other times.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use store::{Key, Options, SealingKey, Store};

const NAME: &str = "crash_kill_9";
/// Default seed; overridden by `CRASH_SEED`.
const SEED: u64 = 1;
/// Minimum number of rounds of a run.
const ROUNDS: u32 = 100;
/// Minimum number of acknowledged writes of a run; more rounds follow until it is reached.
const WRITES: u64 = 10_000;
const RESOURCE: &str = "crash/records";
const TASKS: u64 = 8;
/// Number of objects of one task; small, so that they are replaced and deleted too.
const OBJECTS: u64 = 7;
/// Interval, in rounds, at which a round begins without a file, so that creation is interrupted
/// too.
const FRESH: u32 = 10;
/// Maximum number of unread acknowledgments; a child with more must wait.
const MAX_UNREAD: usize = 65_536;
/// Time limit for a child's first acknowledgment, and for an unattended child.
const CHILD_LIMIT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path, round] = arguments.as_slice()
        && flag == "--child"
    {
        return child(Path::new(path), round);
    }
    if !wanted(&arguments) {
        return ExitCode::SUCCESS;
    }
    let seed = match std::env::var("CRASH_SEED") {
        Ok(seed) => seed.parse().expect("CRASH_SEED is a number"),
        Err(_) => SEED,
    };
    println!("{NAME}: CRASH_SEED={seed}");
    let started = Instant::now();
    let mut rack = Rack::new(seed);
    let mut rounds = 0;
    while rounds < ROUNDS || rack.total < WRITES {
        rack.round(rounds);
        rounds += 1;
    }
    println!(
        "{NAME}: ok, {rounds} rounds, {} acknowledged writes, {} in flight survived, {:.1} s",
        rack.total,
        rack.survivors,
        started.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}

/// Returns true if the arguments, read as a test harness does, select this test. `--list` prints
/// its name, and `--ignored` selects no test, because none is ignored.
fn wanted(arguments: &[String]) -> bool {
    let mut filters = Vec::new();
    let mut skipped = Vec::new();
    let (mut is_list, mut is_exact, mut is_ignored) = (false, false, false);
    let mut rest = arguments.iter();
    while let Some(one) = rest.next() {
        match one.as_str() {
            "--list" => is_list = true,
            "--exact" => is_exact = true,
            "--ignored" => is_ignored = true,
            "--skip" => skipped.extend(rest.next()),
            "--test-threads" | "--color" | "--format" | "--logfile" => drop(rest.next()),
            flag if flag.starts_with('-') => {}
            _ => filters.push(one),
        }
    }
    let fits = |filter: &&String| match is_exact {
        true => NAME == filter.as_str(),
        false => NAME.contains(filter.as_str()),
    };
    let is_chosen = filters.is_empty() || filters.iter().any(fits);
    let is_wanted = is_chosen && !is_ignored && !skipped.iter().any(fits);
    if is_list && is_wanted {
        println!("{NAME}: test");
    }
    is_wanted && !is_list
}

/// Writes until killed. Prints a line for each acknowledged write: revision, name, value (`-` if
/// deleted).
fn child(path: &Path, round: &str) -> ExitCode {
    let store = Store::open(path, options()).expect("the store opens");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let runtime = runtime.expect("a runtime");
    for task in 0..TASKS {
        let store = store.clone();
        let round = round.to_owned();
        runtime.spawn(async move {
            for number in 0.. {
                let name = format!("{task}-{}", number % OBJECTS);
                let value =
                    format!("{round}/{task}/{number}/{}", "x".repeat(number as usize % 900));
                let object = key(&name);
                let delete = number % 5 == 4;
                let bytes = value.clone().into_bytes();
                let write = store.write(move |txn| match delete {
                    true => txn.delete(&object),
                    false => Ok(Some(txn.put(object, bytes))),
                });
                let outcome = write.await.expect("a commit").expect("a readable store");
                if let Some(revision) = outcome {
                    let value = if delete { "-" } else { &value };
                    let line = format!("{revision} {name} {value}\n");
                    // One call, so that a kill cannot tear the line.
                    std::io::stdout().write_all(line.as_bytes()).expect("the parent reads");
                }
            }
        });
    }
    std::thread::sleep(CHILD_LIMIT);
    ExitCode::FAILURE
}

/// Options with a short log, so that it is often trimmed, and with encrypted values.
fn options() -> Options {
    let sealing_key = Some(SealingKey::new(&[7; 32]));
    let sealed = vec![RESOURCE.to_owned()];
    Options { log_entries: 500, sealing_key, sealed, ..Options::default() }
}

fn key(name: &str) -> Key {
    Key::new(RESOURCE, "default", name)
}

/// Write that the store acknowledged.
#[derive(Clone, Debug, PartialEq)]
struct Acknowledged {
    revision: u64,
    name: String,
    /// Written value; `None` if the object was deleted.
    value: Option<Vec<u8>>,
}

struct Rack {
    folder: tempfile::TempDir,
    random: u64,
    /// Last acknowledged write of each object.
    last: HashMap<String, Acknowledged>,
    /// Acknowledged writes by revision.
    by_revision: BTreeMap<u64, Acknowledged>,
    total: u64,
    survivors: u64,
}

impl Rack {
    fn new(seed: u64) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            // Never 0, and neighboring seeds differ in most bits.
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1),
            last: HashMap::new(),
            by_revision: BTreeMap::new(),
            total: 0,
            survivors: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.redb")
    }

    /// Returns a number below `limit` (xorshift64).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % limit
    }

    fn round(&mut self, round: u32) {
        if round.is_multiple_of(FRESH) {
            let _ = std::fs::remove_file(self.path());
            self.last.clear();
            self.by_revision.clear();
        }
        let before = self.by_revision.last_key_value().map_or(0, |(revision, _)| *revision);
        // One in four dies while it creates the file or repairs it after the last kill.
        let lines = match self.below(4) {
            0 => 0,
            _ => 1 + self.below(400),
        };
        let pause = Duration::from_micros(self.below(if lines == 0 { 12_000 } else { 3_000 }));
        for acknowledged in self.kill(round, lines, pause) {
            assert!(acknowledged.revision > before, "round {round}: {acknowledged:?} came again");
            let name = acknowledged.name.clone();
            let newer = self.last.get(&name).is_none_or(|l| l.revision < acknowledged.revision);
            assert!(newer, "round {round}: {acknowledged:?} is older than one before it");
            self.last.insert(name, acknowledged.clone());
            let twice = self.by_revision.insert(acknowledged.revision, acknowledged);
            assert_eq!(twice, None, "round {round}: one revision was given out twice");
            self.total += 1;
        }
        self.verify(round);
    }

    /// Starts a child, kills it `pause` after its line number `lines`, and returns the writes that
    /// it reported.
    fn kill(&self, round: u32, lines: u64, pause: Duration) -> Vec<Acknowledged> {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .arg("--child")
            .arg(self.path())
            .arg(round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child process");
        let output = read(child.stdout.take().expect("its output"));
        let mut reported = Vec::new();
        let deadline = Instant::now() + CHILD_LIMIT;
        while (reported.len() as u64) < lines {
            match output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(acknowledged) => reported.push(acknowledged),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("round {round}: the child ended: {:?}", child.wait())
                }
            }
        }
        // The moment of the fault, not a wait for anything.
        std::thread::sleep(pause);
        child.kill().expect("the child is ours to kill");
        child.wait().expect("it ends");
        reported.extend(output.iter());
        assert!(reported.len() as u64 >= lines, "round {round}: the child hung");
        reported
    }

    fn verify(&mut self, round: u32) {
        let store = Store::open(&self.path(), options())
            .unwrap_or_else(|error| panic!("round {round}: {}", stdx::chain(&error)));
        let checked = store.check().unwrap_or_else(|error| panic!("round {round}: {error}"));
        let highest = self.by_revision.last_key_value().map_or(0, |(revision, _)| *revision);
        assert!(checked.revision >= highest, "round {round}: revision {highest} is lost");
        let log = changes(&store, checked.floor, checked.revision);
        for (revision, logged) in &log {
            match self.by_revision.get(revision) {
                Some(acknowledged) => assert_eq!(logged, acknowledged, "round {round}"),
                None => self.survivors += 1,
            }
        }
        for (name, acknowledged) in &self.last {
            // A later write of the same object may have reached the disk without an answer.
            let newest = log.values().rev().find(|logged| logged.name == *name);
            let expected = newest.unwrap_or(acknowledged);
            assert!(expected.revision >= acknowledged.revision, "round {round}: {acknowledged:?}");
            let found = store.get(&key(name)).expect("a readable store");
            let found = found.map(|stored| (stored.revision, stored.value.to_vec()));
            let expected = expected.value.clone().map(|value| (expected.revision, value));
            assert_eq!(found, expected, "round {round}: {name}");
        }
        // Unacknowledged writes that survived count as acknowledged from now on.
        for (revision, logged) in log {
            self.last.insert(logged.name.clone(), logged.clone());
            self.by_revision.insert(revision, logged);
        }
    }
}

/// Returns the changes of the log after revision `floor`.
fn changes(store: &Store, floor: u64, revision: u64) -> BTreeMap<u64, Acknowledged> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let mut watch = store.watch(RESOURCE, None, floor).expect("the log reaches its floor");
        let mut changes = BTreeMap::new();
        while watch.revision() < revision {
            let next = tokio::time::timeout(CHILD_LIMIT, watch.next()).await;
            let change = next.expect("a change in time").expect("a readable log");
            let value = change.current().map(|stored| stored.value.to_vec());
            let name = change.key.name;
            let revision = change.revision;
            changes.insert(revision, Acknowledged { revision, name, value });
        }
        changes
    })
}

/// Returns the writes that the child reports; drops an incomplete last line.
fn read(output: std::process::ChildStdout) -> Receiver<Acknowledged> {
    let (sender, receiver) = sync_channel(MAX_UNREAD);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|length| length > 0) && line.ends_with('\n') {
            let mut words = line.trim_end().splitn(3, ' ');
            let mut word = || words.next().expect("three words a line").to_owned();
            let revision = word().parse().expect("a revision");
            let (name, value) = (word(), word());
            let value = (value != "-").then(|| value.into_bytes());
            if sender.send(Acknowledged { revision, name, value }).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}
