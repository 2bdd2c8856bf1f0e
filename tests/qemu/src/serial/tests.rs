//! Parsing of console output as firmware and kernels send it.

use super::*;

fn screen(bytes: &[u8]) -> Screen {
    let mut screen = Screen::default();
    for byte in bytes {
        screen.receive(&[*byte], SystemTime::now());
    }
    screen
}

fn texts(screen: &Screen) -> Vec<&str> {
    screen.lines.iter().map(|line| line.text.as_str()).collect()
}

#[test]
fn escapes_vanish_and_cursor_movement_ends_a_line() {
    let screen = screen(b"\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS\r\n\r\nEFI\x1b[02;01HBds 5%\rBds");
    assert_eq!(texts(&screen), ["SeaBIOS", "EFI", "Bds 5%"]);
    assert_eq!(screen.partial, "Bds");
}

#[test]
fn a_prompt_without_line_end_is_found_and_a_mark_hides_the_past() {
    let screen = screen(b"one\ntwo\nlogin: ");
    let regex = Regex::new("one|login:").expect("valid pattern");
    let mut next = Mark(0);
    let (line, after) = screen.find(&mut next, &regex).expect("the first line");
    assert_eq!((line.text.as_str(), after), ("one", Mark(1)));
    let (line, after) = screen.find(&mut Mark(1), &regex).expect("the prompt");
    assert_eq!((line.text.as_str(), after), ("login: ", Mark(3)));
    assert!(screen.find(&mut Mark(3), &regex).is_none(), "the prompt was seen");
    assert!(screen.find_finished(&mut Mark(1), &regex).is_none(), "more of it may come");
    assert!(screen.find(&mut Mark(0), &Regex::new("three").expect("valid")).is_none());
}

#[test]
fn endless_output_is_cut_into_lines_and_forgotten_from_the_front() {
    let mut screen = Screen::default();
    screen.receive(&vec![b'x'; MAX_LINE * 2], SystemTime::now());
    assert_eq!(screen.lines.len(), 2);
    for _ in 0..MAX_LINES {
        screen.receive(b"y\n", SystemTime::now());
    }
    assert_eq!((screen.lines.len(), screen.first), (MAX_LINES, 2));
}

#[test]
fn a_deadline_shows_the_end_of_the_console() {
    let file = tempfile();
    let serial = Serial::new(7, file);
    serial.receive(b"kernel panic\n");
    let error = serial.wait_for("login:", Duration::from_millis(1)).expect_err("never comes");
    let text = error.to_string();
    assert!(text.contains("console of NUC 7") && text.contains("| kernel panic"), "{text}");
}

fn tempfile() -> File {
    File::options().write(true).open("/dev/null").expect("open /dev/null")
}
