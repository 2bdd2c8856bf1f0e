//! State machine that reads a bundle from a stream of bytes.

use std::collections::VecDeque;

use release::key_name;
use sha2::{Digest as _, Sha256};

use super::{
    CONTEXT, Content, Error, FORMAT, HEADER_BYTES, HEADER_SIGNED_BYTES, KEY_ID_BYTES, MAGIC,
    MANIFEST_MAX, Manifest, PublicKey,
};

/// Next event of a bundle, as [`Reader::read`] returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Manifest with a valid signature. The caller decides before any write if it accepts the
    /// version, the architecture and the build time.
    Manifest(Box<Manifest>),
    /// Next bytes of a part: unpacked, checked and in order.
    Data {
        /// Part that contains the bytes.
        content: Content,
        /// Offset of the bytes in the unpacked part.
        offset: u64,
        /// Unpacked bytes, at most [`super::CHUNK_BYTES`].
        bytes: Vec<u8>,
    },
    /// The part is complete and matches its SHA-256.
    Whole(Content),
    /// The bundle is complete and valid.
    End,
}

/// Piece of the bundle that the reader is collecting.
#[derive(Debug)]
enum State {
    Header,
    Manifest {
        header: Vec<u8>,
    },
    Chunk {
        manifest: Box<Manifest>,
        part: usize,
        chunk: usize,
        whole: Sha256,
    },
    End,
    /// An earlier error, which every further call returns again.
    Failed(Error),
}

/// Reader of one bundle.
#[derive(Debug)]
pub struct Reader {
    keys: Vec<PublicKey>,
    state: State,
    /// Received bytes of the current piece, at most `due` bytes.
    gathered: Vec<u8>,
    due: usize,
    /// Events that [`Reader::read`] has not returned yet, at most three.
    events: VecDeque<Event>,
}

impl Reader {
    /// Creates a reader for bundles that are signed with one of `keys`.
    pub fn new(keys: Vec<PublicKey>) -> Self {
        let (gathered, events) = (Vec::new(), VecDeque::new());
        Self { keys, state: State::Header, gathered, due: HEADER_BYTES, events }
    }

    /// Takes bytes from the front of `input` until an event is ready. Returns `None` after all of
    /// `input` was used. The caller repeats the call with the rest of `input`, and then with the
    /// next bytes.
    ///
    /// # Errors
    /// The bundle is rejected. Every further call returns the same error.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            match &self.state {
                State::Failed(error) => return Err(error.clone()),
                State::End if input.is_empty() => return Ok(None),
                State::End => return self.fail(Error::Trailing),
                _ => {}
            }
            let (taken, rest) = input.split_at((self.due - self.gathered.len()).min(input.len()));
            self.gathered.extend_from_slice(taken);
            *input = rest;
            if self.gathered.len() < self.due {
                return Ok(None);
            }
            let piece = std::mem::take(&mut self.gathered);
            if let Err(error) = self.piece(piece) {
                return self.fail(error);
            }
        }
    }

    /// Checks that the bundle is complete, after the last byte of the stream.
    ///
    /// # Errors
    /// [`Error::Truncated`], or the error that [`Reader::read`] returned.
    pub fn finish(self) -> Result<(), Error> {
        match self.state {
            State::End => Ok(()),
            State::Failed(error) => Err(error),
            _ => Err(Error::Truncated { missing: self.due - self.gathered.len() }),
        }
    }

    fn fail<T>(&mut self, error: Error) -> Result<T, Error> {
        self.state = State::Failed(error.clone());
        self.events.clear();
        Err(error)
    }

    fn piece(&mut self, piece: Vec<u8>) -> Result<(), Error> {
        match std::mem::replace(&mut self.state, State::End) {
            State::Header => {
                self.due = manifest_length(&piece)?;
                self.state = State::Manifest { header: piece };
            }
            State::Manifest { header } => {
                self.believe(&header, &piece)?;
                let manifest = Box::new(Manifest::decode(&piece)?);
                self.events.push_back(Event::Manifest(manifest.clone()));
                self.expect(manifest, 0, 0, Sha256::new());
            }
            State::Chunk { manifest, part, chunk, whole } => {
                self.chunk(manifest, part, chunk, whole, &piece)?;
            }
            State::End | State::Failed(_) => {}
        }
        Ok(())
    }

    /// Verifies the signature with the trusted key whose ID is in the header.
    fn believe(&self, header: &[u8], manifest: &[u8]) -> Result<(), Error> {
        let signed = header.get(..HEADER_SIGNED_BYTES).unwrap_or_default();
        let signature = header.get(HEADER_SIGNED_BYTES..).unwrap_or_default();
        let id = signed.last_chunk::<KEY_ID_BYTES>().copied().unwrap_or_default();
        let Some(key) = self.keys.iter().find(|key| key.id == id) else {
            return Err(Error::UnknownKey { id: key_name(&id) });
        };
        let message = [CONTEXT, signed, manifest].concat();
        if key.verify(&message, signature) { Ok(()) } else { Err(Error::Signature) }
    }

    fn chunk(
        &mut self,
        manifest: Box<Manifest>,
        at: usize,
        index: usize,
        mut whole: Sha256,
        piece: &[u8],
    ) -> Result<(), Error> {
        // Both indexes were taken from the lists of the manifest.
        let Some(part) = manifest.parts.get(at) else { return Ok(()) };
        let Some(chunk) = part.chunks.get(index) else { return Ok(()) };
        let content = part.content;
        if Sha256::digest(piece).as_slice() != chunk.sum {
            return Err(Error::Damaged { content, chunk: index });
        }
        let expected = part.chunk_size(index);
        let unpack = Error::Unpack { content, chunk: index, expected };
        let bytes = zstd::bulk::decompress(piece, expected).map_err(|_| unpack.clone())?;
        if bytes.len() != expected {
            return Err(unpack);
        }
        whole.update(&bytes);
        let offset = (index as u64).saturating_mul(super::CHUNK_BYTES as u64);
        self.events.push_back(Event::Data { content, offset, bytes });
        if index + 1 < part.chunks.len() {
            self.expect(manifest, at, index + 1, whole);
            return Ok(());
        }
        if whole.finalize().as_slice() != part.sum {
            return Err(Error::Sum(content));
        }
        self.events.push_back(Event::Whole(content));
        self.expect(manifest, at + 1, 0, Sha256::new());
        Ok(())
    }

    /// Selects the next chunk to collect. Ends the bundle if the manifest has no part `part`.
    fn expect(&mut self, manifest: Box<Manifest>, part: usize, chunk: usize, whole: Sha256) {
        match manifest.parts.get(part).and_then(|part| part.chunks.get(chunk)) {
            Some(next) => {
                self.due = next.stored;
                self.state = State::Chunk { manifest, part, chunk, whole };
            }
            None => {
                self.due = 0;
                self.state = State::End;
                self.events.push_back(Event::End);
            }
        }
    }
}

/// Checks a header and returns the length of its manifest.
fn manifest_length(header: &[u8]) -> Result<usize, Error> {
    let Some(rest) = header.strip_prefix(&MAGIC) else { return Err(Error::NotABundle) };
    let (format, rest) = rest.split_first_chunk().unwrap_or((&[0; 4], rest));
    let format = u32::from_le_bytes(*format);
    if format != FORMAT {
        return Err(Error::Format(format));
    }
    let length = rest.first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
    if length == 0 || length > MANIFEST_MAX {
        return Err(Error::Manifest { at: 0, why: "it is empty or too long" });
    }
    Ok(length)
}
