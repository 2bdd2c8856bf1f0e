//! A machine behind a webhook that fails: no action on an unconfirmed state, and no loop.

use std::sync::Arc;

use api::core::SECRET as SECRETS;
use api::meta::ObjectKey;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use bmc::{Driver, Power, PowerAction, ensure};
use controllers::BmcDrivers;
use controllers::machine::connect;
use objects::fake::Memory;
use serde_json::json;
use stdx::testing::PATIENCE;
use tokio::time::Instant;

use crate::receiver::{Mode, Receiver, SECRET};

async fn start(mode: Mode, is_on: bool) -> (Receiver, Arc<dyn Driver>) {
    let (receiver, objects) = (Receiver::start().await, Memory::default());
    receiver.behave(mode);
    receiver.set(is_on);
    let metadata = json!({ "name": "hmac", "namespace": "default" });
    let data = json!({ "secret": BASE64.encode(SECRET) });
    objects.put(SECRETS, json!({ "kind": "Secret", "metadata": metadata, "data": data }));
    let secrets = json!([{ "name": "hmac" }]);
    let hmac = json!({ "secrets": { "sha256": secrets, "sha512": secrets } });
    let rpc = json!({ "consumerURL": receiver.url, "hmac": hmac });
    let connection = json!({ "host": "192.0.2.5", "providerOptions": { "rpc": rpc } });
    let connection = serde_json::from_value(connection).unwrap();
    let owner = ObjectKey::new("default", "node");
    (receiver, connect(&objects, &BmcDrivers::default(), &connection, &owner).await.unwrap())
}

/// Bodies of the commands that arrived, without the readings.
fn commands(receiver: &Receiver) -> usize {
    receiver.take().iter().filter(|it| it.method.starts_with("set")).count()
}

#[tokio::test]
async fn an_executed_command_without_a_response_is_not_repeated() {
    let (receiver, driver) = start(Mode::Unacknowledged, true).await;
    ensure(driver.as_ref(), Power::Off, Instant::now() + PATIENCE).await.unwrap();
    assert_eq!((commands(&receiver), receiver.is_on()), (1, false));
    let error = driver.set_power(PowerAction::Cycle).await.unwrap_err();
    assert!(!error.is_transient(), "a cycle that may be done is not repeated: {error}");
    assert_eq!(commands(&receiver), 1);
}

#[tokio::test]
async fn a_late_change_is_awaited_with_one_command() {
    let (receiver, driver) = start(Mode::Late(3), true).await;
    ensure(driver.as_ref(), Power::Off, Instant::now() + PATIENCE).await.unwrap();
    assert_eq!((commands(&receiver), receiver.is_on()), (1, false));
}

#[tokio::test]
async fn an_invalid_answer_causes_no_command() {
    for text in ["", "<html>", "{", "[]", "{\"result\":7}", "{\"result\":null}", "{}", "null"] {
        let (receiver, driver) = start(Mode::Text(text), true).await;
        let error =
            ensure(driver.as_ref(), Power::Off, Instant::now() + PATIENCE).await.unwrap_err();
        assert_eq!((commands(&receiver), receiver.is_on()), (0, true), "{text}: {error}");
        assert!(!error.sentence().contains(SECRET), "{error}");
    }
}
