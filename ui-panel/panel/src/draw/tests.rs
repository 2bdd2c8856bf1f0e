use embedded_graphics::mono_font::iso_8859_1::FONT_6X10;
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{Point, Size};

use super::Sheet;
use super::bar::{cells, of_characters};
use super::text::{fit, fit_name, glyphs, pair, wrap};

#[test]
fn what_has_no_glyph_says_so() {
    assert_eq!(glyphs("caf\u{e9} e\u{301}—“x”…"), "caf\u{e9} e-\"x\"..");
    assert_eq!(glyphs("机器\u{1b}[2J\u{202e}"), "?? [2J?");
}

#[test]
fn lines_fit() {
    assert_eq!(fit("image2disk", 10), "image2disk");
    assert_eq!(fit("image2disk", 9), "image2d..");
    assert_eq!(fit("image", 1), ".");
    assert_eq!(fit("……", 3), "...");
    assert_eq!(fit_name("worker-node-04", 6), "wo~-04");
    assert_eq!(fit_name("nuc-04", 6), "nuc-04");
    assert_eq!(fit_name("nuc", 0), "");
    assert_eq!(pair("box-7f3a", "14:02", 21), "box-7f3a        14:02");
    assert_eq!(pair("a-name-that-is-long", "14:02", 12), "a-na.. 14:02");
    assert_eq!(pair("left", "", 6), "left  ");
    assert_eq!(pair("left", "far too long", 5), "  far..".trim());
}

#[test]
fn words_stay_whole_where_they_can() {
    let text = "machines cannot reach this box. Plug eth1 into the rack switch.";
    let lines = ["machines cannot reach", "this box. Plug eth1", "into the rack switch."];
    assert_eq!(wrap(text, 21, 4), lines);
    assert_eq!(wrap(text, 21, 2), ["machines cannot reach", "this box. Plug eth1.."]);
    assert_eq!(wrap("abcdefghij k", 4, 9), ["abcd", "efgh", "ij k"]);
    assert_eq!(wrap("one abcdefghij", 4, 9), ["one", "abcd", "efgh", "ij"]);
    assert_eq!(wrap("", 4, 9), [""; 0]);
    assert_eq!(wrap("x", 0, 9), [""; 0]);
}

#[test]
fn a_bar_is_full_when_it_is_done_and_not_before() {
    assert_eq!(of_characters(68, 100, 10), "[#####...]");
    assert_eq!(of_characters(0, 100, 10), "[........]");
    assert_eq!(of_characters(1, 1_000, 10), "[#.......]");
    assert_eq!(of_characters(999, 1_000, 10), "[#######.]");
    assert_eq!(of_characters(1_000, 1_000, 10), "[########]");
    assert_eq!(of_characters(1, 0, 4), "[..]");
    assert_eq!(cells(u64::MAX - 1, u64::MAX, 21), 20);
}

#[test]
fn a_sheet_counts_what_it_could_not_hold() {
    let mut sheet = Sheet::new(Size::new(12, 10), BinaryColor::Off);
    sheet.write(Point::zero(), &FONT_6X10, BinaryColor::On, "ab");
    assert_eq!(sheet.spilled(), 0);
    assert_eq!(sheet.transcript(6), "ab\n");
    sheet.write(Point::new(6, 0), &FONT_6X10, BinaryColor::On, "cd");
    assert!(sheet.spilled() > 0);
}

#[test]
fn a_sheet_moves_without_wrapping_round() {
    let mut sheet = Sheet::new(Size::new(3, 2), BinaryColor::Off);
    *sheet.pixel(Point::new(2, 0)).unwrap() = BinaryColor::On;
    *sheet.pixel(Point::new(0, 1)).unwrap() = BinaryColor::On;
    let moved = sheet.shifted(Point::new(1, 0), BinaryColor::Off);
    let on: Vec<bool> = moved.pixels().iter().map(|it| it.is_on()).collect();
    assert_eq!(on, [false, false, false, false, true, false]);
    assert_eq!(sheet.pixel(Point::new(3, 0)), None);
    assert_eq!(sheet.pixel(Point::new(0, -1)), None);
}
