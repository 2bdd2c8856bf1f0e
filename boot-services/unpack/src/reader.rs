//! Reads the entries of a tar archive as `tar -x` does. Supports the ustar, GNU and POSIX (pax)
//! formats, with long names, pax records that replace header fields, and all sparse formats.

use std::io::{self, Read};

use tar::{EntryType, GnuExtSparseHeader, Header};

use super::records::{Records, Time};
use super::sparse::{Extents, Map};
use super::{UnpackError, refuse};

const BLOCK: usize = 512;
/// Maximum length in bytes of an entry's pax records or long name. The records may include the map
/// of a sparse file.
const RECORDS_BYTES: u64 = 8 << 20;
/// Type flag of a GNU volume header, which is skipped.
const VOLUME: u8 = b'V';

/// Modification and access time of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) modified: Time,
    /// Access time; `None` without a pax record `atime`.
    pub(super) accessed: Option<Time>,
}

/// Metadata of an entry.
pub(super) struct Entry {
    pub(super) kind: EntryType,
    pub(super) name: Vec<u8>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) uid: u64,
    pub(super) gid: u64,
    pub(super) mode: u32,
    pub(super) times: Times,
    /// Size of the file in bytes, including its holes.
    pub(super) size: u64,
    /// Map of a sparse file; `None` for others. The contents in the archive are the mapped parts
    /// only.
    pub(super) map: Option<Map>,
    /// Names and values of extended attributes.
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    header: Header,
}

impl Entry {
    /// Returns the major and minor number of a device; 0 if the header has none.
    pub(super) fn device(&self) -> io::Result<(u32, u32)> {
        let (major, minor) = (self.header.device_major()?, self.header.device_minor()?);
        Ok((major.unwrap_or_default(), minor.unwrap_or_default()))
    }
}

/// Data from the headers before an entry: long names, and pax records (global and per entry).
#[derive(Default)]
struct Before {
    records: Records,
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

/// Reader of an archive. [`Read`] returns the contents of the current entry.
pub(super) struct Archive<'a> {
    input: &'a mut dyn Read,
    /// Unread bytes of the current entry's contents, and of the padding after them.
    left: u64,
    padding: u64,
    /// Global pax records, which apply to all following entries.
    global: Records,
}

impl Read for Archive<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let count = self.input.read(&mut out[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}

impl<'a> Archive<'a> {
    pub(super) fn new(input: &'a mut dyn Read) -> Self {
        Self { input, left: 0, padding: 0, global: Records::default() }
    }

    /// Reads the input to its end, after the last entry.
    pub(super) fn finish(self) -> io::Result<()> {
        io::copy(self.input, &mut io::sink()).map(|_| ())
    }

    /// Reads the next entry; `None` at the end of the archive.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>, UnpackError> {
        let broken = |source| UnpackError { name: String::new(), source };
        let Some((header, before)) = self.headers().map_err(broken)? else { return Ok(None) };
        let mut entry = entry(header, before).map_err(broken)?;
        let map = self.map(&mut entry).map_err(|source| {
            let name = String::from_utf8_lossy(&entry.0.name).into_owned();
            UnpackError { name, source }
        })?;
        let (mut entry, _) = entry;
        if let Some((map, size)) = map {
            (entry.map, entry.size) = (Some(map), size);
        }
        Ok(Some(entry))
    }

    /// Reads the next entry's header, and the extension headers before it; `None` at the end.
    /// [`Read`] then returns the contents.
    fn headers(&mut self) -> io::Result<Option<(Header, Before)>> {
        let mut before: Option<Before> = None;
        loop {
            self.skip()?;
            let Some(header) = self.header()? else {
                return match before {
                    Some(_) => Err(refuse("its last header describes a missing entry")),
                    None => Ok(None),
                };
            };
            let size = header.entry_size();
            match header.entry_type() {
                EntryType::GNULongName => {
                    let name = self.long_name(size?)?;
                    self.before(&mut before).name = Some(name);
                }
                EntryType::GNULongLink => {
                    let link = self.long_name(size?)?;
                    self.before(&mut before).link = Some(link);
                }
                EntryType::XHeader => {
                    let text = self.text(size?)?;
                    self.before(&mut before).records.read(&text)?;
                }
                EntryType::XGlobalHeader => {
                    let text = self.text(size?)?;
                    self.global.read(&text)?;
                    self.global.keep_scalars();
                }
                kind if kind.as_byte() == VOLUME => self.begin(size?),
                _ => {
                    self.before(&mut before);
                    let before = before.unwrap_or_default();
                    self.begin(before.records.size.map_or(size, Ok)?);
                    return Ok(Some((header, before)));
                }
            }
        }
    }

    /// Returns the data of the extension headers, and creates the data from the global records if
    /// missing.
    fn before<'b>(&self, before: &'b mut Option<Before>) -> &'b mut Before {
        let new = || Before { records: self.global.clone(), ..Before::default() };
        before.get_or_insert_with(new)
    }

    /// Reads the next header and verifies its checksum; `None` at the end or at a block of zeros.
    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut header = Header::new_old();
        if !fill(self.input, header.as_mut_bytes())? {
            return Ok(None);
        }
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        let bytes = header.as_bytes();
        // The checksum's own field counts as spaces.
        if sum(&bytes[..148]) + 8 * u32::from(b' ') + sum(&bytes[156..]) != header.cksum()? {
            return Err(refuse("the checksum of a header is wrong"));
        }
        Ok(Some(header))
    }

    fn begin(&mut self, size: u64) {
        self.left = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
    }

    /// Skips the unread contents and the padding of the current entry.
    fn skip(&mut self) -> io::Result<()> {
        let left = self.left.saturating_add(std::mem::take(&mut self.padding));
        self.left = 0;
        let skipped = io::copy(&mut (&mut *self.input).take(left), &mut io::sink())?;
        if skipped == left { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Reads the contents of an extension header (pax records or long name).
    fn text(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > RECORDS_BYTES {
            let most = stdx::bytes(RECORDS_BYTES);
            return Err(refuse(&format!("the records of an entry have more than {most}")));
        }
        self.begin(size);
        let mut text = Vec::new();
        self.read_to_end(&mut text)?;
        if text.len() as u64 == size { Ok(text) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn long_name(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut name = self.text(size)?;
        name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
        Ok(name)
    }

    /// Returns the checked map and the full size of a sparse file of any format; `None` if not
    /// sparse.
    fn map(&mut self, entry: &mut (Entry, Records)) -> io::Result<Option<(Map, u64)>> {
        let (entry, records) = entry;
        let (extents, size) = match entry.kind {
            EntryType::GNUSparse => self.old_extents(&entry.header)?,
            EntryType::Regular | EntryType::Continuous => {
                let Some(sparse) = records.sparse.take() else { return Ok(None) };
                let size = sparse.size()?;
                let extents = if sparse.is_in_contents()? {
                    Extents::read(self)?
                } else {
                    sparse.extents()?
                };
                (extents, size)
            }
            _ => return Ok(None),
        };
        Ok(Some((extents.checked(size, self.left)?, size)))
    }

    /// Reads the map and the size from GNU's old sparse header, and from extension headers after
    /// it.
    fn old_extents(&mut self, header: &Header) -> io::Result<(Extents, u64)> {
        let gnu = header.as_gnu().ok_or_else(|| refuse("it has an unknown sparse format"))?;
        let mut extents = Extents::default();
        let mut add = |blocks: &[tar::GnuSparseHeader]| -> io::Result<()> {
            for block in blocks.iter().filter(|block| !block.is_empty()) {
                extents.add(block.offset()?, block.length()?)?;
            }
            Ok(())
        };
        add(&gnu.sparse)?;
        let mut is_extended = gnu.is_extended();
        while is_extended {
            let mut more = GnuExtSparseHeader::new();
            self.input.read_exact(more.as_mut_bytes())?;
            add(&more.sparse)?;
            is_extended = more.is_extended();
        }
        Ok((extents, gnu.real_size()?))
    }
}

/// Builds an entry from its header and the extension headers. The map of a sparse file is missing;
/// the returned records still have its data.
fn entry(header: Header, before: Before) -> io::Result<(Entry, Records)> {
    let Before { mut records, name, link } = before;
    let sparse_name = records.sparse.as_mut().and_then(|sparse| sparse.name.take());
    let name = sparse_name.or(records.path.take()).or(name);
    let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
    let link = records.link.take().or(link);
    let link = link.or_else(|| header.link_name_bytes().map(|link| link.into_owned()));
    let kind = match header.entry_type() {
        // The oldest archives mark a folder by a slash.
        EntryType::Regular | EntryType::Continuous if name.ends_with(b"/") => EntryType::Directory,
        kind => kind,
    };
    let modified = match records.modified {
        Some(time) => time,
        None => Time::of_seconds(header.mtime()?.cast_signed()),
    };
    let entry = Entry {
        kind,
        name,
        link,
        uid: records.uid.map_or_else(|| header.uid(), Ok)?,
        gid: records.gid.map_or_else(|| header.gid(), Ok)?,
        mode: header.mode()?,
        times: Times { modified, accessed: records.accessed },
        size: records.size.map_or_else(|| header.entry_size(), Ok)?,
        map: None,
        attributes: std::mem::take(&mut records.attributes),
        header,
    };
    Ok((entry, records))
}

/// Reads a whole block. Returns `false` if the input ends before the block.
fn fill(input: &mut dyn Read, block: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < block.len() {
        match input.read(&mut block[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
