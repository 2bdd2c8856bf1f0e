//! A client in Java, the applier of a GitOps tool and an operator, while the box is killed with
//! SIGKILL. Each runs against a real server first, without the kill, and must print the same lines
//! for the box.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use peers::{Cluster, ClusterConfig, Kubectl, Tinboxd, built, find};

use crate::clients::define;

/// Output line by which a program requests a restart of its server.
const RESTART: &str = "restart";
/// Options of the JVM that make a short program cheap.
const JVM: [&str; 3] = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"];

/// Runs a program to its end and returns its lines. The program gets a line back for each
/// [`RESTART`], once `restart` returns.
fn lines(server: &str, command: Command, mut restart: impl FnMut()) -> Vec<String> {
    // The program ends together with this test.
    let mut whole = Command::new("setpriv");
    whole.args(["--pdeathsig", "KILL"]).arg(command.get_program()).args(command.get_args());
    whole.env_clear();
    whole.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = whole.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut replies = child.stdin.take().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == RESTART {
            restart();
            // A program that has ended reports its error by its exit status.
            let _ = writeln!(replies, "back");
        } else {
            lines.push(line);
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success(), "against {server}: {status}\n{}", lines.join("\n"));
    lines
}

/// Runs a program against a real server and against the box, and compares what it prints.
fn compare(program: impl Fn(&Kubectl) -> Command) {
    let mut cluster = Cluster::start(&ClusterConfig::default()).unwrap();
    define(&cluster.kubectl().unwrap());
    cluster.start_controllers().unwrap();
    let real = lines("a real server", program(&cluster.kubectl().unwrap()), || ());
    drop(cluster);
    let mut tinboxd = Tinboxd::start().unwrap();
    define(&tinboxd.kubectl().unwrap());
    let command = program(&tinboxd.kubectl().unwrap());
    let ours = lines("the box", command, || tinboxd.restart().unwrap());
    assert_eq!(ours.join("\n"), real.join("\n"), "the box (left) and a real server (right)");
}

fn controller(name: &str) {
    let program = built("controllers", &[]).unwrap().remove(0);
    compare(|kubectl| {
        let mut command = Command::new(&program);
        kubectl.lend(&mut command);
        command.arg(name);
        command
    });
}

#[test]
fn a_java_client_with_informers_outlives_a_kill() {
    let java = find("java", "default-jre-headless").unwrap();
    let folder = built("fabric8", &[]).unwrap().remove(0);
    let classes = format!("{0}/classes:{0}/jars/*", folder.display());
    compare(|kubectl| {
        let mut command = Command::new(&java);
        kubectl.lend(&mut command);
        // Vert.x unpacks files in the folder for temporary files.
        let home = command.get_envs().find(|(name, _)| *name == "HOME").unwrap().1.unwrap();
        let temporary = format!("-Djava.io.tmpdir={}", home.display());
        command.args(JVM).arg(temporary).args(["-cp", &classes, "Client"]);
        command
    });
}

#[test]
fn a_gitops_applier_finds_all_unchanged_after_a_kill() {
    controller("flux");
}

#[test]
fn an_operator_loses_no_object_in_a_kill() {
    controller("operator");
}
