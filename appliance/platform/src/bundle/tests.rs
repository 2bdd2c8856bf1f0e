use proptest::prelude::*;

use super::*;

fn manifest() -> Manifest {
    let part = |content, size: u64| {
        let chunk = Chunk { stored: 17, sum: [3; 32] };
        let chunks = vec![chunk; size.div_ceil(CHUNK_BYTES as u64) as usize];
        Part { content, size, sum: [9; 32], chunks }
    };
    Manifest {
        version: "1.4.0-rc.1+x".to_owned(),
        arch: Arch::Aarch64,
        built: 1_800_000_000,
        verity: Verity { root_hash: [1; 32], salt: [2; 32], data_blocks: 300 },
        parts: vec![part(Content::Kernel, 1), part(Content::Root, 3 * CHUNK_BYTES as u64 + 1)],
    }
}

#[test]
fn a_manifest_reads_back() {
    let manifest = manifest();
    let bytes = manifest.encode();
    assert_eq!(Manifest::decode(&bytes).unwrap(), manifest);
    let [kernel, root] = &manifest.parts[..] else { panic!("two parts") };
    assert_eq!((kernel.chunk_size(0), root.chunk_size(2), root.chunk_size(3)), (1, CHUNK_BYTES, 1));
    for end in 0..bytes.len() {
        let error = Manifest::decode(&bytes[..end]).unwrap_err();
        assert!(matches!(error, Error::Manifest { why: "it ends early", .. }), "{end}: {error}");
    }
    let error = Manifest::decode(&[bytes.as_slice(), &[0]].concat()).unwrap_err();
    assert!(error.to_string().ends_with("it has extra bytes after its end"), "{error}");
}

#[test]
fn a_signers_mistake_is_named() {
    let why = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = manifest();
        change(&mut manifest);
        match Manifest::decode(&manifest.encode()).unwrap_err() {
            Error::Manifest { why, .. } => why,
            other => panic!("{other}"),
        }
    };
    let version = "the version is empty, too long or has invalid characters";
    assert_eq!(why(&|it| it.version.clear()), version);
    assert_eq!(why(&|it| it.version = "1 2".to_owned()), version);
    assert_eq!(why(&|it| it.version = "1".repeat(VERSION_MAX + 1)), version);
    assert_eq!(why(&|it| it.parts[0].size = 0), "a part is empty or too large");
    assert_eq!(why(&|it| it.parts[1].size = PART_MAX + 1), "a part is empty or too large");
    assert_eq!(why(&|it| it.parts[0].chunks[0].stored = 0), "a chunk is empty or too large");
    let large = STORED_MAX + 1;
    assert_eq!(why(&|it| it.parts[1].chunks[2].stored = large), "a chunk is empty or too large");
    assert_eq!(why(&|it| it.verity.data_blocks = 0), "the root has no space for its hash tree");
    // The root has 3 MiB and one byte: 768 whole blocks, and no space after them.
    assert_eq!(why(&|it| it.verity.data_blocks = 769), "the root has no space for its hash tree");
    let mut bytes = manifest().encode();
    bytes[1 + manifest().version.len()] = 9;
    assert!(Manifest::decode(&bytes).unwrap_err().to_string().ends_with("unknown processor"));
}

#[test]
fn a_slot_boots_its_own_root() {
    let verity = Verity { root_hash: [0xab; 32], salt: [0xcd; 32], data_blocks: 10 };
    let script = verity.boot_script(Arch::X86_64, Slot::B, "1.4.0");
    assert_eq!(Verity::version_in(&script), Some("1.4.0"));
    let command = "# Tinbox 1.4.0\nlinux /tinbox/b/vmlinuz tinbox.slot=b ";
    assert!(script.starts_with(command), "{script}");
    let table = "\"dm-mod.create=root,,,ro,0 80 verity 1 PARTLABEL=root-b PARTLABEL=root-b \
                 4096 4096 10 11 sha256 abab";
    assert!(script.contains(table), "{script}");
    assert!(script.contains(" 1 restart_on_corruption\" dm-mod.waitfor=PARTLABEL=root-b "));
    assert!(script.ends_with('\n') && script.lines().count() == 2, "{script}");
    // Maximum length of the kernel's command line on x86.
    assert!(script.len() < 2048);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(
        start in 0..HEADER_BYTES,
        noise in proptest::collection::vec(any::<u8>(), 0..4096),
        step in 1usize..64,
    ) {
        let mut header = [MAGIC.as_slice(), &FORMAT.to_le_bytes(), &64u32.to_le_bytes()].concat();
        header.resize(HEADER_BYTES, 0);
        let bytes = [&header[..start], &noise].concat();
        let mut reader = Reader::new(vec![PublicKey { id: [0; 8], key: [0; 32] }]);
        let mut all = bytes.chunks(step);
        let refused = all.find_map(|mut piece| loop {
            match reader.read(&mut piece) {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        });
        prop_assert!(refused.is_some() || reader.finish().is_err());
        let _ = Manifest::decode(&noise);
    }
}
