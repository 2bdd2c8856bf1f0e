//! kubectl against the box and against a real kube-apiserver: the same commands on the same objects
//! must print the same.
//!
//! `tests/peers/scripts/*.steps` hold the commands, `tests/peers/differences.md` the accepted
//! differences with their reasons. A difference that is not listed fails the test, and so does a
//! listed one that no longer exists. `KUBECTL_VERSIONS=1.27,1.37` selects versions of kubectl, and
//! `KUBECTL_VERSIONS=all` every version in the list; the default is the server's own version.
//! `UPDATE=1` rewrites the list with all versions. `COMPARE=get,apply` selects scripts, for
//! debugging. `AGAINST=real` compares two real servers: a difference is then an error of a script.
//! The real server's output is cached beside the built programs; `AGAIN=1` ignores the cache.

mod differences;
mod normal;
mod remembered;
mod script;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use peers::{Cluster, ClusterConfig, Kubectl, Tinboxd, built};

use differences::Difference;
use remembered::Remembered;
use script::{Place, Script, Transcript};

use crate::definitions;

/// The versions: the oldest that requests OpenAPI v2 in protobuf only, the last that sends JSON
/// bodies, the server's own, the newest.
const VERSIONS: [&str; 4] = ["1.27", "1.31", "1.35", "1.37"];
/// The server's own version: the only one of `make test`, because each costs minutes to build.
const OWN: &str = "1.35";

/// The folder with scripts, definitions and differences.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// True when the environment's list of scripts has `name`, or there is no list.
fn chosen(name: &str) -> bool {
    std::env::var("COMPARE").map_or(true, |list| list.split(',').any(|one| one == name))
}

/// The versions that the environment chooses.
fn versions() -> Vec<&'static str> {
    let updates = golden::updates();
    let list = std::env::var("KUBECTL_VERSIONS").unwrap_or_default();
    let list = if updates { "all" } else { &list };
    match list {
        "" => vec![OWN],
        "all" => VERSIONS.to_vec(),
        some => some.split(',').map(known).collect(),
    }
}

/// The version of [`VERSIONS`] with this name.
fn known(name: &str) -> &'static str {
    let known = VERSIONS.into_iter().find(|one| *one == name);
    known.unwrap_or_else(|| panic!("KUBECTL_VERSIONS: expected some of {VERSIONS:?}, found {name}"))
}

/// A run that is still to do: a script, a version of kubectl, and the server: `real` or `ours`.
struct Task<'a> {
    script: &'a Script,
    version: &'a str,
    program: &'a Path,
    side: &'static str,
}

#[test]
fn kubectl_prints_the_same_as_with_a_real_server() {
    let versions = versions();
    println!("KUBECTL_VERSIONS={}", versions.join(","));
    let programs = built("kubectl", &versions).unwrap();
    let scripts: Vec<Script> = Script::all(&folder().join("scripts"));
    let scripts: Vec<Script> = scripts.into_iter().filter(|one| chosen(&one.name)).collect();
    assert!(!scripts.is_empty(), "no script is chosen");

    let remembered = Remembered::open(&definitions(), &folder().join("scripts"));
    let (mut tasks, mut transcripts) = (VecDeque::new(), BTreeMap::new());
    for script in &scripts {
        for (version, program) in versions.iter().zip(&programs) {
            tasks.push_back(Task { script, version, program, side: "ours" });
            match remembered.find(script, program) {
                Some(transcript) => {
                    transcripts.insert((script.name.as_str(), *version, "real"), transcript);
                }
                None => tasks.push_back(Task { script, version, program, side: "real" }),
            }
        }
    }
    let peers = Peers::start(tasks.iter().any(|task| task.side == "real"));
    transcripts.extend(run_all(tasks, &peers, &remembered));
    let found = differences_of(&scripts, &versions, &transcripts);
    let list = differences::List { file: folder().join("differences.md"), versions: &VERSIONS };
    let expected = |one: &Difference| scripts.iter().any(|script| script.name == one.script);
    list.settle(&found, &versions, expected);
}

type Transcripts<'a> = BTreeMap<(&'a str, &'a str, &'static str), Transcript>;

/// Runs the tasks, with enough of them in parallel to use all processors.
fn run_all<'a>(
    tasks: VecDeque<Task<'a>>,
    peers: &Peers,
    remembered: &Remembered,
) -> Transcripts<'a> {
    let start = Instant::now();
    let workers = std::thread::available_parallelism().map_or(4, |cores| cores.get() * 2);
    let homes = tempfile::TempDir::with_prefix("compare-").unwrap();
    let (tasks, done) = (Mutex::new(tasks), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let Some(task) = tasks.lock().unwrap().pop_front() else { return };
            let Task { script, version, program, side } = task;
            let peer = peers.get(side);
            let home = homes.path().join(format!("{side}-{version}"));
            let place = Place::new(script, version, program, &peer.url, &peer.kubeconfig, home);
            let transcript = script.run(&place);
            if side == "real" {
                remembered.keep(script, program, &transcript);
            }
            done.lock().unwrap().insert((script.name.as_str(), version, side), transcript);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    eprintln!("every script has ended after {} s", start.elapsed().as_secs());
    done.into_inner().unwrap()
}

/// Saves the output where a person can compare it with other tools.
fn keep(script: &Script, version: &str, side: &str, transcript: &Transcript) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("comparison").join(side);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{}-{version}.txt", script.name));
    fs::write(file, script.render(transcript)).unwrap();
}

fn differences_of(
    scripts: &[Script],
    versions: &[&str],
    transcripts: &Transcripts<'_>,
) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    for ((name, version, side), transcript) in transcripts {
        let script = scripts.iter().find(|script| script.name == *name).unwrap();
        keep(script, version, side, transcript);
    }
    for script in scripts {
        for (at, step) in script.steps.iter().enumerate() {
            for version in versions {
                let said = |side| &transcripts[&(script.name.as_str(), *version, side)][at];
                let (real, ours) = (said("real"), said("ours"));
                if real == ours {
                    continue;
                }
                differences::add(&mut found, &script.name, &step.command, version, real, ours);
            }
        }
    }
    found
}

/// A server with the definitions of every kind that the scripts use.
struct Peer {
    url: String,
    kubeconfig: PathBuf,
    _server: Server,
}

/// Owner of the running server; dropping it ends the server.
#[expect(dead_code, reason = "each is ended by being dropped")]
enum Server {
    Real(Cluster),
    Ours(Tinboxd),
}

impl Peer {
    fn real() -> Self {
        let mut cluster = Cluster::start(&ClusterConfig::default()).unwrap();
        define(&cluster.kubectl().unwrap(), &definitions());
        cluster.start_controllers().unwrap();
        let (url, kubeconfig) = (cluster.url().to_owned(), cluster.kubeconfig());
        Self { url, kubeconfig, _server: Server::Real(cluster) }
    }

    fn ours() -> Self {
        let tinboxd = Tinboxd::start().unwrap();
        define(&tinboxd.kubectl().unwrap(), &[own_definitions()]);
        let (url, kubeconfig) = (tinboxd.url(), tinboxd.kubeconfig());
        Self { url, kubeconfig, _server: Server::Ours(tinboxd) }
    }
}

/// The servers of a run.
struct Peers {
    real: Option<Peer>,
    ours: Peer,
}

impl Peers {
    /// Starts the servers; the real one only when a script needs it.
    fn start(with_real: bool) -> Self {
        std::thread::scope(|scope| {
            let ours = scope.spawn(|| match std::env::var("AGAINST").as_deref() {
                Ok("real") => Peer::real(),
                _ => Peer::ours(),
            });
            let real = with_real.then(Peer::real);
            Self { real, ours: ours.join().unwrap() }
        })
    }

    fn get(&self, side: &str) -> &Peer {
        match (side, &self.real) {
            ("real", Some(real)) => real,
            _ => &self.ours,
        }
    }
}

/// The definitions of the tests' own kinds.
fn own_definitions() -> PathBuf {
    folder().join("scripts/widgets.yaml")
}

/// Definitions of the tests' own kinds and of the kinds built into the box.
fn definitions() -> Vec<PathBuf> {
    let mut files = definitions::files();
    files.push(own_definitions());
    files.sort();
    files
}

fn define(kubectl: &Kubectl, files: &[PathBuf]) {
    let mut arguments = vec!["create".to_owned()];
    arguments.extend(files.iter().map(|file| format!("--filename={}", file.display())));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let created = kubectl.run(&arguments, "").unwrap();
    assert!(created.success, "{}", created.err);
    let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"];
    let waited = kubectl.run(&wait, "").unwrap();
    assert!(waited.success, "{}", waited.err);
}
