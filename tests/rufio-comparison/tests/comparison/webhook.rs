//! The same Jobs for a machine behind a webhook: Rufio's provider `rpc` (bmclib) and ours.

use std::collections::{BTreeMap, BTreeSet};

use bmc::Power;
use serde_json::{Value, json};

use crate::api::{Api, Side};
use crate::cases::{self, Case, case};
use crate::receiver::{Received, Receiver, SECRET};
use crate::{Outcome, table};

/// Reason of the difference for a machine that is in the requested state.
const CONFIRMED: &str = "the box sends no command to a machine that is in the requested state";
/// Reason of the difference for the action `status`.
const STATUS: &str = "Rufio sends the power state `status`; the box reads the state";

fn cases() -> Vec<Case> {
    use Power::{Off, On};
    let pxe = json!({ "bootDevice": { "device": "pxe", "efiBoot": true } });
    let disk = json!({ "bootDevice": { "device": "disk", "persistent": true } });
    let [on, off, cycle, reset, status] =
        ["on", "off", "cycle", "reset", "status"].map(|it| json!({ "powerAction": it }));
    vec![
        case("on", Off, json!([on])),
        Case { difference: CONFIRMED, ..case("on, machine is on", On, json!([on])) },
        case("off", On, json!([off])),
        Case { difference: CONFIRMED, ..case("off, machine is off", Off, json!([off])) },
        case("cycle", On, json!([cycle])),
        case("reset", On, json!([reset])),
        Case { difference: STATUS, ..case("status", On, json!([status])) },
        case("boot device", On, json!([pxe])),
        case("boot device, persistent", On, json!([disk])),
        case("network boot of a workflow", On, json!([off, pxe, on])),
    ]
}

/// Runs all cases with the controllers of one side. Returns also all requests.
async fn outcomes(side: Side, cases: &[Case]) -> (Vec<Outcome>, Vec<Received>) {
    let (api, receiver) = (Api::start(side).await, Receiver::start().await);
    let objects = api.objects.as_ref();
    cases::secret(objects, "hmac", &[("secret", SECRET)]).await;
    let secrets = json!([{ "name": "hmac", "namespace": cases::NAMESPACE }]);
    let options = json!({
        "consumerURL": receiver.url,
        "hmac": { "secrets": { "sha256": secrets, "sha512": secrets } },
        "request": { "staticHeaders": { "X-Rack": ["r1"] } },
    });
    let connection = json!({
        "host": "192.0.2.5",
        "port": 0,
        "insecureTLS": true,
        "authSecretRef": { "name": "hmac", "namespace": cases::NAMESPACE },
        "providerOptions": { "rpc": options },
    });
    cases::machine(objects, connection).await;
    let (mut outcomes, mut all) = (Vec::new(), Vec::new());
    for case in cases {
        receiver.set(case.before == Power::On);
        receiver.take();
        let ending = cases::run(&api, case).await;
        let received = receiver.take();
        // The number of readings depends on the time.
        let commands = received.iter().filter(|it| it.method.starts_with("set"));
        let commands = commands.map(|it| params(&it.body)).collect();
        outcomes.push(Outcome { commands, ending });
        all.extend(received);
    }
    (outcomes, all)
}

/// Returns the method and the parameters of a body.
fn params(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let params = body["params"].to_string().replace('"', "");
    format!("{} {params}", body["method"].as_str().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn rufio_and_the_box_send_the_same_requests_to_a_webhook() {
    let cases = cases();
    let (rufio, theirs) = outcomes(Side::Rufio, &cases).await;
    let (ours, requests) = outcomes(Side::Box, &cases).await;
    golden::check("webhook.md", &table(&rufio, &ours, &cases));

    // The same body has the same header fields, except for those of the HTTP clients.
    let by_body = |requests: Vec<Received>| {
        let mut fields: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for request in requests {
            fields.entry(request.body).or_default().extend(request.fields);
        }
        fields
    };
    let (theirs, ours) = (by_body(theirs), by_body(requests));
    let ignored = ["accept", "accept-encoding", "user-agent", "connection: close"];
    let needed = |fields: &BTreeSet<String>| -> Vec<String> {
        fields.iter().filter(|it| !ignored.contains(&it.as_str())).cloned().collect()
    };
    let shared: Vec<&String> = theirs.keys().filter(|body| ours.contains_key(*body)).collect();
    assert!(shared.len() >= 7, "{:?} and {:?}", theirs.keys(), ours.keys());
    for body in shared {
        assert_eq!(needed(&ours[body]), needed(&theirs[body]), "{body}");
    }
}
