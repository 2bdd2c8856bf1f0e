//! Tests of requests and their messages; `script` runs the hook itself.

mod script;

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll as Progress, Waker};
use std::time::{Duration, Instant};

use proptest::prelude::{any, proptest};

use super::{
    CONFIRM_LIMIT, Down, FRESH, HOOKS_MAX, Poll, PowerHooks, PowerOffError, Repetition, base_url,
};

const NUC: &str = "default/nuc-1";

fn poll(boot: &str, number: u64) -> Poll {
    let json = serde_json::json!({ "boot": boot, "number": number, "wake": "on", "mac": "" });
    serde_json::from_value(json).unwrap()
}

fn down(boot: &str, number: u64, request: &str) -> Down {
    let json = serde_json::json!({ "boot": boot, "number": number, "request": request, "mac": "" });
    serde_json::from_value(json).unwrap()
}

fn hooks() -> PowerHooks {
    PowerHooks::new(&[7; 32])
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_with_the_confirmation_of_its_boot() {
    let hooks = hooks();
    let now = Instant::now();
    assert_eq!(hooks.state(NUC), None);
    assert_eq!(hooks.power_off(NUC).await, Err(PowerOffError::NoHook));
    assert_eq!(hooks.polled(NUC, &poll("a", 1), now), Ok(None));
    assert_eq!(hooks.state(NUC).unwrap().is_armed, Some(true));
    let mut off = pin!(hooks.power_off(NUC));
    let mut context = Context::from_waker(Waker::noop());
    assert!(off.as_mut().poll(&mut context).is_pending());
    assert_eq!(hooks.power_off(NUC).await, Err(PowerOffError::Busy));
    let request = hooks.polled(NUC, &poll("a", 2), now).unwrap().unwrap();
    assert_eq!(hooks.polled(NUC, &poll("a", 3), now).unwrap().as_deref(), Some(&*request));
    assert_eq!(hooks.confirmed(NUC, &down("b", 9, &request)), Ok(false), "another boot");
    assert_eq!(hooks.confirmed(NUC, &down("a", 4, "0000")), Ok(false), "another request");
    assert_eq!(hooks.confirmed(NUC, &down("a", 4, &request)), Err(Repetition));
    assert_eq!(hooks.confirmed(NUC, &down("a", 5, &request)), Ok(true));
    assert_eq!(off.as_mut().poll(&mut context), Progress::Ready(Ok(())));
    assert_eq!(hooks.confirmed(NUC, &down("a", 6, &request)), Ok(false));
    assert_eq!(hooks.polled(NUC, &poll("a", 7), now), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_starts_again_does_not_get_the_request() {
    let (hooks, now) = (hooks(), Instant::now());
    hooks.polled(NUC, &poll("a", 900), now).unwrap();
    let mut off = pin!(hooks.power_off(NUC));
    assert!(off.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(hooks.polled(NUC, &poll("b", 1), now), Ok(None), "the numbers begin again");
    let start = tokio::time::Instant::now();
    assert_eq!(off.await, Err(PowerOffError::NotConfirmed));
    assert!(start.elapsed() <= CONFIRM_LIMIT);
}

#[tokio::test(start_paused = true)]
async fn a_request_does_not_outlive_the_one_who_waits_for_it() {
    let (hooks, now) = (hooks(), Instant::now());
    hooks.polled(NUC, &poll("a", 1), now).unwrap();
    assert_eq!(hooks.power_off(NUC).await, Err(PowerOffError::NotConfirmed), "it never polls");
    assert_eq!(hooks.polled(NUC, &poll("a", 2), now), Ok(None));
    {
        let mut off = pin!(hooks.power_off(NUC));
        assert!(off.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(hooks.polled(NUC, &poll("a", 3), now).unwrap().is_some());
    }
    assert_eq!(hooks.polled(NUC, &poll("a", 4), now), Ok(None), "the Task was stopped");
    assert_eq!(hooks.polled(NUC, &poll("a", 4), now), Err(Repetition));
}

#[test]
fn an_old_poll_is_no_hook_and_the_table_has_a_limit() {
    let (hooks, start) = (hooks(), Instant::now());
    hooks.polled(NUC, &poll("a", 1), start).unwrap();
    assert!(hooks.publish(NUC, start + FRESH).is_ok());
    let late = hooks.publish(NUC, start + FRESH + Duration::from_secs(1)).err();
    assert_eq!(late, Some(PowerOffError::NoHook));
    for number in 0..HOOKS_MAX {
        let later = start + Duration::from_secs(1);
        hooks.polled(&format!("default/{number}"), &poll("a", 1), later).unwrap();
    }
    assert_eq!(hooks.state(NUC), None, "the eldest leaves");
    assert_eq!(hooks.hooks().len(), HOOKS_MAX);
}

#[test]
fn a_message_is_of_one_machine_and_one_verb() {
    let hooks = hooks();
    let (one, two) = (hooks.key_of("uid-1"), hooks.key_of("uid-2"));
    let signed = |verb: &str, key: &super::HookKey| -> Poll {
        let mac = key.mac(&format!("{verb} b-1 7 off"));
        let json = serde_json::json!({ "boot": "b-1", "number": 7, "wake": "off", "mac": mac });
        serde_json::from_value(json).unwrap()
    };
    assert!(signed("poll", &one).is_of(&one));
    assert!(!signed("poll", &one).is_of(&two));
    assert!(!signed("down", &one).is_of(&one));
    let [off, go] = [signed("poll", &one).off(&one, "r"), down("b-1", 7, "r").go(&one)];
    assert_eq!(off, format!("off r {}\n", one.mac("off b-1 7 r")));
    assert_eq!(go, format!("go {}\n", one.mac("go b-1 7 r")));
    assert_eq!(PowerHooks::new(&[7; 32]).key_of("uid-1").pads(), one.pads(), "after a restart");
    assert_ne!(PowerHooks::new(&[8; 32]).key_of("uid-1").pads(), one.pads(), "another box");
}

#[test]
fn only_a_plain_host_becomes_a_url() {
    assert_eq!(base_url("10.77.0.1:50061").as_deref(), Some("http://10.77.0.1:50061"));
    assert_eq!(base_url("[fd77::1]:50061").as_deref(), Some("http://[fd77::1]:50061"));
    for bad in ["", "a'b", "a b", "a/b", "a;reboot", "a\nb", "$(reboot)", &"a".repeat(256)] {
        assert_eq!(base_url(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn no_form_without_the_key_is_authentic(
        boot in any::<String>(), number in any::<u64>(), mac in any::<String>(),
    ) {
        let json = serde_json::json!({
            "boot": boot, "number": number, "wake": "on", "request": "r", "mac": mac,
        });
        let key = hooks().key_of("uid-1");
        let poll: Poll = serde_json::from_value(json.clone()).unwrap();
        let down: Down = serde_json::from_value(json).unwrap();
        assert!(!poll.is_of(&key) && !down.is_of(&key));
    }
}
