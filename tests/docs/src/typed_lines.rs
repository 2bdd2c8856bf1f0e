//! Lines that a reader types, and the list of those that no test runs.
//!
//! `tests/doc-commands` runs all others, page by page, against a real box.

use regex::Regex;

use crate::markdown::blocks;
use crate::page::{self, root};
use crate::shell;

/// A line that a reader types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedLine {
    /// Path of the page from the root of the tree.
    pub page: String,
    /// Number of the line in the page, from 1.
    pub line: usize,
    /// Text of the line, joined and without its comment.
    pub text: String,
}

/// Lines that `tests/doc-commands` does not run, with the reason.
pub const NOT_RUN: &[(&str, &str)] = &[
    ("make build", BY_CI),
    ("make check", "people run it before each commit; .ci/run runs its laws and more"),
    ("sudo make test", BY_CI),
    ("make image-dev", "its script, image/dev.sh, makes the image of each flashed box"),
    ("UPDATE=1 cargo test --package docs", "changes the pages; `package(docs)` compares them"),
    ("make build image", BUILDROOT),
    ("make image", BUILDROOT),
    ("make image OFFLINE=1 BUILDROOT=~/buildroot", BUILDROOT),
    ("make image KEY=release.key", BUILDROOT),
    ("BUILD=1 tests/arm.sh", "compiles for ARM and boots it in QEMU, half an hour"),
    ("sudo make demo", DEMO),
    ("sudo DEMO_NUCS=3 make demo", DEMO),
    ("sudo DEMO_FIRMWARE=bios make demo", DEMO),
    ("sudo DEMO_BMC=wol make demo", "`power` of tests/scenarios starts a machine of each kind"),
    ("sudo DEMO_KEEP=1 make demo", DEMO),
    ("sudo make demo BOX=image", DEMO_IMAGE),
    ("sudo DEMO_KEEP=1 make demo BOX=image", DEMO_IMAGE),
    (
        "snmpwalk -v3 -l authPriv -u tinbox -a SHA-256 -A \"$PASSWORD\" -x AES -X \"$PRIVACY\" -On \
         10.77.0.2 1.3.6.1.2.1.105.1.1.1.6",
        "needs a switch; tests/peers, `poe`, runs it against snmpd",
    ),
    (
        "tinbox machine install 88:ae:dd:01:02:03 --system debian --name nuc2 \
         --disk /dev/nvme0n1 --ssh-key id_ed25519.pub --wait",
        "needs a machine that asks; tests of `cli`, `actions`, run it against the API",
    ),
    ("tinbox bmc discover", "`path` of tests/scenarios runs it"),
    ("tinbox bmc discover --manifest > bmcs.yaml", "the same search, with another output"),
    ("tinbox bmc events nuc1", READINGS),
    ("tinbox bmc sensors nuc1", READINGS),
    ("tinbox bmc inventory nuc1", READINGS),
    ("tinbox machine power nuc1 status", "`power` of tests/scenarios runs it"),
    ("kubectl get tinkerbellmachines -A", "tests/peers, `founding_guide`, runs it"),
    ("tinbox capi pair fleet --management-kubeconfig fleet.kubeconfig", PAIRING),
    ("kubectl get managementclusters", PAIRING),
    ("tinbox capi unpair fleet --management-kubeconfig fleet.kubeconfig", PAIRING),
    ("kubectl get leases -n tinbox-pairing", PAIRING),
    ("tinbox capi take-over fleet", PAIRING),
    (
        "kubectl annotate tinkerbellmachine edge-x7k2p tinbox.dev/skip-wipe=",
        "the unit test `a_disk_that_cannot_be_erased…` of capi-controllers sets the annotation",
    ),
    ("sh capt.sh", "needs a management cluster; `cluster_takeover` of tests/peers runs it"),
    ("clusterctl upgrade plan --config ~/.config/cluster-api/tinbox/clusterctl.yaml", TAKEOVER),
    (
        "clusterctl upgrade apply --infrastructure tinkerbell-tinkerbell:v0.101.0 \
         --config ~/.config/cluster-api/tinbox/clusterctl.yaml",
        TAKEOVER,
    ),
    ("kubectl --kubeconfig box.kubeconfig delete serviceaccount tinbox-capt", TAKEOVER),
    ("kubectl get controlplaneendpoints -o wide", ENDPOINT),
    ("kubectl delete controlplaneendpoint 10.77.0.200", ENDPOINT),
    ("clusterctl init --bootstrap talos --control-plane talos", TALOS),
    ("export CONTROL_PLANE_VIP=10.77.0.9 OS_IMAGE=talos TALOS_VERSION=v1.11", TALOS),
    (
        "clusterctl generate cluster edge --flavor talos --kubernetes-version v1.34.1 \
         --config ~/.config/cluster-api/tinbox/clusterctl.yaml > edge.yaml",
        TALOS,
    ),
    ("export SSL_CERT_FILE=ca.pem HTTPS_PROXY=https://192.168.7.1 NO_PROXY=github.com", PROXY),
    (
        "clusterctl generate provider --infrastructure tinbox \
         --config https://gitlab.tinbox.local/clusterctl.yaml",
        PROXY,
    ),
    ("sudo make demo-capi", QUICK_START),
    ("export CONTROL_PLANE_VIP=10.77.0.9 OS_IMAGE=debian-12", QUICK_START),
    (
        "clusterctl generate cluster edge --kubernetes-version v1.35.3 \
         --config ~/.config/cluster-api/tinbox/clusterctl.yaml > edge.yaml",
        QUICK_START,
    ),
    ("kubectl apply -f edge.yaml", QUICK_START),
    ("clusterctl describe cluster edge", QUICK_START),
    ("sudo DEMO_MODE=capt make demo-capi", "`cluster_api` of tests/scenarios runs the same steps"),
    ("sudo make shake TEST=name", "repeats a test 40 times"),
    ("make help", "prints the Makefile; `commands_can_be_typed` asks make for each target"),
    ("sudo make bench", BENCH),
    ("sudo make bench-boot", BENCH),
    ("sudo make bench-capi", BENCH),
    ("make bench-api", BENCH),
    ("make bench-bmc", BENCH),
    ("make bench-web", BENCH),
    ("sudo make bench-imaging", BENCH),
    ("make bench-agents", BENCH),
    ("make bench-growth", BENCH),
    ("sudo make bench-hostile", BENCH),
    ("sudo make bench-box", BENCH),
    ("ssh -p 2222 nuc1@BOX", CONSOLE),
    ("tinbox machine console nuc1", CONSOLE),
    ("tinbox machine console nuc1 --recorded", CONSOLE),
    ("ssh -p 2222 nuc1@BOX log", CONSOLE),
];

const QUICK_START: &str = "`quick_start` of tests/scenarios does this with a virtual NUC";
const READINGS: &str = "`readings` of tests/peers runs it with simulated BMCs";
const PAIRING: &str = "`pairing` of tests/peers runs it with a management cluster";
const TALOS: &str = "needs Talos' providers; `talos` of tests/peers generates the cluster";
const PROXY: &str = "`repository_proxy` of tests/peers runs it with the address of its box";
const TAKEOVER: &str = "`cluster_takeover` of tests/peers runs it with a management cluster";
const ENDPOINT: &str = "needs machines of a control plane; `endpoints` of tests/wire has them";
const CONSOLE: &str = "`consoles` of tests/peers runs it with a simulated BMC";
const BY_CI: &str = "run by .ci/run";
const BUILDROOT: &str = "an hour of Buildroot; .ci/run runs tests/buildroot.sh for its parts";
const DEMO: &str = "`path` of tests/scenarios installs the same rack by the same library";
const DEMO_IMAGE: &str = "`main_job` of tests/firmware installs the same rack by the same library";
const BENCH: &str = "measures on a quiet machine, people run it; .ci/run compiles it";

/// Returns all lines that a reader types: those of `sh` blocks, and examples in `text` blocks.
pub fn all() -> Vec<TypedLine> {
    let mut typed = Vec::new();
    for page in page::all() {
        for block in blocks(&page.text) {
            let lines = match block.language.as_str() {
                "sh" => shell::lines(&block.text),
                "text" => examples(&block.text),
                _ => Vec::new(),
            };
            typed.extend(lines.into_iter().map(|(number, text)| TypedLine {
                page: page.path.clone(),
                line: block.line + number,
                text,
            }));
        }
    }
    typed
}

/// Returns the indented lines that begin with the name of the command line.
fn examples(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with("  tinbox "));
    lines.map(|(number, line)| (number, line.trim().to_owned())).collect()
}

/// Returns the lines of a page that a test runs, in their order.
pub fn to_run(page: &str) -> Vec<TypedLine> {
    let mut typed = all();
    typed.retain(|it| it.page == page && !is_not_run(&it.text));
    typed
}

fn is_not_run(text: &str) -> bool {
    NOT_RUN.iter().any(|(line, _)| *line == text)
}

/// Returns rows of [`NOT_RUN`] that are on no page, pages with lines that no test runs, tests of
/// pages without a line to run, and pages with an output, which no test compares yet.
///
/// # Panics
/// The source of the tests that run pages cannot be read.
pub fn mistakes() -> Vec<String> {
    let typed = all();
    let stale = NOT_RUN.iter().filter(|(line, _)| !typed.iter().any(|it| it.text == *line));
    let stale = stale.map(|(line, _)| format!("{line}: on the list, and on no page"));
    let walked = walked();
    let mut run: Vec<&str> = Vec::new();
    run.extend(typed.iter().filter(|it| !is_not_run(&it.text)).map(|it| it.page.as_str()));
    run.dedup();
    let missing = run.iter().filter(|page| !walked.iter().any(|it| it == *page));
    let missing = missing.map(|page| format!("{page}: tests/doc-commands does not run it"));
    let empty = walked.iter().filter(|page| !run.contains(&page.as_str()));
    let empty = empty.map(|page| format!("{page}: no line of it is run"));
    stale.chain(missing).chain(empty).chain(outputs()).collect()
}

/// Page whose text block is the help of the command line.
const HELP: &str = "docs/reference/cli.md";

fn outputs() -> Vec<String> {
    let is_output = |page: &page::Page| {
        page.path != HELP && blocks(&page.text).iter().any(|block| block.language == "text")
    };
    let pages = page::all().into_iter().filter(is_output);
    pages.map(|page| format!("{}: an output that no test compares", page.path)).collect()
}

/// Source file that assigns a page to each test of `tests/doc-commands`.
const WALKS: &str = "tests/doc-commands/tests/commands/main.rs";

fn walked() -> Vec<String> {
    let text = std::fs::read_to_string(root().join(WALKS)).expect("the tree is complete");
    let page = Regex::new(r#"=> "([^"]+\.md)""#).expect("a valid pattern");
    page.captures_iter(&text).map(|found| found[1].to_owned()).collect()
}
