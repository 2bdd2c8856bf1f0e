//! Tests of a process that gives up its rights. The kernel must deny each right.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use super::{Limits, State, enter};

/// Environment variable with the test folder. A process with this variable gives up its rights.
const FOLDER: &str = "TINBOX_TEST_CONFINED";
/// Environment variable with the path of the program that the process may execute.
const PROGRAM: &str = "TINBOX_TEST_PROGRAM";

/// Runs the test `test` again in a separate process.
fn in_own_process(test: &str, variables: &[(&str, &Path)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("confinement::tests::{test}"), "--exact", "--nocapture"]);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

fn limits(folder: &Path, programs: Vec<PathBuf>) -> Limits {
    let writable = vec![folder.join("state"), folder.join("absent")];
    let devices = vec!["/dev/null".into()];
    Limits { capabilities: CapabilitySet::NET_RAW, writable, devices, programs }
}

fn refusal<T>(result: io::Result<T>) -> io::ErrorKind {
    result.err().map_or(io::ErrorKind::Other, |error| error.kind())
}

#[test]
fn a_confined_process_is_refused_what_it_gave_up() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("state/below")).unwrap();
        fs::write(folder.path().join("other"), "as it was").unwrap();
        let test = "a_confined_process_is_refused_what_it_gave_up";
        return in_own_process(test, &[(FOLDER, folder.path())]);
    };
    let mut files = getrlimit(Resource::Nofile);
    files.current = Some(256);
    setrlimit(Resource::Nofile, files).unwrap();
    let refused = enter(&limits(&folder, Vec::new()));
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(getrlimit(Resource::Nofile).current, files.maximum);
    let denied = io::ErrorKind::PermissionDenied;
    // Later threads are restricted too. The C library starts them without clone3.
    std::thread::spawn(move || {
        let state = folder.join("state");
        fs::write(state.join("new"), "text").unwrap();
        fs::rename(state.join("new"), state.join("below/moved")).unwrap();
        fs::write("/dev/null", "text").unwrap();
        assert_eq!(refusal(fs::write(folder.join("other"), "changed")), denied);
        assert_eq!(refusal(fs::File::create(folder.join("made"))), denied);
        assert_eq!(refusal(fs::remove_file(folder.join("other"))), denied);
        assert_eq!(fs::read_to_string(folder.join("other")).unwrap(), "as it was");
        assert_eq!(refusal(Command::new("/bin/true").status()), denied);
        let others =
            [libc::AF_ALG, libc::AF_VSOCK, libc::AF_KEY].map(|it| u16::try_from(it).unwrap());
        for family in others.map(AddressFamily::from_raw) {
            assert_eq!(socket(family, SocketType::DGRAM, None).err(), Some(Errno::PERM));
        }
        let uevents = Some(rustix::net::netlink::KOBJECT_UEVENT);
        let netlink = |protocol| socket(AddressFamily::NETLINK, SocketType::RAW, protocol).err();
        assert_eq!((netlink(None), netlink(uevents)), (None, Some(Errno::PERM)));
        for family in [AddressFamily::UNIX, AddressFamily::INET, AddressFamily::INET6] {
            socket(family, SocketType::DGRAM, None).unwrap();
        }
        let named = rustix::system::sethostname(b"other");
        assert_eq!(named.err(), Some(Errno::PERM));
        let own = capabilities(None).unwrap();
        assert_eq!(own.permitted.difference(CapabilitySet::NET_RAW), CapabilitySet::empty());
        assert_eq!(own.effective, own.permitted);
        let state = State::read();
        assert!(state.no_new_privileges && state.no_dumps, "{state}");
        assert!(state.filters >= 2 && state.landlock >= 2, "{state}");
    })
    .join()
    .unwrap();
}

/// Test of a guest, which executes itself again after a restore and stays restricted.
#[test]
fn a_guest_starts_its_own_program_and_no_other() {
    let (Some(folder), Some(program)) = (std::env::var_os(FOLDER), std::env::var_os(PROGRAM))
    else {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let test = "a_guest_starts_its_own_program_and_no_other";
        let program = fs::canonicalize("/bin/true").unwrap();
        return in_own_process(test, &[(FOLDER, folder.path()), (PROGRAM, &program)]);
    };
    let loader = "/lib64/ld-linux-x86-64.so.2".into();
    let refused = enter(&limits(Path::new(&folder), vec![program.clone().into(), loader]));
    assert!(refused.is_empty(), "{refused:?}");
    let status = std::thread::spawn(move || Command::new(program).status()).join().unwrap();
    assert!(status.unwrap().success());
    let other = std::thread::spawn(|| Command::new("/bin/ls").status()).join().unwrap();
    assert_eq!(refusal(other), io::ErrorKind::PermissionDenied);
}
