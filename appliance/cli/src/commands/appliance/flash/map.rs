//! The block map beside an image (`NAME.img.bmap`, bmaptool's format 2.0): which ranges of it have
//! to be on the disk, and the sum of each.

use std::ops::Range;

/// Block maps that are larger are none.
pub const MAP_BYTES_MAX: u64 = 16 << 20;

/// What of an image is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Bytes of the whole image, where that is known.
    pub size: Option<u64>,
    /// In order, apart from each other.
    pub parts: Vec<Part>,
}

/// One range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// In bytes; the last may end behind the image.
    pub bytes: Range<u64>,
    /// Its SHA-256.
    pub sum: Option<[u8; 32]>,
}

impl Map {
    /// Of an image without a map: all of it.
    pub fn whole(size: Option<u64>) -> Self {
        Self { size, parts: vec![Part { bytes: 0..u64::MAX, sum: None }] }
    }

    /// What the file says; the error is a phrase.
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
            text.parse::<u64>().map_err(|_| format!("{name} is {text:?}, which is no number"))
        };
        if !root.has_tag_name("bmap") || field("ChecksumType")? != "sha256" {
            return Err("it is no block map with SHA-256 sums".to_owned());
        }
        let (size, block) = (number("ImageSize")?, number("BlockSize")?);
        let list = root.children().find(|node| node.has_tag_name("BlockMap"));
        let ranges = list.iter().flat_map(|list| list.children());
        let ranges = ranges.filter(|node| node.has_tag_name("Range"));
        let mut parts: Vec<Part> = Vec::new();
        for node in ranges {
            let said = node.text().unwrap_or_default().trim();
            let range = blocks(said).and_then(|(first, last)| {
                Some(first.checked_mul(block)?..last.checked_add(1)?.checked_mul(block)?)
            });
            let sum = node.attribute("chksum").and_then(stdx::unhex);
            let sum = sum.and_then(|sum| sum.try_into().ok());
            let (Some(bytes), Some(sum)) = (range, sum) else {
                return Err(format!("the range {said:?} is none, or has no sum"));
            };
            let before = parts.last().map_or(0, |part| part.bytes.end);
            if bytes.start < before || bytes.start >= size {
                return Err(format!("the range {said} is not where it belongs"));
            }
            parts.push(Part { bytes: bytes.start..bytes.end.min(size), sum: Some(sum) });
        }
        if parts.is_empty() {
            return Err("it maps nothing".to_owned());
        }
        Ok(Self { size: Some(size), parts })
    }
}

/// `7` or `7-9`.
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
        let range = |said: &str| format!("<Range chksum=\"{sum}\"> {said} </Range>");
        let part = |bytes| Part { bytes, sum: Some([1; 32]) };
        let read = map(&(range("0") + &range("2-3") + &range("9"))).unwrap();
        assert_eq!(read.size, Some(40_000));
        let parts = [part(0..4096), part(8192..16_384), part(36_864..40_000)];
        assert_eq!(read.parts, parts);
        let wrong = [
            (range("3-2"), "is none"),
            (range("x"), "is none"),
            ("<Range chksum=\"12\"> 1 </Range>".to_owned(), "no sum"),
            (range("2") + &range("2"), "not where it belongs"),
            (range("10"), "not where it belongs"),
            (range("0-18446744073709551615"), "is none"),
            (String::new(), "maps nothing"),
        ];
        for (ranges, why) in wrong {
            let said = map(&ranges).unwrap_err();
            assert!(said.contains(why), "{ranges}: {said}");
        }
        Map::read("<bmap").unwrap_err();
        Map::read("<other/>").unwrap_err();
    }
}
