//! Tests of `box restart`, `poweroff` and `reset`: prompts and requests.

use serde_json::json;

use crate::place::Place;

#[tokio::test]
async fn what_is_erased_is_said_and_a_script_says_that_it_means_it() {
    let place = Place::start().await;
    let reset = ["box", "reset", "--level", "factory"];
    let unasked = place.run(&reset).await;
    assert_eq!(unasked.code, 2, "{unasked:?}");
    let erases = "factory reset of box-7f3a: erases 12 machines, 3 keys, 1 image and all settings;";
    assert!(unasked.err.contains(erases), "{unasked:?}");
    assert!(unasked.err.contains("no terminal for a prompt: give --yes"), "{unasked:?}");
    assert_eq!(*place.left.lock().unwrap(), [json!(null); 0]);

    let done = place.run(&[&reset[..], &["--yes"]].concat()).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.err.matches("warning: this box is in safe mode").count(), 1, "{done:?}");
    assert_eq!(done.out, "box-7f3a restarts and erases everything of its owner\n");
    for (line, word) in [
        (&["box", "restart"][..], "restart"),
        (&["box", "poweroff", "--yes"], "powerOff"),
        (&["box", "reset", "--level", "safe", "--yes"], "safe"),
    ] {
        assert_eq!(place.run(line).await.code, 0, "{word}");
    }
    let wish = |level: &str| json!({ "level": level, "name": "box-7f3a" });
    let wanted = ["factory", "restart", "powerOff", "safe"].map(wish);
    assert_eq!(*place.left.lock().unwrap(), wanted);
    for line in [&["box", "reset"][..], &["box", "poweroff"], &["box", "reset", "--level", "all"]] {
        assert_eq!(place.run(line).await.code, 2, "{line:?}");
    }
}
