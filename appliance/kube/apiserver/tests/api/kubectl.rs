//! Tests of a user's commands, with real kubectl.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::server::{PATIENCE, Server};

const NUC: &str = r#"
apiVersion: tinkerbell.org/v1alpha1
kind: Hardware
metadata:
  name: nuc-1
  labels: { rack: a }
spec:
  agentID: 52:54:00:12:34:01
  interfaces:
  - dhcp: { mac: "52:54:00:12:34:01", hostname: nuc-1 }
    netboot: { allowPXE: true }
"#;

const MACHINES: &str = "machines.bmc.tinkerbell.org";

const OTHERS: &str = r#"
apiVersion: tinkerbell.org/v1alpha1
kind: Template
metadata: { name: debian }
spec: { data: "version: '0.1'" }
---
apiVersion: tinkerbell.org/v1alpha1
kind: Workflow
metadata: { name: nuc-1, finalizers: [ test.example.org/hold ] }
spec: { templateRef: debian, hardwareRef: nuc-1, hardwareMap: { device_1: "52:54:00:12:34:01" } }
---
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Machine
metadata: { name: nuc-1 }
spec:
  connection:
    host: 10.0.0.1
    insecureTLS: true
    authSecretRef: { name: bmc, namespace: default }
---
apiVersion: v1
kind: Secret
metadata: { name: bmc }
stringData: { username: admin, password: secret }
---
apiVersion: v1
kind: Namespace
metadata: { name: rack }
---
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Job
metadata: { generateName: off-, namespace: rack }
spec:
  machineRef: { name: nuc-1, namespace: default }
  tasks: [ { powerAction: "off" } ]
"#;

impl Server {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder())
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect(
            "kubectl runs; these tests need version 1.24 or newer in /usr/local/bin or /usr/bin",
        )
    }

    /// Runs kubectl to its end. Returns true on success, with the output of stdout and stderr.
    pub async fn run(&self, arguments: &[&str], input: &str) -> (bool, String, String) {
        let mut child = self.spawn(arguments);
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = tokio::time::timeout(PATIENCE * 2, child.wait_with_output());
        let output = output.await.expect("kubectl ends in time").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    /// Runs kubectl, which must succeed without output on stderr.
    pub async fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let (success, out, err) = self.run(arguments, input).await;
        assert!(success && err.is_empty(), "kubectl {arguments:?}: {out}{err}");
        out
    }

    async fn fill(&self) {
        let create = ["create", "-f", "-"];
        let out = self.kubectl(&create, NUC).await;
        assert_eq!(out, "hardware.tinkerbell.org/nuc-1 created\n");
        let out = self.kubectl(&create, OTHERS).await;
        let created: Vec<&str> = out.lines().collect();
        assert_eq!(
            created[..5],
            [
                "template.tinkerbell.org/debian created",
                "workflow.tinkerbell.org/nuc-1 created",
                "machine.bmc.tinkerbell.org/nuc-1 created",
                "secret/bmc created",
                "namespace/rack created",
            ]
        );
        assert!(created[5].starts_with("job.bmc.tinkerbell.org/off-"), "{out}");
    }
}

/// Returns the cells of a printed table, without the spaces between columns.
fn cells(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_created_shown_and_found() {
    let server = Server::start().await;
    server.fill().await;
    let again = server.run(&["create", "-f", "-"], NUC).await;
    assert!(!again.0 && again.2.contains("hardware.tinkerbell.org \"nuc-1\" already exists"));
    // Short names, categories, columns, wide columns.
    let out = server.kubectl(&["get", "hw"], "").await;
    assert_eq!(cells(&out), [vec!["NAME", "STATE"], vec!["nuc-1"]]);
    let out = server.kubectl(&["get", "wf", "-o", "wide"], "").await;
    let wide = ["NAME", "TEMPLATE", "STATE", "TASK", "ACTION", "AGENT", "HARDWARE"];
    assert_eq!(cells(&out)[0][..7], wide);
    assert_eq!(cells(&out)[1], ["nuc-1", "debian", "nuc-1"]);
    let out = server.kubectl(&["get", "tinkerbell", "-A", "-o", "name"], "").await;
    assert_eq!(out.lines().count(), 5, "{out}");
    let out = server.kubectl(&["get", "secrets"], "").await;
    assert_eq!(cells(&out)[0], ["NAME", "TYPE", "DATA", "AGE"]);
    assert_eq!(cells(&out)[1][..3], ["bmc", "Opaque", "2"]);
    let out = server.kubectl(&["get", "ns"], "").await;
    let names: Vec<&str> = cells(&out).iter().skip(1).map(|line| line[0]).collect();
    assert_eq!(names, ["default", "kube-public", "kube-system", "rack", "tinbox", "tinkerbell"]);
    let out = server.kubectl(&["get", "jobs.bmc.tinkerbell.org", "-A"], "").await;
    assert_eq!(cells(&out)[1][0], "rack");
    // Selectors, pages, sorting, formats.
    for (arguments, lines) in [
        (vec!["get", "hw", "-l", "rack=a", "-o", "name"], 1),
        (vec!["get", "hw", "-l", "!rack", "-o", "name"], 0),
        (vec!["get", "hw", "-l", "rack in (b)", "-o", "name"], 0),
        (vec!["get", "secrets", "--field-selector", "type=Opaque", "-o", "name"], 1),
        (vec!["get", "ns", "--chunk-size=1", "-o", "name"], 6),
        (vec!["get", "ns", "--sort-by=.metadata.name", "--no-headers"], 6),
    ] {
        let (success, out, err) = server.run(&arguments, "").await;
        assert!(success && out.lines().count() == lines, "{arguments:?}: {out}{err}");
    }
    let out = server.kubectl(&["get", "hw", "nuc-1", "-o", "yaml"], "").await;
    for line in ["kind: Hardware", "  generation: 1", "  uid: ", "      mac: \"52:54:00:12:34:01\""]
    {
        assert!(out.contains(line) || out.contains(&line.replace('"', "")), "{line}: {out}");
    }
    let path = "jsonpath={.data.password}";
    assert_eq!(server.kubectl(&["get", "secret", "bmc", "-o", path], "").await, "c2VjcmV0");
    let (success, _, err) = server.run(&["get", "hw", "nothing"], "").await;
    assert!(!success);
    assert!(err.contains("hardware.tinkerbell.org \"nothing\" not found"), "{err}");
    let out = server.kubectl(&["describe", "hw", "nuc-1"], "").await;
    assert!(out.contains("Agent ID:  52:54:00:12:34:01"), "{out}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_changed() {
    let server = Server::start().await;
    server.fill().await;
    let ok = async |arguments: &[&str]| server.kubectl(arguments, "").await;
    let merge = r#"{"spec":{"userData":"hello"}}"#;
    let out = ok(&["patch", "hw", "nuc-1", "--type=merge", "-p", merge]).await;
    assert_eq!(out, "hardware.tinkerbell.org/nuc-1 patched\n");
    let json = r#"[{"op":"add","path":"/metadata/annotations","value":{"seen":"yes"}}]"#;
    ok(&["patch", "hw", "nuc-1", "--type=json", "-p", json]).await;
    ok(&["label", "hw", "nuc-1", "rack-", "shelf=2"]).await;
    ok(&["annotate", "hw", "nuc-1", "note=fine"]).await;
    let status = r#"{"status":{"state":"Ready"},"spec":{"userData":"ignored"}}"#;
    ok(&["patch", "hw", "nuc-1", "--subresource=status", "--type=merge", "-p", status]).await;
    let path = "jsonpath={.metadata.labels} {.metadata.annotations} {.spec.userData} \
                {.status.state} {.metadata.generation}";
    let out = ok(&["get", "hw", "nuc-1", "-o", path]).await;
    assert_eq!(out, "{\"shelf\":\"2\"} {\"note\":\"fine\",\"seen\":\"yes\"} hello Ready 2");
    // Custom kinds do not support the default patch type, as in a cluster.
    let (success, _, err) = server.run(&["patch", "hw", "nuc-1", "-p", merge], "").await;
    assert!(!success && err.contains("application/merge-patch+json"), "{err}");
    // Apply: create, change, no change; dry run and diff store nothing.
    let apply = ["apply", "-f", "-"];
    let machine = "apiVersion: bmc.tinkerbell.org/v1alpha1\nkind: Machine\n\
                   metadata: { name: m }\n\
                   spec: { connection: { host: HOST, insecureTLS: true } }\n";
    let one = machine.replace("HOST", "10.0.0.7");
    let two = machine.replace("HOST", "10.0.0.8");
    let out = server.kubectl(&apply, &one).await;
    assert_eq!(out, "machine.bmc.tinkerbell.org/m created\n");
    let dry = ["apply", "--dry-run=server", "-f", "-"];
    assert!(server.kubectl(&dry, &two).await.contains("configured (server dry run)"));
    let out = server.kubectl(&apply, &one).await;
    assert_eq!(out, "machine.bmc.tinkerbell.org/m unchanged\n");
    let out = server.kubectl(&apply, &two).await;
    assert_eq!(out, "machine.bmc.tinkerbell.org/m configured\n");
    // A mistake is reported as a message about the field.
    let (success, _, err) = server.run(&apply, &machine.replace("HOST", "''")).await;
    let wanted = "The Machine \"m\" is invalid: spec.connection.host: Invalid value: \"\": \
                  spec.connection.host in body should be at least 1 chars long";
    assert!(!success && err.contains(wanted), "{err}");
    // A stale copy is refused.
    let path = "jsonpath={.metadata.resourceVersion}";
    let revision = ok(&["get", "machines.bmc.tinkerbell.org", "m", "-o", path]).await;
    let full = two.replace("name: m", &format!("name: m, resourceVersion: '{revision}'"));
    let replace = ["replace", "-f", "-"];
    server.kubectl(&replace, &full.replace("10.0.0.8", "10.0.0.9")).await;
    let (success, _, err) = server.run(&replace, &full).await;
    assert!(!success && err.contains("the object has been modified"), "{err}");
    // Edit, with an editor that changes a label.
    let mut edit = server.command(&["edit", "hw", "nuc-1"]);
    edit.env("KUBE_EDITOR", "sed -i s/shelf:.*/shelf:\\ \\\"3\\\"/");
    let output = tokio::time::timeout(PATIENCE, edit.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = "jsonpath={.metadata.labels.shelf}";
    assert_eq!(ok(&["get", "hw", "nuc-1", "-o", path]).await, "3");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_are_applied_and_argued_about() {
    let server = Server::start().await;
    let machine = |host: &str| {
        format!(
            "apiVersion: bmc.tinkerbell.org/v1alpha1\nkind: Machine\nmetadata: {{ name: m }}\n\
             spec: {{ connection: {{ host: {host}, insecureTLS: true }} }}\n"
        )
    };
    let apply = ["apply", "--server-side", "-f", "-"];
    let out = server.kubectl(&apply, &machine("10.0.0.7")).await;
    assert_eq!(out, "machine.bmc.tinkerbell.org/m serverside-applied\n");
    let path = "jsonpath={.metadata.resourceVersion}";
    let before = server.kubectl(&["get", MACHINES, "m", "-o", path], "").await;
    server.kubectl(&apply, &machine("10.0.0.7")).await;
    assert_eq!(server.kubectl(&["get", MACHINES, "m", "-o", path], "").await, before);
    // Another manager: refused, forced, then the first is refused.
    let other = [&apply[..], &["--field-manager=other"]].concat();
    let (success, _, err) = server.run(&other, &machine("10.0.0.8")).await;
    let wanted = "Apply failed with 1 conflict: conflict with \"kubectl\": .spec.connection.host";
    assert!(!success && err.contains(wanted) && err.contains("--force-conflicts"), "{err}");
    let forced = [&other[..], &["--force-conflicts"]].concat();
    server.kubectl(&forced, &machine("10.0.0.8")).await;
    let (success, _, err) = server.run(&apply, &machine("10.0.0.7")).await;
    assert!(!success && err.contains("conflict with \"other\": .spec.connection.host"), "{err}");
    // A plain patch owns its changed fields, under the manager name that kubectl sets.
    let patch = r#"{"spec":{"connection":{"port":1623}}}"#;
    server.kubectl(&["patch", MACHINES, "m", "--type=merge", "-p", patch], "").await;
    let with_port = machine("10.0.0.8").replace("insecureTLS", "port: 624, insecureTLS");
    let (success, _, err) = server.run(&other, &with_port).await;
    let wanted = "conflict with \"kubectl-patch\" using bmc.tinkerbell.org/v1alpha1: \
                  .spec.connection.port";
    assert!(!success && err.contains(wanted), "{err}");
    let path = "jsonpath={range .metadata.managedFields[*]}{.manager} {.operation},{end}";
    let managed = ["get", MACHINES, "m", "--show-managed-fields", "-o", path];
    let out = server.kubectl(&managed, "").await;
    assert_eq!(out, "kubectl Apply,other Apply,kubectl-patch Update,");
    let diff = ["diff", "--server-side", "--field-manager=other", "-f", "-"];
    let (same, out, err) = server.run(&diff, &machine("10.0.0.9")).await;
    assert!(!same && out.contains("+    host: 10.0.0.9"), "{same} {out}{err}");
    server.stop().await;
}

/// Reads lines of a running kubectl up to the first that contains all of `words`.
async fn until(lines: &mut Lines<BufReader<ChildStdout>>, words: &[&str]) -> Vec<String> {
    let mut seen = Vec::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            let found = words.iter().all(|word| line.split_whitespace().any(|one| one == *word));
            seen.push(line);
            if found {
                return;
            }
        }
        panic!("kubectl ended before {words:?}");
    };
    let waited = tokio::time::timeout(PATIENCE, reading).await;
    assert!(waited.is_ok(), "no line with {words:?} in time: {seen:?}");
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_watched_and_waited_for() {
    let server = Server::start().await;
    server.fill().await;
    // The header and the first row prove that the watch is running.
    let mut watch = server.spawn(&["get", "wf", "-w"]);
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let seen = until(&mut lines, &["nuc-1"]).await;
    assert_eq!(seen[0].split_whitespace().next(), Some("NAME"));
    let wait = ["wait", "--for=jsonpath={.status.state}=SUCCESS", "wf/nuc-1", "--timeout=120s"];
    let wait = server.kubectl(&wait, "");
    let status = |state: &str| format!("{{\"status\":{{\"state\":\"{state}\"}}}}");
    let patch = async |state: &str| {
        let body = status(state);
        let patch = ["patch", "wf", "nuc-1", "--subresource=status", "--type=merge", "-p", &body];
        server.kubectl(&patch, "").await
    };
    let drive = async {
        patch("RUNNING").await;
        patch("SUCCESS").await
    };
    let (waited, _) = tokio::join!(wait, drive);
    assert_eq!(waited, "workflow.tinkerbell.org/nuc-1 condition met\n");
    let rows = until(&mut lines, &["nuc-1", "SUCCESS"]).await;
    assert!(!rows.iter().any(|row| row.starts_with("NAME")), "{rows:?}");
    // Deletion waits for the finalizer, and kubectl waits for the deletion.
    let delete = server.kubectl(&["delete", "wf", "nuc-1"], "");
    let release = async {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let workflow = "tinkerbell.org/workflows";
            let object = server.engine.get(workflow, "default", "nuc-1").await.unwrap();
            if object["metadata"]["deletionTimestamp"].is_string() {
                break;
            }
            assert!(tokio::time::Instant::now() < deadline, "no delete in time");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let none = r#"{"metadata":{"finalizers":null}}"#;
        server.kubectl(&["patch", "wf", "nuc-1", "--type=merge", "-p", none], "").await;
    };
    let (deleted, ()) = tokio::join!(delete, release);
    assert!(deleted.starts_with("workflow.tinkerbell.org \"nuc-1\" deleted"), "{deleted}");
    let gone = ["wait", "--for=delete", "wf/nuc-1", "--timeout=120s"];
    server.kubectl(&gone, "").await;
    server.kubectl(&["delete", "hw", "-l", "rack=a"], "").await;
    server.kubectl(&["delete", "templates", "--all"], "").await;
    let (_, out, err) = server.run(&["get", "hw,templates,workflows"], "").await;
    assert_eq!((out.as_str(), err.as_str()), ("", "No resources found in default namespace.\n"));
    // Deletion of a namespace deletes its objects, and kubectl waits for the end of the deletion.
    let gone = server.kubectl(&["delete", "ns", "rack"], "").await;
    assert!(gone.starts_with("namespace \"rack\" deleted"), "{gone}");
    let (_, out, err) = server.run(&["get", "jobs.bmc.tinkerbell.org", "-A"], "").await;
    assert_eq!((out.as_str(), err.as_str()), ("", "No resources found\n"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_says_what_it_is() {
    let server = Server::start().await;
    // kubectl warns if its own version is far from the server's, which is expected here.
    let (success, out, _) = server.run(&["version", "-o", "json"], "").await;
    assert!(success && out.contains("+tinbox."), "{out}");
    let out = server.kubectl(&["api-resources", "--no-headers", "-o", "name"], "").await;
    for kind in ["secrets", "hardware.tinkerbell.org", "jobs.bmc.tinkerbell.org"] {
        assert!(out.lines().any(|line| line == kind), "{out}");
    }
    let out = server.kubectl(&["api-versions"], "").await;
    for version in ["bmc.tinkerbell.org/v1alpha1", "cluster.x-k8s.io/v1alpha4", "v1"] {
        assert!(out.lines().any(|line| line == version), "{out}");
    }
    let out = server.kubectl(&["get", "crds"], "").await;
    assert!(out.contains("hardware.tinkerbell.org") && out.contains("CREATED AT"), "{out}");
    let out = server.kubectl(&["get", "--raw", "/readyz"], "").await;
    assert_eq!(out, "ok");
    let out = server.kubectl(&["get", "--raw", "/apis/tinbox.dev/v1alpha1/hello"], "").await;
    assert_eq!(out, "hello");
    let (success, _, err) = server.run(&["--token=wrong", "get", "hw"], "").await;
    assert!(!success && err.contains("Unauthorized"), "{err}");
    // `kubectl explain` works, and unknown fields are refused before they are sent.
    let out = server.kubectl(&["explain", "secret.metadata.ownerReferences"], "").await;
    assert!(out.contains("uid\t<string> -required-"), "{out}");
    let out = server.kubectl(&["explain", "secret.data"], "").await;
    assert!(out.contains("FIELD: data <map[string]string>"), "{out}");
    let out = server.kubectl(&["explain", "hw", "--recursive"], "").await;
    assert!(out.contains("KIND:       Hardware") && out.contains("<ObjectMeta>"), "{out}");
    server.stop().await;
}
