use super::{BootEvent, Stage, Via, ended_action};
use crate::{TEXT_CHARS_MAX, plain};

fn all() -> Vec<BootEvent> {
    let text = |text: &str| text.to_owned();
    vec![
        BootEvent::NetworkBootArmed,
        BootEvent::PoweredOff,
        BootEvent::PoweredOn,
        BootEvent::AskedForAddress { stage: Stage::UefiFirmware },
        BootEvent::GotAddress { ip: [10, 77, 0, 11].into(), stage: Stage::UefiFirmware },
        BootEvent::FetchedLoader {
            file: text("snponly.efi"),
            via: Via::Tftp,
            bytes: 256 << 10,
            millis: 300,
        },
        BootEvent::FetchedScript,
        BootEvent::FetchedKernel { bytes: 9 << 20, millis: 1200 },
        BootEvent::FetchedInitrd { bytes: 3 << 20, millis: 400 },
        BootEvent::AgentHello { version: text("0.1.0") },
        BootEvent::ActionStarted { name: text("stream-image") },
        BootEvent::FetchedFile {
            file: text("debian.raw.zst"),
            via: Via::Http,
            bytes: 300 << 20,
            millis: 6000,
        },
        BootEvent::ActionEnded {
            name: text("stream-image"),
            ok: true,
            message: text(""),
            millis: 6200,
        },
        BootEvent::ActionEnded {
            name: text("stream-image"),
            ok: false,
            message: text("sha256 of the image is 00, expected ff"),
            millis: 6200,
        },
        BootEvent::SentToDisk,
        BootEvent::AskedMetadata { path: text("/latest/meta-data/") },
        BootEvent::PhonedHome { hostname: text("nuc1") },
        BootEvent::UnknownMachine { mac: "52:54:00:77:00:09".parse().unwrap() },
        BootEvent::Refused { what: text("work"), why: text("its token is not of this boot") },
        BootEvent::FetchFailed { file: text("x.efi"), via: Via::Tftp, why: text("no such file") },
    ]
}

#[test]
fn the_whole_vocabulary() {
    let sentences: Vec<String> = all()
        .iter()
        .map(|it| {
            let mark = if it.warning() { "!" } else { " " };
            format!("{mark} {}: {}", it.reason(), it.sentence())
        })
        .collect();
    assert_eq!(sentences.join("\n"), include_str!("vocabulary.txt").trim_end());
}

#[test]
fn reasons_are_upper_camel_case() {
    for moment in all() {
        let reason = moment.reason();
        assert!(reason.starts_with(|it: char| it.is_ascii_uppercase()), "{reason}");
        assert!(reason.chars().all(|it| it.is_ascii_alphanumeric()), "{reason}");
    }
}

#[test]
fn an_ended_action_can_be_read_back() {
    for moment in all() {
        let ended = matches!(moment, BootEvent::ActionEnded { .. }).then_some("stream-image");
        assert_eq!(ended_action(&moment.sentence()), ended);
    }
}

#[test]
fn a_machine_cannot_write_on_a_terminal() {
    assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{202e}"), "a [2Jb  c ");
    let long = plain(&"é".repeat(TEXT_CHARS_MAX + 1));
    assert_eq!(long.chars().count(), TEXT_CHARS_MAX + 1);
    let moment = BootEvent::PhonedHome { hostname: "x\n\u{7}".into() };
    assert!(!moment.sentence().chars().any(char::is_control));
}
