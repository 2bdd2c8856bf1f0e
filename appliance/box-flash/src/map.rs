//! Block map beside an image (`NAME.img.bmap`, bmaptool format 2.0): ranges with checksums.

use std::ops::Range;

/// Maximum size of a block map, in bytes.
pub const MAP_BYTES_MAX: u64 = 16 << 20;

/// Ranges of an image to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Size of the whole image in bytes, if known.
    pub size: Option<u64>,
    /// Ranges with data, sorted and without overlap.
    pub parts: Vec<Part>,
}

/// Range of the image that has data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Range in bytes; the last range may end after the image.
    pub bytes: Range<u64>,
    /// SHA-256 of the range; `None` if unknown.
    pub sum: Option<[u8; 32]>,
}

impl Map {
    /// Returns one range for the whole image, for an image without a block map.
    pub fn whole(size: Option<u64>) -> Self {
        Self { size, parts: vec![Part { bytes: 0..u64::MAX, sum: None }] }
    }

    /// Parses a block map; the error is a phrase.
    pub fn read(text: &str) -> Result<Self, String> {
        let document = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
        let root = document.root_element();
        let field = |name: &str| {
            let node = root.children().find(|node| node.has_tag_name(name));
            let text = node.and_then(|node| node.text()).ok_or_else(|| format!("it has no {name}"));
            text.map(str::trim)
        };
        let number = |name: &str| {
            let text = field(name)?;
            text.parse::<u64>().map_err(|_| format!("{name}: expected a number, found {text:?}"))
        };
        if !root.has_tag_name("bmap") || field("ChecksumType")? != "sha256" {
            return Err("not a valid block map with SHA-256 checksums".to_owned());
        }
        let (size, block) = (number("ImageSize")?, number("BlockSize")?);
        let list = root.children().find(|node| node.has_tag_name("BlockMap"));
        let ranges = list.iter().flat_map(|list| list.children());
        let ranges = ranges.filter(|node| node.has_tag_name("Range"));
        let mut parts: Vec<Part> = Vec::new();
        for node in ranges {
            let range_text = node.text().unwrap_or_default().trim();
            let range = blocks(range_text).and_then(|(first, last)| {
                Some(first.checked_mul(block)?..last.checked_add(1)?.checked_mul(block)?)
            });
            let sum = node.attribute("chksum").and_then(stdx::unhex);
            let sum = sum.and_then(|sum| sum.try_into().ok());
            let (Some(bytes), Some(sum)) = (range, sum) else {
                return Err(format!("not a valid range, or without checksum: {range_text:?}"));
            };
            let before = parts.last().map_or(0, |part| part.bytes.end);
            if bytes.start < before || bytes.start >= size {
                return Err(format!("the range {range_text} is out of order"));
            }
            parts.push(Part { bytes: bytes.start..bytes.end.min(size), sum: Some(sum) });
        }
        if parts.is_empty() {
            return Err("it has no ranges".to_owned());
        }
        Ok(Self { size: Some(size), parts })
    }
}

/// Parses a range of blocks, `7` or `7-9`; the last block is included.
fn blocks(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::{Map, Part};

    fn map(ranges: &str) -> Result<Map, String> {
        Map::read(&format!(
            "<?xml version=\"1.0\" ?>\n<bmap version=\"2.0\">\n<ImageSize> 40000 </ImageSize>\n\
             <BlockSize> 4096 </BlockSize>\n<ChecksumType> sha256 </ChecksumType>\n\
             <BlockMap>{ranges}</BlockMap></bmap>"
        ))
    }

    #[test]
    fn ranges_are_read() {
        let sum = "01".repeat(32);
        let range = |range_text: &str| format!("<Range chksum=\"{sum}\"> {range_text} </Range>");
        let part = |bytes| Part { bytes, sum: Some([1; 32]) };
        let read = map(&(range("0") + &range("2-3") + &range("9"))).unwrap();
        assert_eq!(read.size, Some(40_000));
        let parts = [part(0..4096), part(8192..16_384), part(36_864..40_000)];
        assert_eq!(read.parts, parts);
        let wrong = [
            (range("3-2"), "not a valid range"),
            (range("x"), "not a valid range"),
            ("<Range chksum=\"12\"> 1 </Range>".to_owned(), "without checksum"),
            (range("2") + &range("2"), "out of order"),
            (range("10"), "out of order"),
            (range("0-18446744073709551615"), "not a valid range"),
            (String::new(), "has no ranges"),
        ];
        for (ranges, why) in wrong {
            let range_text = map(&ranges).unwrap_err();
            assert!(range_text.contains(why), "{ranges}: {range_text}");
        }
        Map::read("<bmap").unwrap_err();
        Map::read("<other/>").unwrap_err();
    }
}
