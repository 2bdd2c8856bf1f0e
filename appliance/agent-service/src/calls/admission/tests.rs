//! Tests of the calls that a token allows.

use std::time::Duration;

use agent_rpc::{Call, Credentials, Refusal};
use api::tinkerbell::{State, Workflow};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{Candidate, Denial, REPORT_GRACE, decide, is_over};
use crate::boots::Binding;
use crate::fixture::{AGENT, fixture};
use crate::runs::Run;

/// Workflow of the token, with a running action.
const OPEN: Candidate = Candidate {
    is_of_token: true,
    is_open: true,
    is_over: false,
    is_called: false,
    is_first: true,
};
const CALLED: Candidate = Candidate { is_called: true, ..OPEN };
/// Workflow of the token that ended within the grace time.
const ENDED: Candidate = Candidate { is_open: false, is_first: false, ..OPEN };
const ENDED_CALLED: Candidate = Candidate { is_called: true, ..ENDED };
/// Workflow of the token that ended before the grace time.
const OVER: Candidate = Candidate { is_over: true, ..ENDED };
const OVER_CALLED: Candidate = Candidate { is_called: true, ..OVER };
/// Another workflow of the machine.
const NEXT: Candidate = Candidate { is_of_token: false, ..OPEN };
const WAITING: Candidate = Candidate { is_first: false, ..OPEN };

#[test]
fn a_token_is_good_for_its_workflow_and_ends_with_it() {
    let (hello, of) = (Call::Hello("boot"), Call::Workflow("default/w"));
    let yes = Ok(());
    for (candidates, call, answer) in [
        (&[OPEN][..], Call::Next, yes),
        (&[OPEN], hello, yes),
        (&[CALLED], of, yes),
        // The token allows no calls for another workflow.
        (&[OPEN, NEXT], of, Err(Denial::Over)),
        (&[WAITING, NEXT], Call::Next, Err(Denial::Over)),
        (&[NEXT], Call::Next, Err(Denial::Foreign)),
        // The last report may come twice.
        (&[ENDED_CALLED], of, yes),
        (&[ENDED_CALLED, NEXT], of, yes),
        (&[ENDED], Call::Next, Err(Denial::NoWork)),
        (&[ENDED, NEXT], Call::Next, Err(Denial::Over)),
        // The token has expired.
        (&[OVER_CALLED], of, Err(Denial::Over)),
        (&[OVER, NEXT], Call::Next, Err(Denial::Over)),
        (&[OVER, NEXT], hello, Err(Denial::Over)),
        (&[OVER], Call::Next, Err(Denial::NoWork)),
    ] {
        for binding in [Binding::Unbound, Binding::Bound] {
            assert_eq!(decide(candidates, call, binding), answer, "{candidates:?} {call:?}");
        }
        let other = decide(candidates, call, Binding::Other);
        assert!(matches!(other, Err(Denial::OtherBoot | Denial::Foreign)), "{other:?}");
    }
}

#[test]
fn an_agent_that_runs_on_goes_on_with_the_next_workflow_of_its_machine() {
    for call in [Call::Next, Call::Hello("boot"), Call::Workflow("default/next")] {
        assert_eq!(decide(&[OVER, NEXT], call, Binding::Proven), Ok(()));
    }
}

#[test]
fn a_token_is_over_some_minutes_after_its_workflow() {
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24);
    let mut run = Run::of(&Workflow::default());
    assert!(!is_over(&run, now));
    run.state = State::Failed;
    assert!(is_over(&run, now), "it never began");
    let ago = |time: Duration| Some(now - SignedDuration::try_from(time).unwrap());
    run.stopped = ago(REPORT_GRACE);
    assert!(!is_over(&run, now));
    run.stopped = ago(REPORT_GRACE + Duration::from_secs(1));
    assert!(is_over(&run, now));
    // The clock was changed by hours since, but this run of the box saw the end itself.
    run.ended = Some(Instant::now());
    assert!(!is_over(&run, now));
}

#[test]
fn an_unknown_agent_is_believed_by_the_mac_that_the_network_shows() {
    let service = fixture().service;
    // The test's backend accepts calls without a peer address only.
    let (own, other) = (Credentials::default(), "10.77.0.66:1000".parse().ok());
    assert_eq!(service.admit(AGENT, &own), Ok(()));
    let refused = service.admit(AGENT, &Credentials { peer: other, ..own });
    assert!(matches!(refused, Err(Refusal::Unauthenticated(_))), "{refused:?}");
}

#[test]
fn a_token_is_good_from_the_nics_of_its_machine_alone() {
    let fixture = fixture();
    fixture.put(State::Running);
    let own = Credentials { token: Some("token"), ..Credentials::default() };
    assert_eq!(fixture.service.admit(AGENT, &own), Ok(()));
    let peer = "10.77.0.66:1000".parse().ok();
    let refused = fixture.service.admit(AGENT, &Credentials { peer, ..own });
    assert!(matches!(refused, Err(Refusal::Unauthenticated(_))), "{refused:?}");
}
