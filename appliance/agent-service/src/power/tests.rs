use std::time::Duration;

use tokio::time::Instant;

use super::{CONFIRM_LIMIT, FRESH, PowerOffError, PowerRequests};

const NUC: &str = "52:54:00:77:00:01";
const HELD: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn a_waiting_agent_gets_the_request_at_once_and_confirms_it() {
    let requests = PowerRequests::default();
    assert!(!requests.is_able(NUC));
    assert_eq!(requests.power_off(NUC).await, Err(PowerOffError::Unable));
    let start = Instant::now();
    let agent = async {
        let id = requests.next(NUC, "boot-1", HELD).await.unwrap();
        assert!(start.elapsed() < HELD, "the wait ends with the request");
        assert!(!requests.confirm(NUC, "boot-1", "another"), "not this request");
        assert!(!requests.confirm(NUC, "boot-2", &id), "not this boot");
        assert!(requests.confirm(NUC, "boot-1", &id));
        assert!(!requests.confirm(NUC, "boot-1", &id), "a confirmation counts once");
    };
    let owner = async {
        while !requests.is_able(NUC) {
            tokio::task::yield_now().await;
        }
        requests.power_off(NUC).await
    };
    assert_eq!(tokio::join!(agent, owner).1, Ok(()));
    assert_eq!(requests.next(NUC, "boot-1", Duration::ZERO).await, None, "the request has ended");
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_with_its_caller_and_with_the_boot() {
    let requests = PowerRequests::default();
    assert_eq!(requests.next(NUC, "boot-1", Duration::ZERO).await, None);
    // The caller gives up, for example because its Job was deleted.
    let given_up = tokio::time::timeout(Duration::from_secs(1), requests.power_off(NUC)).await;
    assert!(given_up.is_err());
    assert_eq!(requests.next(NUC, "boot-1", Duration::ZERO).await, None);

    let restarted = async {
        let id = requests.next(NUC, "boot-1", HELD).await.unwrap();
        assert_eq!(requests.next(NUC, "boot-2", Duration::ZERO).await, None);
        assert!(!requests.confirm(NUC, "boot-1", &id), "the machine has started again");
    };
    let (outcome, ()) = tokio::join!(requests.power_off(NUC), restarted);
    assert_eq!(outcome, Err(PowerOffError::NotConfirmed));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_gone_cannot_get_a_request_and_does_not_confirm() {
    let requests = PowerRequests::default();
    assert_eq!(requests.next(NUC, "boot-1", HELD).await, None, "no request within the wait");
    assert!(requests.is_able(NUC), "the wait has just ended");
    let start = Instant::now();
    assert_eq!(requests.power_off(NUC).await, Err(PowerOffError::NotConfirmed));
    assert_eq!(start.elapsed(), CONFIRM_LIMIT);
    tokio::time::advance(FRESH).await;
    assert!(!requests.is_able(NUC));
    assert_eq!(requests.power_off(NUC).await, Err(PowerOffError::Unable));
}

#[tokio::test(start_paused = true)]
async fn two_callers_do_not_share_a_request() {
    let requests = PowerRequests::default();
    requests.next(NUC, "boot-1", Duration::ZERO).await;
    let second = async { requests.power_off(NUC).await };
    let (first, second) = tokio::join!(requests.power_off(NUC), second);
    assert_eq!((first, second), (Err(PowerOffError::NotConfirmed), Err(PowerOffError::Busy)));
}
