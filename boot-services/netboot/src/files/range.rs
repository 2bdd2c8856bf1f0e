//! Parses the `Range` header (RFC 9110 section 14.2).

/// Requested part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole file. Also for a header that is malformed, in another unit, or has several ranges:
    /// a server may ignore such headers.
    Whole,
    /// First and last byte, both included.
    Bytes(u64, u64),
    /// The range lies beyond the end of the file: status 416.
    Unsatisfiable,
}

/// Parses the `Range` header of a request for a file of `size` bytes.
pub fn part(header: Option<&str>, size: u64) -> Part {
    let spec = header.and_then(|value| value.trim().strip_prefix("bytes="));
    let Some((first, last)) = spec.and_then(|spec| spec.split_once('-')) else {
        return Part::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    match (first.is_empty(), number(first), last.is_empty(), number(last)) {
        (true, _, false, Some(0)) => Part::Unsatisfiable,
        (true, _, false, Some(_)) if size == 0 => Part::Unsatisfiable,
        (true, _, false, Some(suffix)) => Part::Bytes(size - suffix.min(size), size - 1),
        (false, Some(first), true, _) if first < size => Part::Bytes(first, size - 1),
        (false, Some(first), false, Some(last)) if first <= last && first < size => {
            Part::Bytes(first, last.min(size - 1))
        }
        (false, Some(first), false, Some(last)) if first > last => Part::Whole,
        (false, Some(_), true, _) | (false, Some(_), false, Some(_)) => Part::Unsatisfiable,
        _ => Part::Whole,
    }
}

/// Parses decimal digits. A number that does not fit counts as the largest number, which lies
/// beyond the end of every file.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Part, part};
    use proptest::prelude::{any, proptest};

    #[test]
    fn reads_each_form() {
        for (header, size, wanted) in [
            ("bytes=0-0", 10, Part::Bytes(0, 0)),
            ("bytes=2-5", 10, Part::Bytes(2, 5)),
            ("bytes=2-99", 10, Part::Bytes(2, 9)),
            ("bytes=9-", 10, Part::Bytes(9, 9)),
            ("bytes=-3", 10, Part::Bytes(7, 9)),
            ("bytes=-99", 10, Part::Bytes(0, 9)),
            ("bytes=0-99999999999999999999999", 10, Part::Bytes(0, 9)),
            ("bytes=10-", 10, Part::Unsatisfiable),
            ("bytes=10-12", 10, Part::Unsatisfiable),
            ("bytes=-0", 10, Part::Unsatisfiable),
            ("bytes=-1", 0, Part::Unsatisfiable),
            ("bytes=0-", 0, Part::Unsatisfiable),
            ("bytes=5-2", 10, Part::Whole),
            ("bytes=0-1,3-4", 10, Part::Whole),
            ("bytes=-", 10, Part::Whole),
            ("bytes=+1-2", 10, Part::Whole),
            ("lines=0-1", 10, Part::Whole),
            ("", 10, Part::Whole),
        ] {
            assert_eq!(part(Some(header), size), wanted, "{header} of {size}");
        }
        assert_eq!(part(None, 10), Part::Whole);
    }

    proptest! {
        #[test]
        fn a_part_always_lies_within(header in "(bytes=)?[0-9, -]{0,30}", size in any::<u64>()) {
            if let Part::Bytes(first, last) = part(Some(&header), size) {
                assert!(first <= last && last < size);
            }
        }
    }
}
