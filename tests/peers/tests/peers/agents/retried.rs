//! An action that fails twice is tried again by the policy of its workflow, after growing waits.

use jiff::{SignedDuration, Timestamp};
use peers::poll;
use serde_json::{Value, json};
use stdx::testing::PATIENCE;

use super::rack::{Generation, Rack, act};

/// Wait in seconds before the second attempt; it doubles before the third.
const BACKOFF: i64 = 2;

/// Runs a workflow whose second action succeeds at the third attempt. The first action, which
/// succeeded, is not repeated.
pub fn third_time(generation: Generation) {
    let rack = Rack::start();
    let id = generation.id();
    let _agent = rack.agent(generation, id);
    let mut third = act(&rack, "third");
    third["environment"]["FAILS"] = json!("2");
    let actions = json!([act(&rack, "before"), third, act(&rack, "after")]);
    let tasks = [json!({ "name": "one", "worker": id, "actions": actions })];
    let retry = json!({ "attempts": 3, "backoffSeconds": BACKOFF });
    rack.apply_with("retried", &tasks, json!({ "retry": retry }));
    let mut waits = Vec::new();
    let mut status = Value::Null;
    let waited = poll("the workflow to succeed", PATIENCE, || {
        status = rack.status("retried");
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let messages = conditions.filter(|it| it["type"] == "Retrying").map(|it| {
            assert_eq!((&it["status"], &it["reason"]), (&json!("True"), &json!("Backoff")));
            it["message"].as_str().unwrap().to_owned()
        });
        waits.extend(messages);
        status["state"] == "SUCCESS"
    });
    waited.unwrap_or_else(|error| panic!("{error}\n{status}\n{:?}", rack.log()));
    waits.dedup();
    let message = |attempt: i64, seconds: i64| {
        format!("attempt {attempt} of 3 begins {seconds} s after the end of the previous attempt")
    };
    // A wait is seen unless the test itself was stopped meanwhile.
    assert!(waits.iter().all(|it| [message(2, BACKOFF), message(3, 2 * BACKOFF)].contains(it)));
    assert_eq!(
        rack.log(),
        [
            "begin before",
            "end before",
            "begin third",
            "begin third",
            "begin third",
            "end third",
            "begin after",
            "end after"
        ]
    );
    check_history(&status);
    let events = rack.events("retried");
    let mut retries: Vec<&str> =
        events.iter().filter(|it| it.0 == "Retried").map(|it| it.1.as_str()).collect();
    // The API lists events by name.
    retries.sort_unstable();
    let of = |attempt: i64| {
        format!("attempt {attempt} from the action that did not succeed, by the retry policy")
    };
    assert_eq!(retries, [of(2), of(3)], "{events:?}");
}

/// Checks that both failures are recorded, and that each attempt began after its wait.
fn check_history(status: &Value) {
    assert_eq!(status["attempts"], 3);
    let attempts = status["history"].as_array().unwrap();
    let states: Vec<&Value> = attempts.iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["FAILED", "FAILED"]);
    let actions = &status["tasks"][0]["actions"];
    assert_eq!(actions[0].get("history"), None, "{}", actions[0]);
    let earlier = actions[1]["history"].as_array().unwrap();
    assert_eq!(earlier.len(), 2);
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let starts = [&earlier[1]["executionStart"], &actions[1]["executionStart"]].map(time);
    for (at, start) in starts.into_iter().enumerate() {
        let wait = SignedDuration::from_secs(BACKOFF * (i64::try_from(at).unwrap() + 1));
        let since = start.duration_since(time(&attempts[at]["time"]));
        // Times of actions are those of the agent, on the same computer, in whole seconds.
        assert!(since >= wait - SignedDuration::from_secs(1), "{since:?}");
    }
}
