//! Live streams of pages.

use std::io::Write as _;
use std::sync::Arc;

use axum::body::Body;
use flate2::write::GzDecoder;
use http_body_util::BodyExt as _;
use stdx::SystemClock;

use super::{Example, Memory, OWNER, ask, header};
use crate::handlers::event_stream::Feeds;
use crate::handlers::tests::rights;
use crate::handlers::{Site, router};
use box_owner::Owner;
use box_owner::users::Role;
use web_pages::Page;

fn site() -> Arc<Site> {
    let owner = Owner::open(Arc::<Memory>::default(), Arc::new(SystemClock)).unwrap();
    Site::new(Arc::new(owner), Arc::new(Example::default()))
}

/// Reads decoded text of a compressed body until it contains `wanted`, or until the end.
async fn text_with(body: &mut Body, decoder: &mut GzDecoder<Vec<u8>>, wanted: &str) -> String {
    loop {
        decoder.flush().unwrap();
        let text = String::from_utf8_lossy(decoder.get_ref()).into_owned();
        if text.contains(wanted) {
            return text;
        }
        let Some(frame) = body.frame().await else { return text };
        decoder.write_all(&frame.unwrap().into_data().unwrap()).unwrap();
    }
}

#[tokio::test]
async fn a_compressed_stream_is_live_and_has_no_token() {
    let site = site();
    let owner = Arc::clone(&site.owner);
    let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
    let cookie = format!("{}={token}", crate::response::COOKIE);
    let headers = [("cookie", cookie.as_str()), ("accept-encoding", "gzip, br")];
    let answer = ask(&router(site), "GET /events?page=/", &headers, "").await;
    assert_eq!(header(&answer, "content-encoding"), "gzip");
    assert_eq!(header(&answer, "vary"), "accept-encoding");
    assert_eq!(header(&answer, "cache-control"), "no-store");
    let (mut body, mut decoder) = (answer.into_body(), GzDecoder::new(Vec::new()));
    // The stream has not ended: each message is readable as soon as it is sent.
    let text = text_with(&mut body, &mut decoder, "name=\\\"csrf\\\"").await;
    assert!(text.starts_with("event: parts\nid: 4711\ndata: {\"health\":"), "{text}");
    assert!(text.contains("nuc-07 needs you"), "{text}");
    assert!(text.contains("name=\\\"csrf\\\" value=\\\"\\\""), "a form without a token: {text}");
    assert!(!text.contains(&owner.session(&token).unwrap().csrf));
    owner.leave(&token);
    let text = text_with(&mut body, &mut decoder, "never").await;
    assert!(text.ends_with("event: out\ndata: logged out\n\n"), "{text}");
    decoder.finish().unwrap();
}

#[tokio::test]
async fn all_streams_of_a_page_share_its_parts() {
    let site = site();
    let feeds = Feeds::default();
    let machines = feeds.of(&Page::Machines, rights(Role::Admin));
    assert!(Arc::ptr_eq(&machines, &feeds.of(&Page::Machines, rights(Role::Admin))));
    assert!(!Arc::ptr_eq(&machines, &feeds.of(&Page::Now, rights(Role::Admin))));
    let viewers = feeds.of(&Page::Machines, rights(Role::Viewer));
    assert!(!Arc::ptr_eq(&machines, &viewers), "another role sees other buttons");
    let (one, other) = tokio::join!(machines.parts(&site), machines.parts(&site));
    assert!(Arc::ptr_eq(&one, &other), "one rendering for both");
    let gone = Arc::downgrade(&machines);
    drop(machines);
    assert!(gone.upgrade().is_none(), "a page without streams costs nothing");
}

#[tokio::test]
async fn a_part_without_a_change_is_encoded_once() {
    let site = site();
    let feed = Feeds::default().of(&Page::Machines, rights(Role::Admin));
    let first = feed.parts(&site).await;
    feed.expire().await;
    let second = feed.parts(&site).await;
    assert!(!Arc::ptr_eq(&first, &second), "the page was rendered again");
    for (one, other) in first.iter().zip(second.iter()) {
        assert!(Arc::ptr_eq(&one.frame, &other.frame), "{}", one.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_follows_the_role_of_its_user_and_ends_with_the_user() {
    let site = site();
    let owner = Arc::clone(&site.owner);
    owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap();
    owner.add_user("joe", Role::Viewer, "long enough").unwrap();
    let token = owner.enter("joe", "long enough", OWNER).unwrap().token;
    let cookie = format!("{}={token}", crate::response::COOKIE);
    let headers = [("cookie", cookie.as_str()), ("accept-encoding", "gzip")];
    let answer = ask(&router(site), "GET /events?page=/machines/nuc-07", &headers, "").await;
    let (mut body, mut decoder) = (answer.into_body(), GzDecoder::new(Vec::new()));
    let text = text_with(&mut body, &mut decoder, "{\"history\":").await;
    assert!(!text.contains("/machines/nuc-07/retry"), "{text}");
    owner.set_role("joe", Role::Operator).unwrap();
    let text = text_with(&mut body, &mut decoder, "/machines/nuc-07/retry").await;
    assert!(text.contains("/machines/nuc-07/retry"), "{text}");
    owner.remove_user("joe").unwrap();
    let text = text_with(&mut body, &mut decoder, "event: out").await;
    assert!(text.ends_with("event: out\ndata: logged out\n\n"), "{text}");
}
