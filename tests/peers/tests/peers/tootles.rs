//! The box's metadata is equal to Tinkerbell's, byte for byte: the same Hardware in tinboxd and in
//! Tootles itself, with every route of Tootles requested from both by curl.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use peers::{Process, Tinboxd, built, loopback_address, poll};
use stdx::testing::PATIENCE;

/// Range and address of proxies that both servers trust.
const PROXIES: &str = "127.78.0.0/24";
const PROXY: &str = "127.78.0.1";
/// Addresses of the machines of `tootles/hardware.json`; the first machine has two interfaces.
const MACHINES: [&str; 4] = ["127.77.0.11", "127.77.0.21", "127.77.0.12", "127.77.0.13"];
const STRANGER: &str = "127.77.0.99";
/// Every leaf and folder of the tree, without the root.
const TREE: [&str; 20] = [
    "/user-data",
    "/meta-data",
    "/meta-data/instance-id",
    "/meta-data/hostname",
    "/meta-data/local-hostname",
    "/meta-data/iqn",
    "/meta-data/plan",
    "/meta-data/facility",
    "/meta-data/tags",
    "/meta-data/public-ipv4",
    "/meta-data/public-ipv6",
    "/meta-data/local-ipv4",
    "/meta-data/public-keys",
    "/meta-data/operating-system",
    "/meta-data/operating-system/slug",
    "/meta-data/operating-system/distro",
    "/meta-data/operating-system/version",
    "/meta-data/operating-system/image_tag",
    "/meta-data/operating-system/license_activation",
    "/meta-data/operating-system/license_activation/state",
];
/// Paths that neither server has.
const ABSENT: [&str; 6] = [
    "/vendor-data",
    "/meta-data/name",
    "/meta-data/public-keys/0",
    "/meta-data/public-keys/0/openssh-key",
    "/meta-data/plan/x",
    "/dynamic/instance-identity/document",
];

/// Parts of an answer that a client receives.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: String,
    kind: String,
    body: String,
}

/// Tootles, beside the box that has the same Hardware.
struct Pair {
    tinboxd: Tinboxd,
    tootles: SocketAddr,
    _process: Process,
}

impl Pair {
    fn start() -> Self {
        let settings = format!(
            "[metadata]\ninstance_endpoint = true\nuser_data = \"address\"\n\
                     trusted_proxies = [\"{PROXIES}\"]\n"
        );
        let tinboxd = Tinboxd::start_with(&settings).unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tootles/hardware.json");
        let file = file.display().to_string();
        let applied = tinboxd.kubectl().unwrap().run(&["apply", "-f", &file], "").unwrap();
        assert!(applied.success, "{applied:?}");
        let program = built("tootles", &[]).unwrap().remove(0);
        let tootles = SocketAddr::from((loopback_address().unwrap(), 7080));
        let arguments = [tootles.to_string(), file, PROXIES.to_owned()];
        let log = tinboxd.folder().join("tootles.log");
        let process = Process::start(&program, &arguments, &log).unwrap();
        let pair = Self { tinboxd, tootles, _process: process };
        poll("both to know every machine", PATIENCE, || {
            let know = |server| {
                let known = |machine: &&str| ask(server, machine, "/metadata", &[]).status == "200";
                MACHINES.iter().all(known)
            };
            know(pair.tootles) && know(pair.tinboxd(7080))
        })
        .unwrap();
        pair
    }

    fn tinboxd(&self, port: u16) -> SocketAddr {
        SocketAddr::from((self.tinboxd.address(), port))
    }

    /// Sends the same request to Tootles and to both ports of the box, requires equal answers, and
    /// returns the answer.
    fn same(&self, client: &str, path: &str, more: &[&str]) -> Answer {
        let theirs = ask(self.tootles, client, path, more);
        for port in [7080, 50061] {
            let ours = ask(self.tinboxd(port), client, path, more);
            assert_eq!(ours, theirs, "{client} asks {port} for {path} {more:?}");
        }
        theirs
    }
}

/// Sends a request from a source address. Redirects are followed: Tootles redirects its root to the
/// path with a slash.
fn ask(server: SocketAddr, client: &str, path: &str, more: &[&str]) -> Answer {
    let mut curl = Command::new("curl");
    curl.args([
        "-sSL",
        "--max-time",
        "10",
        "--interface",
        client,
        "-w",
        "\n%{http_code} %{content_type}",
    ]);
    let output = curl.args(more).arg(format!("http://{server}{path}")).output();
    let output = output.expect("curl runs: install the package curl");
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, words) = text.rsplit_once('\n').unwrap();
    let (status, kind) = words.split_once(' ').unwrap();
    Answer { status: status.to_owned(), kind: kind.to_owned(), body: body.to_owned() }
}

#[test]
fn every_route_answers_as_tootles_does() {
    let pair = Pair::start();
    let mut routes = vec!["".to_owned(), "/".to_owned()];
    for path in TREE {
        routes.extend([path.to_owned(), format!("{path}/")]);
    }
    let roots = ["/2009-04-04", "/tootles/instanceID/i-full/2009-04-04"];
    for client in MACHINES {
        for (root, route) in roots.iter().flat_map(|root| routes.iter().map(move |it| (root, it))) {
            let answer = pair.same(client, &format!("{root}{route}"), &[]);
            assert_eq!((answer.status.as_str(), answer.kind.as_str()), TEXT, "{root}{route}");
        }
        for (root, route) in roots.iter().flat_map(|root| ABSENT.map(move |it| (root, it))) {
            let answer = pair.same(client, &format!("{root}{route}"), &[]);
            assert_eq!(answer.status, "404", "{root}{route}");
        }
        let json = pair.same(client, "/metadata", &[]);
        assert!(json.body.starts_with(r#"{"metadata":{"instance":{"storage":{"disks":"#));
    }
    // Equal but empty answers would prove nothing, so some contents are checked.
    let said = |path: &str| pair.same(MACHINES[0], &format!("/2009-04-04{path}"), &[]).body;
    assert_eq!(said("/meta-data/hostname"), "full.example");
    assert_eq!(said("/meta-data/tags"), "b\na\n\n%d %s");
    assert_eq!(said("/meta-data/local-ipv4"), "10.77.0.11");
    assert!(said("/user-data").ends_with("<&>\t\u{1}\n\nend without a line end"));
    strangers(&pair, &routes);
    proxies(&pair);
    differences(&pair);
}

/// Status and content type of every leaf and list.
const TEXT: (&str, &str) = ("200", "text/plain; charset=utf-8");

/// Unknown clients get no metadata. Tootles returns the names of its folders to any client; the box
/// does not.
fn strangers(pair: &Pair, routes: &[String]) {
    for route in routes {
        let path = format!("/2009-04-04{route}");
        let theirs = ask(pair.tootles, STRANGER, &path, &[]);
        let ours = ask(pair.tinboxd(7080), STRANGER, &path, &[]);
        assert_eq!((ours.status.as_str(), ours.body.as_str()), ("404", ""), "{path}");
        if theirs.status == "200" {
            assert!(theirs.body.starts_with(char::is_alphabetic), "{path} {theirs:?}");
        } else {
            assert_eq!(theirs, ours, "{path}");
        }
    }
    pair.same(STRANGER, "/metadata", &[]);
    pair.same(STRANGER, "/tootles/instanceID/i-none/2009-04-04/user-data", &[]);
}

/// Addresses that a trusted proxy may forward.
fn proxies(pair: &Pair) {
    let path = "/2009-04-04/meta-data/instance-id";
    let full = MACHINES[0];
    for list in [
        full.to_owned(),
        format!(" {full} "),
        format!("{STRANGER}, {full}"),
        format!("{STRANGER},{full}, 127.78.0.9"),
        format!("garbage, {full}"),
    ] {
        let header = format!("X-Forwarded-For: {list}");
        assert_eq!(pair.same(PROXY, path, &["-H", &header]).body, "i-full", "{list}");
        // Forwarding headers of other clients are ignored.
        assert_eq!(pair.same(STRANGER, path, &["-H", &header]).status, "404", "{list}");
        assert_eq!(pair.same(MACHINES[3], path, &["-H", &header]).body, "i-empty", "{list}");
    }
    // Tootles then uses the proxy's own address; the box refuses.
    for list in ["garbage", "127.77.0.11:80", "127.77.0.11,"] {
        let header = format!("X-Forwarded-For: {list}");
        assert_eq!(ask(pair.tootles, PROXY, path, &["-H", &header]).status, "404", "{list}");
        let ours = ask(pair.tinboxd(7080), PROXY, path, &["-H", &header]);
        assert_eq!(ours.status, "400", "{list}");
    }
}

/// Intended differences: answers in which the box is more complete or more correct.
fn differences(pair: &Pair) {
    let path = "/2009-04-04/meta-data/hostname";
    for (more, ours, theirs) in
        [(&["-I"] as &[&str], "200", "404"), (&["-X", "POST"], "405", "404"), (&[], "200", "200")]
    {
        let got = ask(pair.tinboxd(7080), MACHINES[0], path, more).status;
        assert_eq!(got, ours, "{more:?}");
        assert_eq!(ask(pair.tootles, MACHINES[0], path, more).status, theirs, "{more:?}");
    }
    // In the later versions, which Tootles lacks, a machine without an ID or a name has both.
    let later = |path: &str| ask(pair.tinboxd(7080), MACHINES[2], &format!("/latest{path}"), &[]);
    assert_eq!(later("/meta-data/local-hostname").body, "reserved-name");
    assert_eq!(later("/meta-data/instance-id").body.len(), 36);
}
