use std::process::Command;

use panel::backends::png::encode;
use panel::model::{Kind, Page};
use panel::screens;
use status::view::{StatusView, example};

use crate::stage;

/// Returns the text of the only QR code in a picture, read by zbar.
fn scan(name: &str, file: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("panel.png");
    std::fs::write(&path, file).unwrap();
    let output = Command::new("zbarimg")
        .args(["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"])
        .arg(&path)
        .output()
        .expect("zbarimg is installed by make setup");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn reachable_at(url: &str) -> StatusView {
    let mut view = example::unclaimed();
    view.claim.as_mut().unwrap().urls = vec![url.into()];
    view
}

#[test]
fn a_phone_reads_the_claim_on_every_screen() {
    let urls = [
        ("https://10.20.30.40", "HTTPS://10.20.30.40/S/7KQ4M2"),
        ("https://255.255.255.255", "HTTPS://255.255.255.255/S/7KQ4M2"),
        ("https://box-7f3a.local", "HTTPS://BOX-7F3A.LOCAL/S/7KQ4M2"),
    ];
    for (url, claim) in urls {
        let view = reachable_at(url);
        for kind in [Kind::Oled, Kind::Tft] {
            for (dot, shift) in [(0, (0, 0)), (63, (1, 1)), (319, (0, 1))] {
                let mut shown = stage::shown(kind, Page::Claim);
                (shown.dot, shown.shift) = (dot, shift);
                let file = encode(&screens::draw(&view, &shown)).unwrap();
                assert_eq!(scan(&format!("{kind:?}"), &file), claim, "{kind:?} {shift:?}");
            }
        }
        let console = panel::console::Console::default();
        for (size, _) in stage::monitors() {
            let file = encode(&stage::monitor(&view, &console, size)).unwrap();
            assert_eq!(scan("console", &file), claim, "{size}");
        }
    }
}
