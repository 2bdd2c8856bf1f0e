//! Tests of error messages.

use crate::place::{NUC1, Place};

async fn failure(place: &Place, line: &[&str]) -> (i32, String) {
    let ended = place.run(line).await;
    assert_eq!(ended.out, "", "{ended:?}");
    (ended.code, ended.err)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_box_refuses_is_explained() {
    let place = Place::start().await;
    place.file("hardware.yaml", &NUC1.replace("52:54:00:77:00:01", "52:54:00:77:00:AB"));
    let ended = place.run(&["hardware", "push", "-f", "hardware.yaml"]).await;
    assert_eq!(ended.code, 8, "two of three objects were written");
    let error = "error: 2 of 3 objects were written, then: cannot create hardware: \
                 Hardware.tinkerbell.org \"nuc1\" is invalid: spec.interfaces[0].dhcp.mac";
    assert!(ended.err.starts_with(error), "{ended:?}");
    assert!(
        ended.err.ends_with("hint: correct the fields named above and run the command again\n")
    );
    assert!(!ended.err.contains("hunter2"));

    place.file("t.yaml", "name: a\ntasks: []\n");
    place.run(&["template", "create", "-f", "t.yaml"]).await.good();
    let (code, err) = failure(&place, &["template", "create", "-f", "t.yaml"]).await;
    assert_eq!(code, 4);
    assert!(err.contains("\"a\" already exists\nhint: `tinbox template update a"), "{err}");

    let (code, err) = failure(&place, &["hardware", "get", "nuc9"]).await;
    assert_eq!(code, 3);
    let want = "error: found no hardware \"nuc9\" in namespace default\n\
                hint: `tinbox hardware list` shows all names\n";
    assert_eq!(err, want);

    let (code, err) = failure(&place, &["hardware", "get", "../../../version"]).await;
    assert_eq!(code, 3, "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_that_cannot_be_reached_is_told_apart() {
    let place = Place::start().await;
    let text = std::fs::read_to_string(&place.kubeconfig).unwrap();
    let with = |name: &str, text: String| place.file(name, &text).display().to_string();

    let (from, to) = ("token: ", "token: 0");
    let path = with("token", text.replace(from, to));
    let (code, err) = failure(&place, &["hardware", "list", "--kubeconfig", &path]).await;
    assert_eq!(code, 6);
    assert!(err.contains("rejected the kubeconfig's token"), "{err}");

    let other = Place::start().await;
    let server =
        |text: &str| text.lines().find(|line| line.contains("server:")).unwrap().trim().to_owned();
    let elsewhere = std::fs::read_to_string(&other.kubeconfig).unwrap();
    let path = with("ca", text.replace(&server(&text), &server(&elsewhere)));
    let (code, err) = failure(&place, &["hardware", "list", "--kubeconfig", &path]).await;
    assert_eq!(code, 5);
    assert!(err.contains("hint: another box answers at this address"), "{err}");

    let path = with("name", text.replace("https://127.0.0.1", "https://localhost"));
    let (code, err) = failure(&place, &["hardware", "list", "--kubeconfig", &path]).await;
    assert_eq!(code, 5);
    assert!(err.contains("certificate is for another name or address"), "{err}");

    let (code, err) = failure(&place, &["hardware", "list", "--kubeconfig", "/nowhere"]).await;
    assert_eq!((code, err.starts_with("error: cannot read /nowhere: ")), (2, true), "{err}");

    let kubeconfig = other.stop().await;
    let path = kubeconfig.kubeconfig.display().to_string();
    let (code, err) = failure(&place, &["hardware", "list", "--kubeconfig", &path]).await;
    assert_eq!(code, 5);
    assert!(err.contains("connection refused\nhint: start tinboxd there"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_shown_with_examples() {
    let place = Place::start().await;
    let help = place.run(&["--help"]).await.good();
    assert!(help.contains("Exit codes: 0 the operation succeeded; 1 "), "{help}");
    assert!(help.contains("Example:"), "{help}");
    let commands = [
        vec!["hardware", "push"],
        vec!["hardware", "list"],
        vec!["hardware", "get"],
        vec!["hardware", "delete"],
        vec!["template", "create"],
        vec!["template", "update"],
        vec!["template", "lint"],
        vec!["template", "render"],
        vec!["template", "list"],
        vec!["template", "get"],
        vec!["template", "delete"],
        vec!["workflow", "create"],
        vec!["workflow", "list"],
        vec!["workflow", "get"],
        vec!["workflow", "events"],
        vec!["workflow", "retry"],
        vec!["workflow", "cancel"],
        vec!["workflow", "pause"],
        vec!["workflow", "resume"],
        vec!["workflow", "delete"],
        vec!["status"],
        vec!["machine", "list"],
        vec!["machine", "install"],
        vec!["machine", "enroll"],
        vec!["machine", "retry"],
        vec!["machine", "start-over"],
        vec!["machine", "erase"],
        vec!["machine", "cancel"],
        vec!["machine", "pause"],
        vec!["machine", "resume"],
        vec!["machine", "dismiss"],
        vec!["completion"],
        vec!["man"],
        vec!["machine", "power"],
        vec!["machine", "history"],
        vec!["network", "clients"],
        vec!["network", "resume"],
        vec!["update", "hold"],
        vec!["update", "unhold"],
        vec!["update", "restart"],
        vec!["box", "settings", "get"],
        vec!["box", "settings", "set"],
        vec!["box", "settings", "edit"],
        vec!["box", "settings", "history"],
        vec!["box", "settings", "diff"],
        vec!["box", "settings", "revert"],
        vec!["machine", "adopt"],
    ];
    for mut command in commands {
        let example = format!("tinbox {}", command.join(" "));
        command.push("--help");
        let help = place.run(&command).await.good();
        assert!(help.contains("Example:") && help.contains(&example), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
    assert_eq!(place.run(&["hardware", "push"]).await.code, 2);
    let (code, err) = failure(&place, &["workflow", "create", "-t", "a", "-r", "{"]).await;
    assert!(code == 2 && err.starts_with("error: --hardware is not JSON"), "{err}");
}
