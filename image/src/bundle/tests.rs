use platform::bundle::{Error as Refused, Event, HEADER_BYTES, Reader};

use super::*;

/// More than a chunk, and not a multiple of a chunk.
const ROOT_BYTES: usize = 2 * CHUNK_BYTES + 4096;

fn key() -> SecretKey {
    let folder = tempfile::tempdir().unwrap();
    SecretKey::create(&folder.path().join("key")).unwrap()
}

fn made(key: &SecretKey) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let noise = |seed: u32, count: usize| -> Vec<u8> {
        let next = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 24) as u8)
        };
        std::iter::repeat_n((), count).scan(seed, |state, ()| next(state)).collect()
    };
    let (kernel, root) = (noise(1, 70_000), noise(2, ROOT_BYTES));
    let blocks = (ROOT_BYTES / 4096 - 3) as u64;
    let bundle = Bundle {
        version: "1.2.3",
        arch: Arch::X86_64,
        built: 1_767_225_600,
        kernel: &kernel,
        root: &root,
        verity: Verity { root_hash: [5; 32], salt: [6; 32], data_blocks: blocks },
    };
    (write(&bundle, key).unwrap(), kernel, root)
}

/// Reads `bytes` with the real reader, `step` bytes at a time.
fn read(bytes: &[u8], key: &SecretKey, step: usize) -> Result<Vec<Event>, Refused> {
    let mut reader = Reader::new(vec![key.public()]);
    let mut events = Vec::new();
    for mut piece in bytes.chunks(step) {
        while let Some(event) = reader.read(&mut piece)? {
            events.push(event);
        }
    }
    reader.finish().map(|()| events)
}

/// Returns the bytes of one part, in the order of arrival.
fn joined(events: &[Event], wanted: Content) -> Vec<u8> {
    let mut all = Vec::new();
    for event in events {
        if let Event::Data { content, offset, bytes } = event
            && *content == wanted
        {
            assert_eq!(*offset, all.len() as u64);
            all.extend_from_slice(bytes);
        }
    }
    all
}

#[test]
fn what_is_written_is_read_however_it_arrives() {
    let key = key();
    let (bundle, kernel, root) = made(&key);
    let whole = read(&bundle, &key, bundle.len()).unwrap();
    for step in [1, 7, 4096, CHUNK_BYTES + 1] {
        assert_eq!(read(&bundle, &key, step).unwrap(), whole, "{step} bytes at a time");
    }
    assert_eq!(joined(&whole, Content::Kernel), kernel);
    assert_eq!(joined(&whole, Content::Root), root);
    let Some(Event::Manifest(manifest)) = whole.first() else { panic!("{whole:?}") };
    assert_eq!((manifest.version.as_str(), manifest.arch), ("1.2.3", Arch::X86_64));
    let ends = whole.iter().filter(|event| !matches!(event, Event::Data { .. })).skip(1);
    let expected = [Event::Whole(Content::Kernel), Event::Whole(Content::Root), Event::End];
    assert!(ends.eq(expected.iter()), "{whole:?}");
}

#[test]
fn a_bundle_that_ends_early_says_so_wherever_it_ends() {
    let key = key();
    let (bundle, ..) = made(&key);
    let manifest = u32::from_le_bytes(bundle[12..16].try_into().unwrap()) as usize;
    let chunks = HEADER_BYTES + manifest;
    // Ends within and at the boundaries of: nothing, the magic, the header, the manifest, a chunk,
    // the whole.
    let mut ends = vec![0, 1, 7, 8, 9, 15, 16, 23, 24, HEADER_BYTES - 1, HEADER_BYTES];
    ends.extend([chunks - 1, chunks, chunks + 1, bundle.len() / 2, bundle.len() - 1]);
    for end in ends {
        let error = read(&bundle[..end], &key, 4096).unwrap_err();
        assert!(matches!(error, Refused::Truncated { missing } if missing > 0), "{end}: {error}");
    }
}

#[test]
fn no_flipped_bit_is_believed() {
    let key = key();
    let (bundle, ..) = made(&key);
    let manifest = u32::from_le_bytes(bundle[12..16].try_into().unwrap()) as usize;
    let chunks = HEADER_BYTES + manifest;
    let places = (0..chunks).step_by(3).chain((chunks..bundle.len()).step_by(50_021));
    for at in places.chain([bundle.len() - 1]) {
        let mut other = bundle.clone();
        other[at] ^= 1 << (at % 8);
        let mut reader = Reader::new(vec![key.public()]);
        let mut rest = other.as_slice();
        let mut manifests = 0;
        let refused = loop {
            match reader.read(&mut rest) {
                Ok(Some(Event::Manifest(_))) => manifests += 1,
                Ok(Some(Event::End)) | Ok(None) => break None,
                Ok(Some(_)) => {}
                Err(error) => break Some(error),
            }
        };
        // After a changed length the reader waits for bytes that never arrive.
        let refused = refused.map_or_else(|| reader.finish(), Err);
        let error = refused.expect_err(&format!("bit {at}"));
        match at {
            0..8 => assert_eq!(error, Refused::NotABundle),
            8..12 => assert!(matches!(error, Refused::Format(_)), "{at}: {error}"),
            16..24 => assert!(matches!(error, Refused::UnknownKey { .. }), "{at}: {error}"),
            at if at >= chunks => {
                assert!(matches!(error, Refused::Damaged { .. }), "{at}: {error}");
                assert_eq!(manifests, 1);
                continue;
            }
            _ => {}
        }
        assert_eq!(manifests, 0, "bit {at} of the header or manifest was believed");
    }
}

#[test]
fn only_a_trusted_key_counts_and_nothing_follows_the_end() {
    let (ours, theirs) = (key(), key());
    let (bundle, ..) = made(&ours);
    let error = read(&bundle, &theirs, 4096).unwrap_err();
    let id = format!("{:016X}", u64::from_le_bytes(ours.public().id));
    assert_eq!(error, Refused::UnknownKey { id });
    // The right key number with the wrong key.
    let mut public = theirs.public();
    public.id = ours.public().id;
    let mut reader = Reader::new(vec![public]);
    assert_eq!(reader.read(&mut bundle.as_slice()), Err(Refused::Signature));
    assert_eq!(reader.read(&mut bundle.as_slice()), Err(Refused::Signature), "it stays refused");
    let longer = [bundle.as_slice(), b"x"].concat();
    assert_eq!(read(&longer, &ours, 4096).unwrap_err(), Refused::Trailing);
}
