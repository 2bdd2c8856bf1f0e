use super::*;

fn tree(text: &str) -> Tree {
    let other = "const PATIENCE: Duration = Duration::from_secs(3600);";
    Tree::of(vec![
        ("tests/a/tests/b.rs".to_owned(), text.to_owned()),
        ("tests/a/src/c.rs".to_owned(), other.to_owned()),
    ])
}

const ENTRY: [Exception; 1] = [("tests/a/tests/b.rs", "a", "why")];

#[test]
fn a_short_wait_is_found() {
    for text in [
        "fn a() { timeout(Duration::from_secs(5), b).await.unwrap() }",
        "fn a() { tokio::time::timeout(SHORT, b).await.unwrap() }\n\
         const SHORT: Duration = Duration::from_millis(500);",
        "fn a() { b.recv_timeout(Duration::from_secs(20)).unwrap() }",
        "fn a() { loop { match b.recv_timeout(Duration::from_secs(5)) { _ => c() } } }",
        "fn a() { match b.recv_timeout(Duration::from_millis(20)) { _ => c() } }",
        "fn a() { b.set_read_timeout(Some(Duration::from_secs(5))) }",
        "fn a() { let end = Instant::now() + Duration::from_secs(10); }",
        "fn a() { poll(\"b\", Duration::from_secs(10), || c()) }",
        "fn a() { b.wait_for(\"c\", std::time::Duration::from_secs(59)).unwrap() }",
        "fn a() { while b() { assert!(c.elapsed().as_secs() < 20); sleep(D); } }",
        "fn a() { loop { if c.elapsed() > Duration::from_secs(3) { break } sleep(D); } }",
        "fn a() { for _ in 0..500 { sleep(Duration::from_millis(10)); } }",
        "fn a() { if timeout(Duration::from_secs(1), b).await.is_err() { panic!() } }",
        "fn a() { run([\"wait\", \"--timeout=25s\"]) }",
        "fn a() { let wait = Wait::limited(\"b\", Duration::from_secs(25)); }",
        "const b: u8 = 1;\nconst START_LIMIT: Duration = Duration::from_secs(59);",
    ] {
        let name = if text.contains("SHORT:") {
            "SHORT"
        } else if text.contains("START") {
            "START_LIMIT"
        } else {
            "a"
        };
        assert_eq!(patience_except(&tree(text), &[]).len(), 1, "{text}");
        let entry = [("tests/a/tests/b.rs", name, "why")];
        assert_eq!(patience_except(&tree(text), &entry), [], "{text}");
    }
}

#[test]
fn a_long_wait_and_a_step_are_free() {
    for text in [
        "fn a() { timeout(Duration::from_secs(60), b).await.unwrap() }",
        "fn a() { timeout(stdx::testing::PATIENCE, b).await.unwrap() }",
        "use stdx::testing::{PATIENCE, Wait};\n\
         fn a() { timeout(PATIENCE, b).await.unwrap() }",
        "fn a() { timeout(Duration::from_secs(1), b).await.unwrap_err() }",
        "fn a() { assert!(b.wait_for(\"c\", Duration::from_millis(1)).is_err()) }",
        "fn a() { b.set_read_timeout(Some(Duration::from_millis(100))) }",
        "fn a() { let b = timeout(Duration::from_secs(1), c).await; assert!(b.is_err()); }",
        "fn a() { run([\"wait\", \"--timeout=60s\"]) }",
        "fn a() { loop { match b.recv_timeout(Duration::from_millis(20)) { _ => c() } } }",
        "fn timeout(a: u8) {}",
        "fn a() { for _ in 0..6000 { sleep(Duration::from_millis(10)); } }",
        "const EVERY: Duration = Duration::from_secs(5);",
        "#[tokio::test(start_paused = true)]\n\
         async fn a() { timeout(Duration::from_secs(5), b).await.unwrap() }",
    ] {
        assert_eq!(patience_except(&tree(text), &[]), [], "{text}");
    }
    assert_eq!(patience_except(&tree("fn a() {}"), &ENTRY).len(), 1);
}
