use std::sync::Arc;

use api::core::CONFIG_MAP;
use jiff::{SignedDuration, Timestamp};
use objects::ObjectError;
use objects::fake::Memory;
use serde_json::json;
use stdx::MacAddr;

use super::{Dismissals, MACHINES_MAX, NOTICES_MAX, entry_of};

fn mac(last: u16) -> MacAddr {
    let [high, low] = last.to_be_bytes();
    MacAddr([0x54, 0xb2, 0x03, 0xa1, high, low])
}

#[tokio::test]
async fn a_machine_is_ignored_until_it_is_shown_again() {
    let objects = Arc::new(Memory::default());
    let dismissals = Dismissals::new(objects.clone());
    assert!(dismissals.read().await.unwrap().machines.is_empty(), "without the ConfigMap");
    dismissals.ignore(&[mac(1), mac(2)]).await.unwrap();
    dismissals.ignore(&[mac(1)]).await.unwrap();
    let read = dismissals.read().await.unwrap().machines;
    assert_eq!(read.into_iter().collect::<Vec<_>>(), [mac(1), mac(2)]);
    let stored = objects.peek(CONFIG_MAP, "dismissed").unwrap();
    assert_eq!(stored["data"]["machine.54-b2-03-a1-00-01"], "ignored");
    dismissals.show_again(mac(1)).await.unwrap();
    dismissals.show_again(mac(1)).await.unwrap();
    assert!(!dismissals.read().await.unwrap().machines.contains(&mac(1)));
}

#[tokio::test]
async fn machines_above_the_limit_are_refused_and_change_nothing() {
    let dismissals = Dismissals::new(Arc::new(Memory::default()));
    let most = u16::try_from(MACHINES_MAX).unwrap();
    let all: Vec<MacAddr> = (0..most).map(mac).collect();
    dismissals.ignore(&all).await.unwrap();
    let refused = dismissals.ignore(&[mac(most)]).await.unwrap_err();
    assert!(refused.to_string().contains("the limit is 500"), "{refused}");
    assert_eq!(dismissals.read().await.unwrap().machines.len(), MACHINES_MAX);
}

#[tokio::test]
async fn the_newest_dismissed_notices_are_kept() {
    let dismissals = Dismissals::new(Arc::new(Memory::default()));
    let begin: Timestamp = "2026-11-29T14:00:00Z".parse().unwrap();
    for minute in 0..=NOTICES_MAX {
        let at = begin + SignedDuration::from_mins(i64::try_from(minute).unwrap());
        dismissals.dismiss(&format!("fault/Code{minute}/TITLE OF IT"), at).await.unwrap();
    }
    let notices = dismissals.read().await.unwrap().notices;
    assert_eq!(notices.len(), NOTICES_MAX);
    assert!(!notices.contains_key(&entry_of("fault/Code0/TITLE OF IT")), "the oldest is gone");
    assert_eq!(notices["fault_Code1_TITLE_OF_IT"], begin + SignedDuration::from_mins(1));
}

#[tokio::test]
async fn entries_of_a_person_stay_and_entries_that_are_not_valid_are_left_out() {
    let objects = Arc::new(Memory::default());
    objects.put(
        CONFIG_MAP,
        json!({
            "metadata": { "name": "dismissed", "namespace": "default" },
            "data": { "remark": "mine", "machine.x": "ignored", "notice.backup": "yesterday" },
        }),
    );
    let dismissals = Dismissals::new(objects.clone());
    dismissals.ignore(&[mac(1)]).await.unwrap();
    let read = dismissals.read().await.unwrap();
    assert_eq!((read.machines.len(), read.notices.len()), (1, 0));
    assert_eq!(objects.peek(CONFIG_MAP, "dismissed").unwrap()["data"]["remark"], "mine");
}

#[tokio::test]
async fn changes_of_two_people_at_once_are_both_kept() {
    let dismissals = Dismissals::new(Arc::new(Memory::default()));
    let (one, other) = ([mac(1)], [mac(2)]);
    let both = tokio::join!(dismissals.ignore(&one), dismissals.ignore(&other));
    assert_eq!(both, (Ok::<(), ObjectError>(()), Ok(())));
    assert_eq!(dismissals.read().await.unwrap().machines.len(), 2);
}
