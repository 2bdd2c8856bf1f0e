//! Holes: ranges of zeros in an image. A box reports them (`netboot::http::holes`), and the agent
//! creates the zeros locally. From other servers, all bytes are downloaded.

use std::collections::VecDeque;
use std::ops::Range;

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Name of the header field, in request and response.
pub(in crate::stream) const FIELD: HeaderName = HeaderName::from_static("tinbox-holes");
/// Value of the field in a request (structured-field boolean true).
pub(in crate::stream) const ASK: HeaderValue = HeaderValue::from_static("?1");
/// Maximum number of holes in a response; a field with more is ignored.
const MOST: usize = 1000;

/// Holes that the download has not reached yet, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::stream) struct Holes(VecDeque<Range<u64>>);

impl Holes {
    /// Parses the holes in a response for an image of `total` bytes. Returns no holes if the field
    /// is missing or invalid.
    pub(in crate::stream) fn of(headers: &HeaderMap, total: Option<u64>) -> Self {
        let field = headers.get(FIELD).and_then(|value| value.to_str().ok());
        field.zip(total).and_then(|(field, total)| Self::read(field, total)).unwrap_or_default()
    }

    fn read(field: &str, total: u64) -> Option<Self> {
        let mut holes = VecDeque::new();
        let mut free = 0;
        for hole in field.split(',') {
            let (first, last) = hole.trim().split_once('-')?;
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            // Two adjacent holes would be a single hole, so the field is not valid.
            let touches = first == free && !holes.is_empty();
            if first < free || touches || last < first || last >= total || holes.len() == MOST {
                return None;
            }
            free = last + 1;
            holes.push_back(first..free);
        }
        Some(Self(holes))
    }

    /// Returns the offset of the next hole; `None` if there is none.
    pub(in crate::stream) fn next(&self) -> Option<u64> {
        self.0.front().map(|hole| hole.start)
    }

    /// Returns the number of bytes from `offset` to the next hole, at most `most`.
    pub(in crate::stream) fn before(&self, offset: u64, most: usize) -> usize {
        let left = self.next().map(|start| start.saturating_sub(offset));
        left.and_then(|left| usize::try_from(left).ok()).map_or(most, |left| left.min(most))
    }

    /// Removes the hole that begins at `offset`. Returns its end; `None` if there is no such hole.
    pub(in crate::stream) fn reach(&mut self, offset: u64) -> Option<u64> {
        self.0.pop_front_if(|hole| hole.start == offset).map(|hole| hole.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{FIELD, HeaderMap, HeaderValue, Holes};

    fn holes_of(text: &str, total: Option<u64>) -> Holes {
        let mut headers = HeaderMap::new();
        headers.insert(FIELD, HeaderValue::from_str(text).unwrap());
        Holes::of(&headers, total)
    }

    #[test]
    fn holes_are_reached_in_turn() {
        let mut holes = holes_of("0-9, 20-20", Some(21));
        assert_eq!((holes.next(), holes.before(0, 7), holes.reach(1)), (Some(0), 0, None));
        assert_eq!(holes.reach(0), Some(10));
        assert_eq!((holes.before(10, 7), holes.before(10, 70)), (7, 10));
        assert_eq!(holes.reach(20), Some(21));
        assert_eq!((holes.next(), holes.before(21, 7)), (None, 7));
    }

    #[test]
    fn what_makes_no_sense_is_no_hole() {
        for text in [
            "",
            "1",
            "a-b",
            "5-4",
            "0-9, 9-10",
            "0-9, 10-11",
            "0-21",
            "-1-2",
            "0-1,",
            "0-99999999999999999999",
        ] {
            assert_eq!(holes_of(text, Some(21)), Holes::default(), "{text}");
        }
        assert_eq!(holes_of("0-9", None), Holes::default());
        assert_eq!(Holes::of(&HeaderMap::new(), Some(9)), Holes::default());
    }

    proptest! {
        #[test]
        fn holes_lie_apart_and_inside(
            text in prop::collection::vec((0..99_u64, 0..99_u64), 0..9),
            noise in "[0-9, -]{0,20}", total in any::<u64>(), is_noise in any::<bool>()
        ) {
            let plain: Vec<String> = text.iter().map(|(a, b)| format!("{a}-{b}")).collect();
            let Holes(holes) = holes_of(if is_noise { &noise } else { "" }, Some(total));
            let Holes(more) = holes_of(&plain.join(","), Some(total % 100));
            for (holes, total) in [(holes, total), (more, total % 100)] {
                let mut free = 0;
                for hole in holes {
                    assert!(free <= hole.start && hole.start < hole.end && hole.end <= total);
                    free = hole.end;
                }
            }
        }
    }
}
