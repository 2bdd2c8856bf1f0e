//! Walks with a box that runs on Linux.

use std::fs;
use std::process::Command;

use doc_commands::{LinuxBox, Manner, RESERVED, Walk, block};
use firmware::run;
use qemu::poll;
use stdx::testing::PATIENCE;

/// Name of the workflow on all pages.
const WORKFLOW: &str = "nuc1-x7k2p";
/// Hash of the token whose id the page has.
const TOKEN: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// Template with one action, whose content the fixture's agent ignores.
const TEMPLATE: &str = "version: \"0.1\"\n\
    name: debian\n\
    global_timeout: 1800\n\
    tasks:\n\
    - name: install\n\
    \x20 worker: \"{{.device_1}}\"\n\
    \x20 actions:\n\
    \x20 - name: wipe\n\
    \x20   image: disk-wipe\n\
    \x20   timeout: 600\n\
    \x20   environment: {BLOCK_DEVICE: /dev/nvme0n1}\n";

pub fn cluster_api(page: &str) {
    let it = LinuxBox::start("capi", RESERVED);
    Walk::through(page, it.terminal()).end();
    it.succeed();
}

pub fn demo(page: &str) {
    let it = LinuxBox::start("demo", RESERVED);
    it.push_nuc1();
    Walk::through(page, it.terminal()).end();
    it.succeed();
}

pub fn enroll_machines(page: &str) {
    let it = LinuxBox::start("enroll", &block(page, "toml", 0));
    it.push_nuc1();
    it.push(
        "apiVersion: tinkerbell.org/v1alpha1\n\
         kind: Hardware\n\
         metadata:\n\
         \x20 name: enrolled-1\n\
         \x20 labels: {tinkerbell.org/auto-discovered: \"true\"}\n\
         spec:\n\
         \x20 interfaces:\n\
         \x20 - dhcp: {mac: \"52:54:00:77:00:02\"}\n",
    );
    Walk::through(page, it.terminal()).end();
    assert!(it.tinbox(&["hardware", "get", "nuc1"]).contains("52:54:00:77:00:99"));
    it.succeed();
}

pub fn image_cache(page: &str) {
    let it = LinuxBox::new("images");
    let cache = it.folder().join("cache").display().to_string();
    let settings = block(page, "toml", 0).replace("/var/cache/tinbox", &cache);
    let mut it = it.with_settings(&settings);
    it.publish_images();
    let mut walk = Walk::through(page, it.terminal());
    walk.replace("https://example.com/debian.raw.zst", &it.published("tiny.raw.zst"));
    walk.until("tinbox image rm");
    let ready = || it.tinbox(&["image", "list"]).contains("ready").then_some(());
    poll("the image to be there", PATIENCE, ready).unwrap();
    walk.end();
    it.succeed();
}

pub fn os_images(page: &str) {
    let it = LinuxBox::new("os-images");
    let cache = it.folder().join("cache").display().to_string();
    let settings = block("docs/how-to/image-cache.md", "toml", 0);
    let mut it = it.with_settings(&settings.replace("/var/cache/tinbox", &cache));
    it.publish_images();
    // A disk with a boot sector.
    let mut disk = vec![7; 1 << 20];
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    fs::write(it.folder().join("debian.qcow2"), &disk).unwrap();
    fs::write(it.folder().join("ca.pem"), fs::read(it.state().join("pki/ca.crt")).unwrap())
        .unwrap();
    let kubeconfig = fs::read_to_string(it.state().join("admin.kubeconfig")).unwrap();
    let (_, token) = kubeconfig.split_once("token: ").unwrap();
    let mut terminal = it.terminal();
    terminal.set("TOKEN", token.lines().next().unwrap().trim_matches('"'));
    terminal.answer("(yes or no) ", "yes");
    let mut walk = Walk::through(page, terminal);
    walk.replace("https://images.example/debian.qcow2", &it.published("tiny.raw.zst"));
    let sum = run(Command::new("sha256sum").arg(it.folder().join("debian.qcow2"))).unwrap();
    walk.replace(TOKEN, &sum[..64]);
    walk.replace("ssh builder ", "");
    walk.replace("192.168.1.5", "10.77.0.1");
    walk.until("tinbox os-image delete");
    let listed = it.tinbox(&["os-image", "list"]);
    assert!(
        listed.lines().any(|it| it.starts_with("lab") && it.contains("on the box")),
        "{listed}"
    );
    walk.end();
    it.succeed();
}

pub fn networks(page: &str) {
    let it = LinuxBox::start("networks", &block(page, "toml", 0));
    Walk::through(page, it.terminal()).end();
    it.succeed();
}

pub fn preserve_and_erase(page: &str) {
    let it = LinuxBox::new("preserve");
    Walk::through(page, it.terminal()).end();
    it.succeed();
}

pub fn testing(page: &str) {
    let it = LinuxBox::new("testing");
    Walk::through(page, it.terminal()).end();
    it.succeed();
}

pub fn retry_cancel_pause(page: &str) {
    let it = LinuxBox::start("retry", RESERVED);
    let agent = workflow(&it, Manner::Fail);
    it.wait_workflow(WORKFLOW, "FAILED");
    let mut walk = Walk::through(page, it.terminal());
    let fails_again = || {
        it.wait_workflow(WORKFLOW, "RUNNING");
        agent.set(Manner::Fail);
        it.wait_workflow(WORKFLOW, "FAILED");
        agent.set(Manner::Hold);
    };
    agent.set(Manner::Hold);
    walk.until("tinbox workflow retry nuc1-x7k2p --from start");
    fails_again();
    walk.until("tinbox workflow cancel");
    it.wait_workflow(WORKFLOW, "RUNNING");
    walk.until("tinbox workflow pause");
    it.wait_workflow(WORKFLOW, "FAILED");
    it.tinbox(&["workflow", "retry", WORKFLOW]);
    it.wait_workflow(WORKFLOW, "RUNNING");
    walk.until("kubectl annotate");
    fails_again();
    walk.end();
    it.wait_workflow(WORKFLOW, "RUNNING");
    drop(agent);
    it.succeed();
}

pub fn work_by_command(page: &str) {
    let it = LinuxBox::start("work", RESERVED);
    let agent = workflow(&it, Manner::Fail);
    it.wait_workflow(WORKFLOW, "FAILED");
    let shown = it.tinbox(&["status"]);
    assert!(shown.contains("$ tinbox machine retry nuc1"), "{shown}");
    let mut walk = Walk::through(page, it.terminal());
    agent.set(Manner::Hold);
    walk.until("tinbox machine pause");
    it.wait_workflow(WORKFLOW, "RUNNING");
    walk.until("tinbox machine start-over");
    it.wait_workflow(WORKFLOW, "FAILED");
    walk.until("tinbox completion");
    it.wait_workflow(WORKFLOW, "RUNNING");
    walk.end();
    drop(agent);
    it.succeed();
}

/// Creates `nuc1`, the template `debian` and the workflow of the pages; starts an agent with this
/// manner.
fn workflow(it: &LinuxBox, manner: Manner) -> doc_commands::Agent {
    it.push_nuc1();
    let agent = it.agent();
    agent.set(manner);
    fs::write(it.folder().join("template.yaml"), TEMPLATE).unwrap();
    it.tinbox(&["template", "create", "--file", "template.yaml"]);
    let create = ["workflow", "create", "--template", "debian", "--hardware", "nuc1"];
    it.tinbox(&[&create[..], &["--name", WORKFLOW]].concat());
    agent
}

pub fn run_on_linux(page: &str) {
    let mut it = LinuxBox::new("linux");
    let mut walk = Walk::through(page, it.terminal());
    let at = |name: &str| it.folder().join(name).display().to_string();
    let folders = [
        ("/srv/tinbox", at("artifacts")),
        ("/var/lib/tinbox", at("state")),
        ("/var/cache/tinbox", at("cache")),
    ];
    let mut settings = block(page, "toml", 0);
    for (folder, own) in &folders {
        settings = settings.replace(folder, own);
    }
    walk.replace("/srv/tinbox", &folders[0].1);
    walk.replace("/var/lib/tinbox", &folders[1].1);
    let script = docs::page::root().join("image/artifacts.sh").display().to_string();
    walk.replace("image/artifacts.sh", &script);
    fs::write(it.folder().join("box.toml"), settings).unwrap();
    // The script takes the parts that the tree has built.
    walk.terminal().set("TINBOX_CACHE", &peers::cache().unwrap().display().to_string());
    let programs = firmware::owner::program("tinboxd").parent().unwrap().display().to_string();
    walk.terminal().set("TINBOX_BIN", &programs);
    // The tests are root, and their programs are in the path.
    walk.replace("sudo target/programs/tinboxd", "tinboxd");
    walk.replace("target/programs/tinbox ", "tinbox ");
    let line = walk.server("sudo target/programs/tinboxd");
    it.serve(&line);
    it.wait_until_ready();
    it.wait_log(&format!("file={}/claim.json", folders[1].1));
    walk.end();
    it.succeed();
}

pub fn templates(page: &str) {
    let it = LinuxBox::start("templates", RESERVED);
    it.push_nuc1();
    let agent = it.agent();
    let mut walk = Walk::through(page, it.terminal());
    walk.until("tinbox workflow events");
    agent.set(Manner::Hold);
    let create = ["workflow", "create", "--template", "debian", "--hardware", "nuc1"];
    it.tinbox(&[&create[..], &["--name", WORKFLOW]].concat());
    it.wait_workflow(WORKFLOW, "RUNNING");
    agent.set(Manner::Succeed);
    walk.end();
    drop(agent);
    it.succeed();
}

pub fn users_and_roles(page: &str) {
    let mut it = LinuxBox::start("users", RESERVED);
    it.add_token(&format!("{TOKEN} jane rack-a"));
    let mut walk = Walk::through(page, it.terminal());
    walk.until("tinbox access revoke");
    let new = it.folder().join("new.kubeconfig").display().to_string();
    walk.terminal().set("TINBOX_KUBECONFIG", &new);
    walk.end();
    it.succeed();
}

pub fn command_line(page: &str) {
    let it = LinuxBox::start("cli", RESERVED);
    fs::write(it.folder().join("template.yaml"), TEMPLATE).unwrap();
    let hardware = block("docs/tutorial/first-box.md", "yaml", 0);
    fs::write(it.folder().join("hardware.yaml"), hardware).unwrap();
    let agent = it.agent();
    Walk::through(page, it.terminal()).end();
    drop(agent);
    it.succeed();
}
