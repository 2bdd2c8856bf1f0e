//! Tests messages as real senders write them.

use proptest::prelude::{any, prop, proptest};

use super::{Line, MAX_TEXT, Severity, parse};

/// Checks a parsed line; `wanted` has severity, facility, time, host, program, process and text.
#[track_caller]
fn reads(datagram: &str, wanted: &str) {
    let Line { severity, facility, time, host, program, process, text } =
        parse(datagram.as_bytes());
    let severity = severity.map_or("-".to_owned(), |severity| severity.to_string());
    let facility = facility.map_or("-".to_owned(), |facility| facility.to_string());
    let got = [severity, facility, time, host, program, process, text].join("|");
    assert_eq!(got, wanted, "{datagram:?}");
}

#[test]
fn the_examples_of_the_rfcs() {
    reads(
        "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
        "crit|4|Oct 11 22:14:15|mymachine|su||'su root' failed for lonvick on /dev/pts/8",
    );
    reads(
        "<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!",
        "notice|1|Feb  5 17:32:18|10.0.0.99|||Use the BFG!",
    );
    reads(
        "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed",
        "crit|4|2003-10-11T22:14:15.003Z|mymachine.example.com|su||'su root' failed",
    );
    reads(
        "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time",
        "notice|20|2003-08-24T05:14:15.000003-07:00|192.0.2.1|myproc|8710|%% It's time",
    );
    reads(
        r#"<165>1 2003-10-11T22:14:15.003Z h evnt - ID47 [a@1 b="3\"]" c="d"][e f="]"] An event"#,
        "notice|20|2003-10-11T22:14:15.003Z|h|evnt||An event",
    );
    reads(r#"<165>1 - - - - - [a@1 b="3"]"#, "notice|20|||||");
}

#[test]
fn what_boots_here() {
    reads(
        "<134>ipxe: Tinbox: asking what to boot\n",
        "info|16|||ipxe||Tinbox: asking what to boot",
    );
    reads("<134>nuc1.rack.example ipxe: ok", "info|16||nuc1.rack.example|ipxe||ok");
    reads("<6>[    1.234567] e1000e: eth0 up", "info|0|||kernel||[    1.234567] e1000e: eth0 up");
    reads("6,416,1758426,-,caller=T1;usb 1-1: new", "info|0|||kernel||usb 1-1: new");
    reads("[   12.345678] usb 1-1: new", "-|0|||kernel||[   12.345678] usb 1-1: new");
    reads(
        "<30>Nov 22 05:00:00 nuc1 docker/tink-worker[812]: started",
        "info|3|Nov 22 05:00:00|nuc1|docker/tink-worker|812|started",
    );
    reads(
        "<30>2026-11-22T05:00:00+00:00 nuc1 sshd[9]: x",
        "info|3|2026-11-22T05:00:00+00:00|nuc1|sshd|9|x",
    );
    reads("<13>root: by logger", "notice|1|||root||by logger");
}

#[test]
fn what_is_neither_is_text() {
    reads("hello", "-|-|||||hello");
    reads("", "-|-|||||");
    reads("\0\r\n", "-|-|||||");
    reads("<192>Oct 11 22:14:15 h p: t", "-|-|||||<192>Oct 11 22:14:15 h p: t");
    reads("<+1>x", "-|-|||||<+1>x");
    reads("<1", "-|-|||||<1");
    reads("<13>see http://box/ now", "notice|1|||||see http://box/ now");
    reads("<13>1 broken", "notice|1|||||1 broken");
    reads("a,b,c,d;x", "-|-|||||a,b,c,d;x");
}

#[test]
fn no_line_can_paint_on_a_screen() {
    let line = parse(b"<13>evil[\x1b[2J]: \x1b[31mred\x07 a\xffb\x00c\n\n");
    assert!(!format!("{line:?}").contains('\x1b'));
    let Line { text, .. } = parse("<13>p: a\u{202e}b\nc".as_bytes());
    assert_eq!(text, "a b c");
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let text = parse(format!("<13>p: {}", "ü".repeat(4000)).as_bytes()).text;
    assert_eq!(text.len(), MAX_TEXT);
    assert_eq!(Severity::of(255), Severity::Debug);
}

proptest! {
    #[test]
    fn anything_is_a_line(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let line = parse(&bytes);
        assert!(line.text.len() <= MAX_TEXT);
        assert!(!line.text.chars().any(char::is_control));
    }

    #[test]
    fn nearly_a_line_is_a_line(text in "(<[0-9]{0,4}>)?(1 )?[a-zA-Z0-9 :\\[\\]\"\\\\;,.-]{0,80}") {
        let line = parse(text.as_bytes());
        // Every part of the line must be part of the message.
        for part in [&line.host, &line.process, &line.text] {
            assert!(text.contains(part.as_str()), "{part:?} of {text:?}");
        }
    }
}
