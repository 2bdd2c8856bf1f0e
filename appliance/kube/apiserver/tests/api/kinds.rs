//! Tests of kinds added at run time, versions and field validation, with kubectl and with plain
//! HTTP.

use http::header::{CONTENT_TYPE, WARNING};
use serde_json::{Value, json};

use crate::requests::Client;
use crate::server::Server;

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: crews.example.net }
spec:
  group: example.net
  scope: Namespaced
  names: { plural: crews, kind: Crew, shortNames: [ cw ] }
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - { name: Size, type: integer, jsonPath: .spec.size }
    - { name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status' }
    - { name: Since, type: date, jsonPath: .metadata.creationTimestamp, priority: 1 }
    selectableFields: [ { jsonPath: .spec.color } ]
    subresources:
      status: {}
      scale: { specReplicasPath: .spec.size, statusReplicasPath: .status.size,
        labelSelectorPath: .status.selector }
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: { type: integer, minimum: 0 }
              color: { type: string, default: red }
            x-kubernetes-validations:
            - { rule: "self.color != 'grey'", message: crews are never grey }
          status: { type: object, x-kubernetes-preserve-unknown-fields: true }
  - name: v1alpha1
    served: true
    storage: false
    deprecated: true
    schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
"#;

const CREWS: &str = "/apis/example.net/v1/namespaces/default/crews";

fn crew(name: &str, spec: Value) -> String {
    json!({ "apiVersion": "example.net/v1", "kind": "Crew", "metadata": { "name": name },
        "spec": spec })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_comes_and_goes() {
    let server = Server::start().await;
    server.kubectl(&["create", "-f", "-"], CRD).await;
    server.kubectl(&["wait", "--for=condition=established", "crd/crews.example.net"], "").await;
    let create = ["create", "--validate=false", "-f", "-"];
    server.kubectl(&create, &crew("a", json!({ "size": 3, "unknown": 1 }))).await;
    let (success, _, err) = server.run(&create, &crew("b", json!({ "color": "grey" }))).await;
    assert!(!success && err.contains("crews are never grey"), "{err}");
    let ready = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}],"size":2}}"#;
    let patch = ["patch", "cw", "a", "--subresource=status", "--type=merge", "-p", ready];
    server.kubectl(&patch, "").await;
    let out = server.kubectl(&["get", "cw"], "").await;
    let rows: Vec<Vec<&str>> = out.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows, [vec!["NAME", "SIZE", "READY"], vec!["a", "3", "True"]]);
    for (color, count) in [("red", 1), ("blue", 0)] {
        let selector = format!("spec.color={color}");
        let get = ["get", "cw", "--field-selector", &selector, "-o", "name"];
        assert_eq!(server.kubectl(&get, "").await.lines().count(), count, "{color}");
    }
    server.kubectl(&["scale", "crew", "a", "--replicas=5"], "").await;
    server.kubectl(&["scale", "crew", "a", "--current-replicas=5", "--replicas=6"], "").await;
    let path = "jsonpath={.spec} {.metadata.generation}";
    let out = server.kubectl(&["get", "crew", "a", "-o", path], "").await;
    assert_eq!(out, "{\"color\":\"red\",\"size\":6} 3");
    server.kubectl(&["delete", "crd", "crews.example.net"], "").await;
    let (success, _, err) = server.run(&["get", "crews"], "").await;
    assert!(!success && err.contains("crews"), "{err}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_told_of_fields_and_versions() {
    let server = Server::start().await;
    server.kubectl(&["create", "-f", "-"], CRD).await;
    let mut client = Client::connect(&server).await;
    let body = r#"{"apiVersion":"example.net/v1","kind":"Crew","metadata":{"name":"a"},
        "spec":{"size":1,"size":2,"sise":3}}"#;
    let strict = format!("{CREWS}?fieldValidation=Strict");
    let (code, status) = client.json("POST", &strict, &[], body).await;
    assert_eq!(code, 400);
    let why = "Crew in version \"v1\" cannot be handled as a Crew: strict decoding error: \
               duplicate field \"spec.size\", unknown field \"spec.sise\"";
    assert_eq!(status["message"], why);
    let warnings = |response: &http::Response<hyper::body::Incoming>| -> Vec<String> {
        let all = response.headers().get_all(WARNING).iter();
        all.map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    let response = client.send("POST", CREWS, &[], body).await;
    assert_eq!(response.status(), 201);
    let told = [
        "299 - \"duplicate field \\\"spec.size\\\"\"",
        "299 - \"unknown field \\\"spec.sise\\\"\"",
    ];
    assert_eq!(warnings(&response), told);
    drop(http_body_util::BodyExt::collect(response.into_body()).await.unwrap());
    let (_, stored) = client.json("GET", &format!("{CREWS}/a"), &[], "").await;
    assert_eq!(stored["spec"], json!({ "size": 2, "color": "red" }));
    let older = CREWS.replace("/v1/", "/v1alpha1/");
    let response = client.send("GET", &format!("{older}/a"), &[], "").await;
    let told = "299 - \"example.net/v1alpha1 Crew is deprecated; use example.net/v1 Crew\"";
    assert_eq!(warnings(&response), [told]);
    drop(http_body_util::BodyExt::collect(response.into_body()).await.unwrap());
    let merge = [(CONTENT_TYPE, "application/merge-patch+json")];
    let scale = format!("{CREWS}/a/scale");
    let patch = r#"{"spec":{"replicas":7}}"#;
    let (code, scaled) = client.json("PATCH", &scale, &merge, patch).await;
    assert_eq!((code.as_u16(), &scaled["spec"]), (200, &json!({ "replicas": 7 })));
    assert_eq!(scaled["kind"], "Scale");
    let below = r#"{"spec":{"replicas":-1}}"#;
    let (code, _) = client.json("PATCH", &scale, &merge, below).await;
    assert_eq!(code, 422);
    let (code, _) = client.json("GET", &format!("{older}/a/scale"), &[], "").await;
    assert_eq!(code, 404);
    applied_scales(&mut client).await;
    server.stop().await;
}

/// Checks that a manager that applies a Scale owns only the replica field.
async fn applied_scales(client: &mut Client) {
    let apply = [(CONTENT_TYPE, "application/apply-patch+yaml")];
    let scale = |manager: &str, more: &str| format!("{CREWS}/a/scale?fieldManager={manager}{more}");
    let body = r#"{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":8}}"#;
    let (code, status) = client.json("PATCH", &scale("scaler", ""), &apply, body).await;
    assert_eq!((code.as_u16(), &status["reason"]), (409, &json!("Conflict")));
    let forced = scale("scaler", "&force=true");
    let (code, scaled) = client.json("PATCH", &forced, &apply, body).await;
    assert_eq!((code.as_u16(), &scaled["spec"]), (200, &json!({ "replicas": 8 })));
    let (_, crew) = client.json("GET", &format!("{CREWS}/a"), &[], "").await;
    assert_eq!(crew["spec"], json!({ "size": 8, "color": "red" }));
    let entries = crew["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["manager"] == "scaler").unwrap();
    assert_eq!((&entry["operation"], &entry["subresource"]), (&json!("Apply"), &json!("scale")));
    assert_eq!(entry["fieldsV1"], json!({ "f:spec": { "f:size": {} } }));
    let absent = forced.replace("/a/", "/absent/");
    let (code, _) = client.json("PATCH", &absent, &apply, body).await;
    assert_eq!(code, 404);
}

/// Manifest from the guide for a cluster of NUCs.
const GUIDE: &str = r#"
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4
kind: TinkerbellCluster
metadata:
  name: my-nuc-cluster-infra
  namespace: default
spec:
  controlPlaneEndpoint:
    host: "192.168.1.200"
    port: 6443
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4
kind: TinkerbellMachineTemplate
metadata:
  name: nuc-control-plane-template
  namespace: default
spec:
  template:
    spec:
      hardwareSelector:
        manufacturer: "Intel"
        plan: "NUC"
      osImage: "ubuntu-20.04"
      userDataSecret:
        name: nuc-control-plane-userdata
---
apiVersion: cluster.x-k8s.io/v1alpha4
kind: Machine
metadata:
  name: nuc-control-plane-1
  namespace: default
spec:
  clusterName: my-nuc-cluster
  version: v1.21.1
  bootstrap:
    configRef:
      apiVersion: bootstrap.cluster.x-k8s.io/v1alpha4
      kind: KubeadmConfig
      name: nuc-control-plane-bootstrap
  infrastructureRef:
    apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4
    kind: TinkerbellMachine
    name: nuc-control-plane-1
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4
kind: TinkerbellMachine
metadata:
  name: nuc-control-plane-1
  namespace: default
spec:
  providerID: "tinkerbell://nuc-control-plane-1"
  hardwareSelector:
    manufacturer: "Intel"
    plan: "NUC"
  osImage: "ubuntu-20.04"
  userDataSecret:
    name: nuc-control-plane-userdata
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_commands_work() {
    let server = Server::start().await;
    let (success, out, err) = server.run(&["apply", "-f", "-"], GUIDE).await;
    assert!(success, "{err}");
    assert_eq!(out.lines().filter(|line| line.ends_with(" created")).count(), 4, "{out}");
    let warning = "this box does not run the controllers of Cluster API for a Machine";
    assert_eq!(err.lines().filter(|line| line.contains(warning)).count(), 1, "{err}");
    for (kind, name) in [
        ("tinkerbellclusters", "my-nuc-cluster-infra"),
        ("tinkerbellmachines", "nuc-control-plane-1"),
        ("tinkerbellmachinetemplates", "nuc-control-plane-template"),
        ("machines", "nuc-control-plane-1"),
    ] {
        let out = server.kubectl(&["get", kind, "-A"], "").await;
        assert!(out.lines().any(|row| row.split_whitespace().nth(1) == Some(name)), "{out}");
    }
    let out = server.kubectl(&["get", "machines", "-A"], "").await;
    assert!(out.contains("my-nuc-cluster") && out.contains("v1.21.1"), "{out}");
    // All fields of the manifest are known.
    let mut client = Client::connect(&server).await;
    let path = "/apis/infrastructure.cluster.x-k8s.io/v1alpha4/namespaces/default/\
                tinkerbellmachines/nuc-control-plane-1";
    let (code, machine) = client.json("GET", path, &[], "").await;
    assert_eq!((code.as_u16(), &machine["spec"]["osImage"]), (200, &json!("ubuntu-20.04")));
    let strict = format!("{path}?fieldValidation=Strict");
    let again = client.send("PUT", &strict, &[], machine.to_string()).await;
    assert_eq!(again.status(), 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_template_is_not_changed_in_place() {
    let server = Server::start().await;
    let (success, _, err) = server.run(&["apply", "-f", "-"], GUIDE).await;
    assert!(success, "{err}");
    let template = ["tinkerbellmachinetemplate", "nuc-control-plane-template"];
    let patch = async |patch: Value, more: &[&str]| {
        let patch = patch.to_string();
        let words = [&["patch"], &template[..], &["--type=merge", "-p", &patch], more].concat();
        server.run(&words, "").await
    };
    let spec = json!({ "template": { "spec": { "osImage": "ubuntu-24.04" } } });
    let change = json!({ "spec": spec });
    for more in [&[][..], &["--dry-run=server"]] {
        let (success, _, err) = patch(change.clone(), more).await;
        assert!(!success && err.contains("spec.template.spec: Forbidden"), "{err}");
        assert!(err.contains("make another TinkerbellMachineTemplate"), "{err}");
    }
    // Another apply of the same manifest, and a change of labels.
    let (success, out, err) = server.run(&["apply", "-f", "-"], GUIDE).await;
    assert!(success && out.matches(" unchanged").count() == 4, "{out}{err}");
    let (success, _, err) = patch(json!({ "metadata": { "labels": { "a": "b" } } }), &[]).await;
    assert!(success, "{err}");
    // The topology controller of Cluster API compares templates by dry runs with this mark.
    let marked = json!({ "topology.cluster.x-k8s.io/dry-run": "" });
    let marked = json!({ "metadata": { "annotations": marked }, "spec": spec });
    let (success, _, err) = patch(marked, &["--dry-run=server"]).await;
    assert!(success, "{err}");
    let words = [&["get"], &template[..], &["-o", "jsonpath={.spec.template.spec.osImage}"]];
    assert_eq!(server.kubectl(&words.concat(), "").await, "ubuntu-20.04");
    server.stop().await;
}
