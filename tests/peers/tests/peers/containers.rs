//! Container images: a stock registry, the box's registry in front of it, and the agent that runs
//! the images. Needs root, for namespaces and mounts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use agent::actions::{Action, Limits, Outcome};
use agent_rpc::Assignment;
use artifact_cache::registry::{Mirror, Reference};
use artifact_cache::{HttpOrigin, fake};
use hyper_util::client::legacy::connect::HttpConnector;
use imaging::Meter;
use netboot::http::{HttpService, registry_router, serve};
use netboot::{FetchEvent, Observer};
use stdx::testing::{PATIENCE, Wait};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::registry::Registry;

const NAME: &str = "tools/busybox:v1";
/// Environment variable that is set inside the test's own namespaces.
const INSIDE: &str = "TINBOX_TEST_IS_INSIDE";
/// Mounts the agent's own folder, then runs the test. The shell stays, to reap orphaned processes.
const NAMESPACE: &str = "mkdir -p /run/tinbox-agent && \
    mount -t tmpfs tmpfs /run/tinbox-agent && \"$@\"; exit $?";

struct Nobody;

impl Observer for Nobody {
    fn fetched(&self, _: FetchEvent) {}
}

/// The box's registry, which offers one image of a stock registry.
struct Rack {
    upstream: Registry,
    /// `host:port` of the box's registry.
    at: String,
    /// Digest of the index as it was pushed.
    digest: String,
    out: TempDir,
    _running: DropGuard,
}

impl Rack {
    async fn start(user: &str) -> Self {
        let upstream = Registry::without_port();
        let digest = upstream.push_image(NAME, user);
        let origin = HttpOrigin::new(HttpConnector::new());
        let origin = Arc::new(origin.with_plain_registries([upstream.host.clone()]));
        let folder = upstream.cache_folder();
        let cache = fake::cache(&folder, origin.clone()).unwrap();
        let mirror = Mirror::new(cache, &folder, origin, []).unwrap();
        mirror.offer([Reference::of_image(&format!("{}/{NAME}", upstream.host)).unwrap()]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let shutdown = CancellationToken::new();
        let router = registry_router(Some(mirror), Arc::new(Nobody));
        tokio::spawn(serve(listener, HttpService::from(router), shutdown.clone()));
        let out = tempfile::tempdir().unwrap();
        fs::set_permissions(out.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
        Self { upstream, at, digest, out, _running: shutdown.drop_guard() }
    }

    /// An action of the image whose shell runs `script`, with the folder `/out` for its results.
    fn action(&self, script: &str, more: impl FnOnce(&mut Assignment)) -> Action {
        let mut assignment = Assignment {
            image: format!("{}/{NAME}", self.upstream.host),
            command: vec!["-c".to_owned(), script.to_owned()],
            environment: vec!["SHAPE=square".to_owned(), "SECRET=s3cret".to_owned()],
            volumes: vec![format!("{}:/out", self.out.path().display())],
            ..Assignment::default()
        };
        more(&mut assignment);
        let limits = Limits { registry: Some(self.at.as_str().into()), ..Limits::MACHINE };
        Action::parse(&assignment, limits).unwrap()
    }

    async fn run(&self, script: &str) -> Result<String, String> {
        run(self.action(script, |_| {})).await
    }

    fn left(&self, name: &str) -> String {
        let path = self.out.path().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

async fn run(action: Action) -> Result<String, String> {
    let meter = Arc::new(Meter::default());
    match tokio::time::timeout(PATIENCE, action.run(&meter)).await.unwrap() {
        Ok(Outcome::Done(message)) => Ok(message),
        Ok(Outcome::Leave(how)) => panic!("{how:?}"),
        Err(error) => Err(stdx::chain(&error)),
    }
}

/// Runs a test again, alone in a mount and a PID namespace, so that all mounts and processes there
/// are its own. Returns true in this second run, and false to the first run after the second has
/// passed.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut unshare = Command::new(peers::find("unshare", "util-linux").unwrap());
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    unshare.args(["sh", "-c", NAMESPACE, "sh"]).arg(std::env::current_exe().unwrap());
    unshare.args(["--exact", &format!("containers::{test}"), "--nocapture"]).env(INSIDE, "1");
    let output = unshare.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{test} inside:\n{said}");
    false
}

/// Processes whose command line has these words.
fn processes(words: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    let told = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    told.filter(|line| line.contains(words) && line.contains("sleep")).count()
}

async fn wait(what: &str, until: impl Fn() -> bool) {
    let wait = Wait::new(what);
    while !until() {
        tokio::time::sleep(wait.pause()).await;
    }
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_run_as_upstreams_agent_would() {
    if !is_inside("an_image_is_run_as_upstreams_agent_would") {
        return;
    }
    let rack = Rack::start("").await;
    let before = mounts();
    let script = "exec >/out/seen; pwd; echo $COLOUR $SHAPE $SECRET $HOME; id -u; echo $$; \
        ls /proc | head -1; test -c /dev/null && test -d /sys/kernel && echo kernel; \
        test -d /dev/shm && echo shm; cat /etc/resolv.conf >/out/resolv; \
        ls / >/out/root; ls /lower /deep /deep/* /usr/lib >/out/tree; \
        stat -c %h /hard >/out/links; stat -c %F /folder-then-file /gone /link-then-folder /lib \
        >/out/kinds; /greet; echo said >&2; readlink /proc/1/exe";
    let message = rack.run(script).await.unwrap();
    let name = format!("ran {}/{NAME} (", rack.upstream.host);
    assert!(message.starts_with(&name) && message.contains("fetched"), "{message}");
    let seen = rack.left("seen");
    let wanted = "/srv/here\ngreen square s3cret /root\n0\n1\n1\nkernel\nshm\nhello from green\n\
        /bin/busybox\n";
    assert_eq!(seen, wanted);
    assert_eq!(rack.left("resolv"), fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
    let root: BTreeSet<String> = rack.left("root").lines().map(str::to_owned).collect();
    for name in ["gone", "hard", "greet", "absolute", "folder-then-file", "out"] {
        assert!(root.contains(name), "{name}: {root:?}");
    }
    assert!(!rack.left("root").contains(".wh."), "{root:?}");
    let tree = rack.left("tree");
    assert_eq!(
        tree,
        "/deep/new\n/deep/newer\n\n/deep:\nnew\nnewer\n\n/lower:\nb\n\n/usr/lib:\nsame\nthrough\n"
    );
    assert_eq!(rack.left("links"), "2\n");
    assert_eq!(rack.left("kinds"), "regular file\nregular file\ndirectory\nsymbolic link\n");
    assert_eq!(mounts(), before, "nothing stays mounted");
    assert_eq!(fs::read_dir("/run/tinbox-agent/container").unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_program_says_why_and_what_it_left_behind_ends() {
    if !is_inside("a_failing_program_says_why_and_what_it_left_behind_ends") {
        return;
    }
    let rack = Rack::start("").await;
    let script = "sleep 98761 & echo first; echo cannot find the frob >&2; exit 3";
    let error = rack.run(script).await.unwrap_err();
    let begins = format!("{}/{NAME} ended with exit status: 3: ", rack.upstream.host);
    assert!(error.starts_with(&begins) && error.contains("cannot find the frob"), "{error}");
    assert_eq!(processes("98761"), 0);
    let error = run(rack.action("", |it| it.command.clear())).await.unwrap_err();
    assert!(error.ends_with("exit status: 9: nothing was asked for"), "{error}");
    let missing =
        rack.action("", |it| it.image = format!("{}:v2", it.image.trim_end_matches(":v1")));
    let error = run(missing).await.unwrap_err();
    assert!(error.contains("is refused: 404") && error.contains("is not available"), "{error}");
    let foreign = rack.action("", |it| it.image = "ghcr.io/a/b:v1".to_owned());
    let error = run(foreign).await.unwrap_err();
    assert!(error.contains("403") && error.contains("no workflow needs ghcr.io/a/b:v1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_is_stopped_leaves_no_process() {
    if !is_inside("an_action_that_is_stopped_leaves_no_process") {
        return;
    }
    let rack = Rack::start("").await;
    for own in [true, false] {
        let script = "(sleep 98762 &) ; touch /out/begun; sleep 98762";
        let action = rack.action(script, |it| it.pid = if own { "" } else { "host" }.to_owned());
        let meter = Arc::new(Meter::default());
        let running = tokio::spawn(async move { action.run(&meter).await });
        let begun = rack.out.path().join("begun");
        wait("it begins", || begun.exists() && processes("98762") >= 2).await;
        running.abort();
        wait("its processes end", || processes("98762") == 0).await;
        fs::remove_file(begun).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_users_and_the_hosts_processes_are_as_asked_for() {
    if !is_inside("volumes_users_and_the_hosts_processes_are_as_asked_for") {
        return;
    }
    let rack = Rack::start("web").await;
    let script = "id >/out/id; echo $HOME >>/out/id";
    rack.run(script).await.unwrap();
    assert_eq!(rack.left("id"), "uid=33(web) gid=34(web) groups=6(disk)\n/srv/web\n");

    let rack = Rack::start("0").await;
    let place = rack.out.path().join("missing/deep");
    let volume = format!("{}:/a/b:ro", place.display());
    let script = "touch /a/b/c || echo refused >/out/ro; ls /proc/self >/dev/null && \
        echo $$ >/out/pid; (sleep 98763 &); true";
    let action = rack.action(script, |it| {
        it.volumes.push(volume);
        it.pid = "host".to_owned();
    });
    run(action).await.unwrap();
    assert!(place.is_dir(), "made as Docker does");
    assert_eq!(rack.left("ro"), "refused\n");
    assert_ne!(rack.left("pid"), "1\n");
    assert_eq!(processes("98763"), 0, "what it left behind among the host's processes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stock_client_pulls_through_the_box_also_while_the_registry_is_away() {
    if !is_inside("a_stock_client_pulls_through_the_box_also_while_the_registry_is_away") {
        return;
    }
    let mut rack = Rack::start("").await;
    let reference = format!("{}/{}/{NAME}", rack.at, rack.upstream.host);
    let pull = |rack: &Rack, folder: &Path| {
        rack.upstream.run(&["pull", &reference, folder.to_str().unwrap()])
    };
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(pull(&rack, first.path()).unwrap(), rack.digest);
    let asked = rack.upstream.asked();
    let blobs =
        asked.iter().filter(|it| it.contains(" GET /v2/") && it.contains("/blobs/")).count();
    assert_eq!(blobs, 5, "two configurations and three layers, once each: {asked:?}");
    rack.upstream.stop();
    assert_eq!(pull(&rack, second.path()).unwrap(), rack.digest);
    let count = |folder: &Path| fs::read_dir(folder.join("blobs/sha256")).unwrap().count();
    assert_eq!((count(first.path()), count(second.path())), (8, 8));
    let message = rack.run("true").await.unwrap();
    assert!(message.starts_with("ran "), "the agent too: {message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn containerd_takes_the_box_for_a_mirror() {
    let rack = Rack::start("").await;
    let pull = |name: &str| {
        let program = peers::built("containerd", &[]).unwrap().remove(0);
        let mut pull = Command::new(program);
        let output = pull.args([&rack.at, &format!("{}/{name}", rack.upstream.host)]).output();
        let output = output.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    };
    assert_eq!(pull(NAME), Ok(rack.digest.clone()));
    let refused = pull("tools/other:v1").unwrap_err();
    assert!(refused.contains("403"), "{refused}");
}
