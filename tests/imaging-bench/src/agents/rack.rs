//! Simulated rack: machines, workflows, and the tokens that the box gives to their agents.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use agent_rpc::Pin;
use anyhow::{Context as _, Result, ensure};
use peers::{Kubectl, Tinboxd};
use serde_json::{Value, json};
use stdx::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use crate::load::{ACTIONS, Member};

/// One of this many machines has no work: its workflow is paused when its agent runs.
const WAITING_EVERY: u8 = 4;
/// Port of the box's boot files.
const BOOT_PORT: u16 = 7080;
/// Maximum time until the machine of a new workflow may boot.
const LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// A machine of the rack.
#[derive(Debug, Clone, Copy)]
struct Machine(u8);

impl Machine {
    fn name(self) -> String {
        format!("machine-{}", self.0)
    }

    /// MAC address, which is also the agent's ID.
    fn mac(self) -> String {
        format!("52:54:00:99:00:{:02x}", self.0)
    }

    /// True when the machine's agent has no work.
    fn waits(self) -> bool {
        self.0.is_multiple_of(WAITING_EVERY)
    }

    /// Source address: the box sends a machine's token only to that machine.
    fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(127, 7, 0, self.0)
    }

    fn hardware(self) -> Value {
        let ip = json!({ "address": self.address(), "netmask": "255.0.0.0" });
        json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Hardware",
            "metadata": { "name": self.name() },
            "spec": {
                "disks": [{ "device": "/dev/sda" }],
                "interfaces": [{
                    "dhcp": { "mac": self.mac(), "ip": ip, "arch": "x86_64", "uefi": true },
                    "netboot": { "allowPXE": true },
                }],
            },
        })
    }

    fn workflow_name(self, round: usize) -> String {
        format!("{}-{round}", self.name())
    }

    fn workflow(self, round: usize) -> Value {
        json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Workflow",
            "metadata": { "name": self.workflow_name(round) },
            "spec": {
                "templateRef": "bench",
                "hardwareRef": self.name(),
                "hardwareMap": { "device_1": self.mac() },
            },
        })
    }
}

fn template() -> Value {
    let action = |number: usize| {
        json!({
            "name": format!("write-{number}"),
            "image": "quay.io/tinkerbell/actions/image2disk:latest",
            "timeout": 600,
            "environment": {
                "IMG_URL": "http://10.77.0.1:7080/images/debian.raw.zst",
                "DEST_DISK": "{{ index .Hardware.Disks 0 }}",
                "COMPRESSED": "true",
            },
        })
    };
    let actions: Vec<Value> = (0..ACTIONS).map(action).collect();
    let data = json!({
        "version": "0.1",
        "name": "bench",
        "global_timeout": 6000,
        "tasks": [{ "name": "install", "worker": "{{.device_1}}", "actions": actions }],
    });
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Template",
        "metadata": { "name": "bench" },
        "spec": { "data": data.to_string() },
    })
}

/// The machines of a running box.
pub struct Rack<'a> {
    tinboxd: &'a Tinboxd,
    kubectl: Kubectl,
    machines: u8,
    /// Agents that wait, from the first round to the last.
    waiting: Vec<Member>,
}

impl<'a> Rack<'a> {
    /// Registers this many machines at the box.
    ///
    /// # Errors
    /// The box refuses an object.
    pub fn new(tinboxd: &'a Tinboxd, machines: u8) -> Result<Self> {
        let rack = Self { tinboxd, kubectl: tinboxd.kubectl()?, machines, waiting: Vec::new() };
        let mut objects: Vec<Value> = rack.machines().map(Machine::hardware).collect();
        objects.push(template());
        rack.create(&objects)?;
        Ok(rack)
    }

    fn machines(&self) -> impl Iterator<Item = Machine> + use<> {
        (1..=self.machines).map(Machine)
    }

    fn create(&self, objects: &[Value]) -> Result<()> {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        let printed = self.kubectl.run(&["create", "-f", "-"], &list.to_string())?;
        ensure!(printed.success, "the box refused: {printed:?}");
        Ok(())
    }

    /// Creates a workflow for every machine without one; returns the agents that boot for it, and
    /// the box's pin.
    ///
    /// # Errors
    /// The box refuses a workflow, or does not let a machine boot in time.
    pub async fn work(&mut self, round: usize) -> Result<(Vec<Member>, Pin)> {
        let is_new = |machine: &Machine| round == 0 || !machine.waits();
        let booting: Vec<Machine> = self.machines().filter(is_new).collect();
        let workflows: Vec<Value> = booting.iter().map(|it| it.workflow(round)).collect();
        self.create(&workflows)?;
        let mut members = self.waiting.clone();
        let mut pin = None;
        for machine in booting {
            let boot = self.until_it_boots(machine).await?;
            let token = Some(Secret::from(word(&boot, "tinbox.token")?));
            pin = Some(word(&boot, "tinbox.pin")?.parse().map_err(anyhow::Error::msg)?);
            members.push(Member { id: machine.mac(), token, works: !machine.waits() });
        }
        if round == 0 {
            self.pause()?;
            self.waiting = members.iter().filter(|member| !member.works).cloned().collect();
        }
        Ok((members, pin.context("a rack has machines")?))
    }

    fn pause(&self) -> Result<()> {
        let waiting = self.machines().filter(|machine| machine.waits());
        let names: Vec<String> = waiting.map(|machine| machine.workflow_name(0)).collect();
        let mut words =
            vec!["patch", "workflow", "--type=merge", "-p", r#"{"spec":{"paused":true}}"#];
        words.extend(names.iter().map(String::as_str));
        let printed = self.kubectl.run(&words, "")?;
        ensure!(printed.success, "the box refused: {printed:?}");
        Ok(())
    }

    /// Waits for the script with which a machine boots its agent for the newest workflow.
    async fn until_it_boots(&self, machine: Machine) -> Result<String> {
        let booting = async {
            loop {
                let script = self.script(machine).await?;
                if script.contains("tinbox.token=") {
                    return anyhow::Ok(script);
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let name = machine.name();
        tokio::time::timeout(LIMIT, booting)
            .await
            .with_context(|| format!("{name} does not get to boot the agent"))?
    }

    /// Fetches the machine's boot script, from the machine's own address.
    async fn script(&self, machine: Machine) -> Result<String> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((machine.address(), 0)))?;
        let address = SocketAddr::from((self.tinboxd.address(), BOOT_PORT));
        let mut stream = socket.connect(address).await.context("the box's boot port")?;
        let path = format!("/ipxe/script/{}/auto.ipxe", machine.mac());
        let ask = format!("GET {path} HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n");
        stream.write_all(ask.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

/// The same agents for the baseline server, which has no machine records.
pub fn strangers(machines: u8) -> Vec<Member> {
    let member = |machine: Machine| Member {
        id: machine.mac(),
        token: Some(Secret::from("0".repeat(64))),
        works: !machine.waits(),
    };
    (1..=machines).map(|number| member(Machine(number))).collect()
}

/// True when the agent of this ID has no work.
pub fn waits(agent_id: &str) -> bool {
    let number = agent_id.rsplit(':').next().and_then(|hex| u8::from_str_radix(hex, 16).ok());
    number.is_some_and(|number| Machine(number).waits())
}

/// The value of `name=` in a kernel command line.
fn word<'a>(script: &'a str, name: &str) -> Result<&'a str> {
    let value = |word: &'a str| word.strip_prefix(name)?.strip_prefix('=');
    script.split_whitespace().find_map(value).with_context(|| format!("a script without {name}"))
}
