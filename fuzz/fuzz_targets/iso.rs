//! A medium that is read in pieces: the pieces together equal the file with the text at its places,
//! for any pieces, places and text.

#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use netboot::iso::{MAGIC, MAX_PLACES, Patch, Replacement, overlay, places};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    // Any offsets and any text, as after a wrong search: no byte outside the piece is written.
    let (at, place) = (u64::from(input.number()) << (input.byte() % 56), input.number());
    let (text, mut piece) = (input.chunk(), input.chunk().to_vec());
    let before = piece.clone();
    overlay(at, &[u64::from(place), at, u64::MAX], text, &mut piece);
    assert_eq!(piece.len(), before.len());

    let mut file = Vec::new();
    for _ in 0..input.byte() % 20 {
        let gap = usize::from(input.byte());
        file.extend(MAGIC.bytes().take(gap));
        file.push(b'.');
        file.extend(MAGIC.bytes());
    }
    let found = places(&file[..], usize::from(input.number())).expect("memory can be read");
    assert!(found.len() <= MAX_PLACES && found.is_sorted());
    assert!(found.iter().all(|at| file[*at as usize..].starts_with(MAGIC.as_bytes())));
    let argument = String::from_utf8_lossy(input.chunk()).into_owned();
    let Ok(text) = Replacement::new(&[&argument]) else { return };
    assert!(argument.len() <= MAGIC.len());
    let patch = Patch::new(found.clone().into(), text);
    let mut whole = file.clone();
    patch.apply(0, &mut whole);
    for at in found {
        let there = &whole[at as usize..at as usize + MAGIC.len()];
        assert!(there.starts_with(argument.as_bytes()));
    }
    let mut start = 0;
    while start < file.len() {
        let end = (start + usize::from(input.byte()) * 16 + 1).min(file.len());
        let mut piece = file[start..end].to_vec();
        patch.apply(start as u64, &mut piece);
        assert_eq!(piece, whole[start..end]);
        start = end;
    }
});
