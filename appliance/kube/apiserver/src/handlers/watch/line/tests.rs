use std::time::Duration;

use http_body_util::BodyExt as _;

use super::{Line, PIECE_BYTES, pair};
use crate::budget::{Budget, ByteLimits, HeldBytes};

const STALL: Duration = Duration::from_secs(30);

fn held(bytes: usize) -> (Budget, HeldBytes) {
    let budget = Budget::new(ByteLimits { total: 1 << 20, each: 1 << 20, reserve: 0 });
    let mut held = budget.enter("a").unwrap();
    assert!(held.take(bytes));
    (budget, held)
}

#[tokio::test(start_paused = true)]
async fn a_line_is_made_when_it_is_wanted_and_comes_in_pieces() {
    let (mut writer, mut lines) = pair(STALL);
    assert!(!writer.is_wanted());
    let text = vec![b'x'; PIECE_BYTES + 1];
    let writing = tokio::spawn(async move {
        assert!(writer.wanted().await);
        writer.write(Line::new(vec![b'x'; PIECE_BYTES + 1], None));
        assert!(writer.wanted().await);
    });
    let first = lines.frame().await.unwrap().unwrap().into_data().unwrap();
    let second = lines.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!((first.len(), [first, second].concat()), (PIECE_BYTES, text));
    assert!(lines.frame().await.is_none());
    writing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_large_line_that_is_left_unread_is_let_go_and_cuts_the_watch() {
    let (mut writer, mut lines) = pair(STALL);
    let (budget, held) = held(2 * PIECE_BYTES);
    let writing = tokio::spawn(async move {
        assert!(writer.wanted().await);
        writer.write(Line::new(vec![0; 2 * PIECE_BYTES], Some(held)));
        writer.wanted().await
    });
    assert!(lines.frame().await.unwrap().is_ok());
    assert_eq!(budget.total(), 2 * PIECE_BYTES);
    assert!(!writing.await.unwrap());
    assert_eq!(budget.total(), 0);
    assert!(lines.frame().await.unwrap().is_err());
    assert!(lines.frame().await.is_none());
}

#[tokio::test]
async fn a_reader_that_goes_ends_the_writing() {
    let (mut writer, lines) = pair(STALL);
    drop(lines);
    writer.closed().await;
    assert!(!writer.wanted().await);
}
