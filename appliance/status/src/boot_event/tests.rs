use super::{Moment, Stage, TEXT_CHARS_MAX, Via, ended_action, plain};

fn all() -> Vec<Moment> {
    let text = |text: &str| text.to_owned();
    vec![
        Moment::NetworkBootArmed,
        Moment::PoweredOff,
        Moment::PoweredOn,
        Moment::AskedForAddress { stage: Stage::UefiFirmware },
        Moment::GotAddress { ip: [10, 77, 0, 11].into(), stage: Stage::UefiFirmware },
        Moment::FetchedLoader {
            file: text("snponly.efi"),
            via: Via::Tftp,
            bytes: 256 << 10,
            millis: 300,
        },
        Moment::FetchedScript,
        Moment::FetchedKernel { bytes: 9 << 20, millis: 1200 },
        Moment::FetchedInitrd { bytes: 3 << 20, millis: 400 },
        Moment::AgentHello { version: text("0.1.0") },
        Moment::ActionStarted { name: text("stream-image") },
        Moment::FetchedFile {
            file: text("debian.raw.zst"),
            via: Via::Http,
            bytes: 300 << 20,
            millis: 6000,
        },
        Moment::ActionEnded {
            name: text("stream-image"),
            ok: true,
            message: text(""),
            millis: 6200,
        },
        Moment::ActionEnded {
            name: text("stream-image"),
            ok: false,
            message: text("sha256 of the image is 00, expected ff"),
            millis: 6200,
        },
        Moment::SentToDisk,
        Moment::AskedMetadata { path: text("/latest/meta-data/") },
        Moment::PhonedHome { hostname: text("nuc1") },
        Moment::UnknownMachine { mac: "52:54:00:77:00:09".parse().unwrap() },
        Moment::Refused { what: text("work"), why: text("its token is not of this boot") },
        Moment::FetchFailed { file: text("x.efi"), via: Via::Tftp, why: text("no such file") },
    ]
}

#[test]
fn the_whole_vocabulary() {
    let told: Vec<String> = all()
        .iter()
        .map(|it| {
            let mark = if it.warning() { "!" } else { " " };
            format!("{mark} {}: {}", it.reason(), it.sentence())
        })
        .collect();
    assert_eq!(told.join("\n"), include_str!("vocabulary.txt").trim_end());
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
        let ended = matches!(moment, Moment::ActionEnded { .. }).then_some("stream-image");
        assert_eq!(ended_action(&moment.sentence()), ended);
    }
}

#[test]
fn a_machine_cannot_write_on_a_terminal() {
    assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{202e}"), "a [2Jb  c ");
    let long = plain(&"é".repeat(TEXT_CHARS_MAX + 1));
    assert_eq!(long.chars().count(), TEXT_CHARS_MAX + 1);
    let moment = Moment::PhonedHome { hostname: "x\n\u{7}".into() };
    assert!(!moment.sentence().chars().any(char::is_control));
}
