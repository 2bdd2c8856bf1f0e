//! Numbers with a check digit.

fn digit(byte: u8) -> u32 {
    u32::from(byte.wrapping_sub(b'0'))
}

fn without_spaces_and_dashes(text: &str) -> String {
    let is_kept = |c: &char| !matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '-');
    text.chars().filter(is_kept).collect()
}

pub(crate) fn is_isbn10(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    let bytes = text.as_bytes();
    let Some((last, first)) = bytes.split_last().filter(|_| bytes.len() == 10) else {
        return false;
    };
    if !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let last = if *last == b'X' { 10 } else { digit(*last) };
    let sum: u32 = (1..).zip(first).map(|(weight, byte)| weight * digit(*byte)).sum();
    (sum + 10 * last).is_multiple_of(11)
}

pub(crate) fn is_isbn13(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    let bytes = text.as_bytes();
    let Some((last, first)) = bytes.split_last().filter(|_| bytes.len() == 13) else {
        return false;
    };
    if !bytes.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = first.iter().zip(weights).map(|(byte, weight)| weight * digit(*byte)).sum();
    (sum + digit(*last)).is_multiple_of(10)
}

/// Returns true for a known card issuer and a correct Luhn checksum; ignores other characters.
pub(crate) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.bytes().filter(u8::is_ascii_digit).map(digit).collect();
    let known = matches!(
        (digits.len(), digits.as_slice()),
        (13 | 16, [4, ..])
            | (16, [5, 1..=5, ..] | [6, 0, 1, 1, ..] | [6, 5, ..] | [3, 5, ..])
            | (15, [3, 4 | 7, ..] | [2, 1, 3, 1, ..] | [1, 8, 0, 0, ..])
            | (14, [3, 0, 0..=5, ..] | [3, 6 | 8, ..])
    );
    let luhn = |(index, digit): (usize, &u32)| match (index % 2, digit * 2) {
        (0, _) => *digit,
        (_, doubled @ 10..) => doubled - 9,
        (_, doubled) => doubled,
    };
    let sum: u32 = digits.iter().rev().enumerate().map(luhn).sum();
    known && sum.is_multiple_of(10)
}
