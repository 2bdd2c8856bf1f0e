//! Protobuf wire format: varints, tags and lengths (protobuf.dev, "Encoding").

use crate::Error;

/// Maximum depth of nested groups that are skipped; Kubernetes' types contain no groups.
const MAX_GROUPS: usize = 16;

/// Content of a field, after its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// Skipped 32-bit value or group, which no built-in type uses.
    Skipped,
}

/// Reader of the fields of a message; contains the remaining bytes.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Returns number and content of the next field; `None` at the end of the message.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Content<'a>)>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, form) = self.tag()?;
        let content = match form {
            0 => Content::Varint(self.varint()?),
            1 => Content::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Content::Bytes(self.bytes()?),
            3 => {
                self.skip_group(number)?;
                Content::Skipped
            }
            5 => {
                self.array::<4>()?;
                Content::Skipped
            }
            _ => return Err(Error::Malformed("a wire type that does not exist")),
        };
        Ok(Some((number, content)))
    }

    fn tag(&mut self) -> Result<(u32, u8), Error> {
        let tag = u32::try_from(self.varint()?).ok();
        let tag = tag.filter(|tag| tag >> 3 > 0).ok_or(Error::Malformed("a field number"))?;
        Ok((tag >> 3, (tag & 7) as u8))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0_u64;
        for (index, byte) in self.0.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if index == 9 && bits > 1 {
                break;
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = &self.0[index + 1..];
                return Ok(value);
            }
        }
        Err(Error::Malformed("a number that does not end"))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.varint()?;
        let length = usize::try_from(length).ok().filter(|length| *length <= self.0.len());
        let length = length.ok_or(Error::Malformed("a length beyond its end"))?;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some((bytes, rest)) = self.0.split_first_chunk::<N>() else {
            return Err(Error::Malformed("a number beyond its end"));
        };
        self.0 = rest;
        Ok(*bytes)
    }

    fn skip_group(&mut self, number: u32) -> Result<(), Error> {
        let mut open = vec![number];
        while let Some(innermost) = open.last().copied() {
            let (number, form) = self.tag()?;
            match form {
                0 => drop(self.varint()?),
                1 => drop(self.array::<8>()?),
                2 => drop(self.bytes()?),
                3 if open.len() < MAX_GROUPS => open.push(number),
                4 if number == innermost => drop(open.pop()),
                5 => drop(self.array::<4>()?),
                _ => return Err(Error::Malformed("a group that does not end")),
            }
        }
        Ok(())
    }
}

/// Appends a number as a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field with a varint (wire type 0).
pub fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// Appends a field with 8 bytes (wire type 1).
pub fn put_fixed(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field with a length (wire type 2): text, bytes or a message.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::{Content, Reader, put_varint};

    #[test]
    fn varints_come_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(Reader(&bytes).varint().unwrap(), value);
        }
    }

    #[test]
    fn what_is_cut_off_or_impossible_is_refused() {
        for bytes in [
            &[0x80][..],
            &[0xff; 11],
            &[0x08],
            &[0x00, 0x01],
            &[0x12, 0x05, b'a'],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x09, 1, 2, 3],
            &[0x0e],
            &[0x0f],
            &[0x0c],
            &[0x0b],
            &[0x0b, 0x14],
            &[0x0b; 40],
        ] {
            let mut reader = Reader(bytes);
            let refused = loop {
                match reader.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            assert!(refused, "{bytes:x?}");
        }
    }

    #[test]
    fn groups_are_skipped() {
        let mut reader = Reader(&[0x0b, 0x10, 0x01, 0x1b, 0x1c, 0x0c, 0x10, 0x07]);
        assert_eq!(reader.next().unwrap(), Some((1, Content::Skipped)));
        assert_eq!(reader.next().unwrap(), Some((2, Content::Varint(7))));
        assert_eq!(reader.next().unwrap(), None);
    }
}
