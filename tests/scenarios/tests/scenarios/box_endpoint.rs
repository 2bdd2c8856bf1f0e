//! Three machines of a control plane behind an address of the box. Stock agents install them, and
//! their API servers are in memory; clients reach these only through the box.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use peers::{Docker, built};
use rtnetlink::packet_route::address::AddressAttribute;
use scenarios::{
    BoxProcess, BoxProgram, Host, KUBERNETES, Lab, LabConfig, Management, Nodes, RackConfig,
    Segment,
};
use serde_json::{Value, json};

/// Timeout of each wait. Cluster API waits up to 30 s between two steps.
const SOON: Duration = Duration::from_secs(300);
const CLUSTER: &str = "edge";
/// Address that the box provides.
const ENDPOINT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 50);
/// Address of a computer with kubectl.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 60);
const MACHINES: [(&str, Ipv4Addr); 3] = [
    ("m1", Ipv4Addr::new(10, 77, 0, 21)),
    ("m2", Ipv4Addr::new(10, 77, 0, 22)),
    ("m3", Ipv4Addr::new(10, 77, 0, 23)),
];
/// Action that installs a Kubernetes version on the disk of a machine.
const INSTALL: &str = r#"#!/bin/sh
echo "$KUBERNETES" >"/disks/$DISK"
echo "$DISK" >>/disks/log
"#;
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// All programs of the test.
struct Site {
    management: Management,
    nodes: Nodes,
    client: Host,
    docker: Docker,
    agents: Vec<BoxProcess>,
}

impl Site {
    fn start() -> Self {
        let mut config = LabConfig::new(RackConfig::new("box-endpoint"));
        config.stock_agents = true;
        let lab = Lab::start(config).unwrap();
        let docker = Docker::start().unwrap();
        let nodes = Nodes::start(&lab).unwrap();
        let client = lab.rack.add_host("client", &[(Segment::Near, CLIENT)]).unwrap();
        let management = Management::start_paired(lab).unwrap();
        let mut site = Self { management, nodes, client, docker, agents: Vec::new() };
        MACHINES.iter().for_each(|(name, address)| site.add_machine(name, *address));
        site
    }

    /// Adds Hardware without a BMC, whose stock agent runs.
    fn add_machine(&mut self, name: &str, address: Ipv4Addr) {
        self.nodes.take(address).unwrap();
        let interface = json!({ "dhcp": {
            "mac": format!("52:54:00:99:00:{:02x}", address.octets()[3]), "hostname": name,
            "ip": { "address": address, "netmask": "255.255.255.0" },
        } });
        let hardware = json!({
            "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "agentID": name, "disks": [{ "device": "/dev/nvme0n1" }],
                "interfaces": [interface] },
        });
        let lab = &self.management.lab;
        self.management.apply_to(&lab.kubeconfig(), &hardware.to_string()).unwrap();
        let program = built("tink-agent", &[]).unwrap().remove(0);
        let agent = BoxProgram::new(program, lab.rack.dir().join(format!("{name}.log")))
            .args(["--id", name, "--grpc-server", "10.77.0.1:42113"])
            .args(["--docker-socket".as_ref(), self.docker.socket().as_os_str()])
            .args(["--backoff-max-interval", "1s"]);
        self.agents.push(self.nodes.spawn(agent).unwrap());
    }

    /// Waits until `test` is true of an object of the management cluster.
    fn wait(&self, object: (&str, &str), test: impl Fn(&Value) -> bool) -> Value {
        let kubeconfig = self.management.kubeconfig();
        let test = |object: Option<&Value>| object.is_some_and(&test);
        self.management.wait_object(kubeconfig, object, SOON, test).unwrap().unwrap()
    }

    /// Waits until `test` is true of the number of healthy machines behind the address.
    fn wait_healthy(&self, test: impl Fn(u64) -> bool) {
        let own = self.management.lab.kubeconfig();
        let endpoint = ("controlplaneendpoints", &*ENDPOINT.to_string());
        let is_so = |object: Option<&Value>| {
            let status = object.map_or(&Value::Null, |it| &it["status"]);
            status["reason"] == "Forwarding" && status["healthy"].as_u64().is_some_and(&test)
        };
        self.management.wait_object(&own, endpoint, SOON, is_so).unwrap();
    }

    /// Returns the names of the Nodes, which kubectl on another computer reads from the endpoint.
    fn node_names(&self) -> Vec<String> {
        let lab = &self.management.lab;
        let mut get = self.management.kubectl(self.management.kubeconfig());
        get.args(["get", "secret", "edge-kubeconfig", "-o"]);
        get.arg("go-template={{.data.value | base64decode}}");
        let kubeconfig = peers::run(get, "").unwrap();
        assert!(kubeconfig.success, "{kubeconfig:?}");
        assert!(kubeconfig.out.contains(&format!("server: https://{ENDPOINT}:6443")));
        let file = lab.file("edge.kubeconfig", &kubeconfig.out).unwrap();
        let mut get = self.client.command(built("kubectl", &["1.35"]).unwrap().remove(0));
        get.arg("--kubeconfig").arg(file).args(["get", "nodes", "-o", "name"]);
        let printed = peers::run(get, "").unwrap();
        assert!(printed.success, "{printed:?}");
        let mut names: Vec<String> = printed.out.lines().map(str::to_owned).collect();
        names.sort();
        names
    }

    /// Returns the number of installations that ran.
    fn installations(&self) -> usize {
        let log = std::fs::read_to_string(self.nodes.disks().join("log"));
        log.unwrap_or_default().lines().count()
    }

    /// Returns the objects of a cluster whose endpoint the box provides.
    fn cluster(&self) -> Value {
        let image = self.docker.publish("install", INSTALL).unwrap();
        let action = json!({
            "name": "install", "image": image, "timeout": 300,
            "environment": { "DISK": "{{.device_1}}", "KUBERNETES": KUBERNETES },
            "volumes": [format!("{}:/disks", self.nodes.disks().display())],
        });
        let task = json!({ "name": "install", "worker": "{{.device_1}}", "actions": [action] });
        let text = json!({ "version": "0.1", "name": "install", "global_timeout": 600,
            "tasks": [task] });
        let metadata = json!({ "name": CLUSTER, "namespace": "default" });
        let reference =
            |group: &str, kind: &str| json!({ "apiGroup": group, "kind": kind, "name": CLUSTER });
        let of_infrastructure = |kind: &str| reference(INFRASTRUCTURE, kind);
        let argument = json!([{ "name": "provider-id", "value": "PROVIDER_ID" }]);
        let node = json!({ "nodeRegistration": { "kubeletExtraArgs": argument } });
        let objects = json!([
            { "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata,
                "spec": {
                    "infrastructureRef": of_infrastructure("TinkerbellCluster"),
                    "controlPlaneRef":
                        reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
                } },
            { "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "TinkerbellCluster",
                "metadata": metadata,
                "spec": { "controlPlaneEndpoint": { "host": ENDPOINT, "port": 6443 },
                    "controlPlaneEndpointProvider": "Box" } },
            { "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"),
                "kind": "TinkerbellMachineTemplate", "metadata": metadata,
                "spec": { "template": { "spec": { "templateOverride": text.to_string() } } } },
            { "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
                "kind": "KubeadmControlPlane", "metadata": metadata,
                "spec": { "replicas": 3, "version": KUBERNETES,
                    "machineTemplate": { "spec": {
                        "infrastructureRef": of_infrastructure("TinkerbellMachineTemplate") } },
                    "kubeadmConfigSpec":
                        { "initConfiguration": node, "joinConfiguration": node } } },
        ]);
        json!({ "apiVersion": "v1", "kind": "List", "items": objects })
    }
}

/// Adds the address to the interface of the box, with the label of the box's own addresses. The box
/// of a lab gives up the right to do so, because it is a process of another system.
fn add_address(lab: &Lab) {
    let added = lab.rack.in_box(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (connection, netlink, _) = rtnetlink::new_connection().unwrap();
            tokio::spawn(connection);
            let mut links = netlink.link().get().match_name("eth0".to_owned()).execute();
            let index = links.try_next().await.unwrap().unwrap().header.index;
            let mut request = netlink.address().add(index, IpAddr::V4(ENDPOINT), 32);
            let label = AddressAttribute::Label("tinbox-vip".to_owned());
            request.message_mut().attributes.push(label);
            request.execute().await.unwrap();
        });
    });
    added.unwrap();
}

fn reason(object: &Value, kind: &str) -> String {
    let all = object["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|it| it["type"] == kind));
    found.and_then(|it| it["reason"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn three_machines_are_one_control_plane_behind_an_address_of_the_box() {
    let mut site = Site::start();
    site.management.apply(&site.cluster().to_string()).unwrap();
    let cluster = ("tinkerbellclusters", CLUSTER);
    site.wait(cluster, |it| reason(it, "ControlPlaneEndpointReady") == "AddressFailed");
    add_address(&site.management.lab);
    site.wait(cluster, |it| it["status"]["initialization"]["provisioned"] == true);
    site.wait_healthy(|count| count > 0);
    assert!(!site.node_names().is_empty());

    // The box is killed while the control plane grows.
    site.management.lab.daemon.restart().unwrap();
    site.management.lab.wait_until_ready().unwrap();
    let control_plane = ("kubeadmcontrolplanes", CLUSTER);
    let is_complete = |it: &Value| {
        ["readyReplicas", "availableReplicas"].iter().all(|count| it["status"][count] == 3)
    };
    site.wait(control_plane, is_complete);
    site.wait_healthy(|count| count == 3);
    let names = MACHINES.map(|(name, _)| format!("node/{name}"));
    assert_eq!(site.node_names(), names);
    assert_eq!(site.installations(), 3);

    // One machine dies: the address leads to the others.
    site.nodes.give_back(MACHINES[0].1).unwrap();
    site.wait_healthy(|count| count == 2);
    assert_eq!(site.node_names(), names);
    let Site { management, nodes, client, docker, agents } = site;
    drop((agents, docker, client, nodes));
    management.succeed();
}
