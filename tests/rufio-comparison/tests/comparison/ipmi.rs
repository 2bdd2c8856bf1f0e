//! The same Jobs for a machine with IPMI: OpenIPMI's `ipmi_sim` records the chassis commands.

use bmc::{CipherSuite, Power, registry};
use peers::IpmiSim;
use serde_json::json;
use stdx::testing::{PATIENCE, Wait};
use tokio::time::Instant;

use crate::api::{Api, Side};
use crate::cases::{self, Case, case};
use crate::{Outcome, table};

/// Reason of the difference for the action `status`.
const STATUS: &str = "Rufio sends `status` as a power command, which is refused; the box reads it";

fn cases() -> Vec<Case> {
    use Power::{Off, On};
    let pxe = json!({ "bootDevice": { "device": "pxe", "efiBoot": true } });
    let once = json!({ "oneTimeBootDeviceAction": { "device": ["pxe"], "efiBoot": false } });
    let safe = json!({ "bootDevice": { "device": "safe" } });
    let [on, off, soft, cycle, reset, status] =
        ["on", "off", "soft", "cycle", "reset", "status"].map(|it| json!({ "powerAction": it }));
    vec![
        case("on", Off, json!([on])),
        case("on, machine is on", On, json!([on])),
        case("off", On, json!([off])),
        case("off, machine is off", Off, json!([off])),
        case("soft", On, json!([soft])),
        case("soft, machine is off", Off, json!([soft])),
        case("cycle", On, json!([cycle])),
        case("reset", On, json!([reset])),
        Case { difference: STATUS, ..case("status", On, json!([status])) },
        case("boot device", On, json!([pxe])),
        case("boot device, old spelling", On, json!([once])),
        case("network boot of a workflow", On, json!([off, pxe, on])),
        case("a refused Task, then on", Off, json!([safe, on])),
        // The Job with which CAPT switches off a machine that leaves its cluster.
        case("node-poweroff", On, json!([off])),
        case("node-poweroff, machine is off", Off, json!([off])),
    ]
}

/// Runs all cases with the controllers of one side.
async fn outcomes(side: Side, cases: &[Case]) -> Vec<Outcome> {
    let (api, sim) = (Api::start(side).await, IpmiSim::start().unwrap());
    let endpoint = sim.endpoint(Some(CipherSuite::Three));
    let objects = api.objects.as_ref();
    let login = [("username", IpmiSim::USERNAME), ("password", IpmiSim::PASSWORD)];
    cases::secret(objects, "bmc", &login).await;
    let options = json!({ "ipmitool": { "cipherSuite": "3", "port": endpoint.address.port } });
    let connection = json!({
        "host": endpoint.address.host,
        "port": endpoint.address.port,
        "insecureTLS": true,
        "authSecretRef": { "name": "bmc", "namespace": cases::NAMESPACE },
        "providerOptions": options,
    });
    cases::machine(objects, connection).await;
    let mut outcomes = Vec::new();
    for case in cases {
        let driver = registry::open(endpoint.clone());
        bmc::ensure(driver.as_ref(), case.before, Instant::now() + PATIENCE).await.unwrap();
        let before = sim.commands().len();
        let ending = cases::run(&api, case).await;
        // After a cycle, the simulator restores power by itself, some seconds later.
        let wait = Wait::new("power after a cycle");
        while sim.commands()[before..].last().is_some_and(|it| it == "power 0")
            && case.tasks.to_string().contains("cycle")
        {
            tokio::time::sleep(wait.pause()).await;
        }
        outcomes.push(Outcome { commands: sim.commands()[before..].to_vec(), ending });
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn rufio_and_the_box_send_the_same_ipmi_commands() {
    let cases = cases();
    let rufio = outcomes(Side::Rufio, &cases).await;
    let ours = outcomes(Side::Box, &cases).await;
    golden::check("ipmi.md", &table(&rufio, &ours, &cases));
}
