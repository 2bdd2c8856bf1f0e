//! Placeholder text for kernel arguments in a medium, and the search for it in a file.

use std::io::{self, Read};

use memchr::memmem::Finder;

/// Placeholder on the kernel command line in ISOs of HookOS and CaptainOS, and in the box's own
/// media: 1024 characters that occur nowhere by chance. The constant of Smee
/// (`cmd/tinkerbell/flag/smee.go`), HookOS (`linuxkit-templates/hook.template.yaml`) and CaptainOS
/// (`captain/iso.py`).
pub const MAGIC: &str = concat!(
    "464vn90e7rbj08xbwdjejmdf4it17c5zfzjyfhthbh19eij201hjgit021bmpdb9",
    "ctrc87x2ymc8e7icu4ffi15x1hah9iyaiz38ckyap8hwx2vt5rm44ixv4hau8iw7",
    "18q5yd019um5dt2xpqqa2rjtdypzr5v1gun8un110hhwp8cex7pqrh2ivh0ynpm4",
    "zkkwc8wcn367zyethzy7q8hzudyeyzx3cgmxqbkh825gcak7kxzjbgjajwizryv7",
    "ec1xm2h0hh7pz29qmvtgfjj1vphpgq1zcbiiehv52wrjy9yq473d9t1rvryy6929",
    "nk435hfx55du3ih05kn5tju3vijreru1p6knc988d4gfdz28eragvryq5x8aibe5",
    "trxd0t6t7jwxkde34v6pj1khmp50k6qqj3nzgcfzabtgqkmeqhdedbvwf3byfdma",
    "4nkv3rcxugaj2d0ru30pa2fqadjqrtjnv8bu52xzxv7irbhyvygygxu1nt5z4fh9",
    "w1vwbdcmagep26d298zknykf2e88kumt59ab7nq79d8amnhhvbexgh48e8qc61vq",
    "2e9qkihzt1twk1ijfgw70nwizai15iqyted2dt9gfmf2gg7amzufre79hwqkddc1",
    "cd935ywacnkrnak6r7xzcz7zbmq3kt04u2hg1iuupid8rt4nyrju51e6uejb2ruu",
    "36g9aibmz3hnmvazptu8x5tyxk820g2cdpxjdij766bt2n3djur7v623a2v44juy",
    "fgz80ekgfb9hkibpxh3zgknw8a34t4jifhf116x15cei9hwch0fye3xyq0acuym8",
    "uhitu5evc4rag3ui0fny3qg4kju7zkfyy8hwh537urd5uixkzwu5bdvafz4jmv7i",
    "mypj543xg5em8jk8cgk7c4504xdd5e4e71ihaumt6u5u2t1w7um92fepzae8p0vq",
    "93wdrd1756npu1pziiur1payc7kmdwyxg3hj5n4phxbc29x0tcddamjrwt260b0w",
);

/// Maximum placeholders in one file that are patched. A medium has one placeholder for each boot
/// loader with its own configuration.
pub const MAX_PLACES: usize = 16;

/// Bytes that are searched at a time.
pub(super) const SEARCHED: usize = 1 << 20;

/// Returns the offsets of all placeholders ([`MAGIC`]) in a file, ascending, at most
/// [`MAX_PLACES`]. Reads `chunk` bytes at a time; a placeholder across two chunks is found too.
///
/// # Errors
/// The reader fails.
pub fn places(mut file: impl Read, chunk: usize) -> io::Result<Vec<u64>> {
    let finder = Finder::new(MAGIC);
    let (mut found, mut start) = (Vec::new(), 0_u64);
    let mut held = Vec::with_capacity(chunk.saturating_add(MAGIC.len()));
    loop {
        let read = file.by_ref().take(chunk.max(1) as u64).read_to_end(&mut held)?;
        if read == 0 {
            return Ok(found);
        }
        for at in finder.find_iter(&held) {
            found.push(start + at as u64);
            if found.len() == MAX_PLACES {
                return Ok(found);
            }
        }
        // The last bytes that were read may be the start of a placeholder.
        let past = held.len().saturating_sub(MAGIC.len() - 1);
        held.drain(..past);
        start += past as u64;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};
    use sha2::{Digest as _, Sha256};

    use super::{MAGIC, MAX_PLACES, places};

    #[test]
    fn it_is_the_constant_that_the_media_have() {
        assert_eq!(MAGIC.len(), 1024);
        let digest = stdx::hex(&Sha256::digest(MAGIC));
        assert_eq!(digest, "252feaf619f32ca02d967c78c9fa1434c4c70c7774bf038e1de2fafbc5e88a78");
    }

    #[test]
    fn finds_no_more_than_it_may() {
        let many = MAGIC.repeat(MAX_PLACES + 3);
        assert_eq!(places(many.as_bytes(), 4096).unwrap().len(), MAX_PLACES);
    }

    proptest! {
        #[test]
        fn finds_each_wherever_the_reads_are_cut(
            gaps in prop::collection::vec(0_usize..3000, 0..5),
            rest in 0_usize..2000,
            chunk in 1_usize..5000,
        ) {
            let (mut file, mut wanted) = (Vec::new(), Vec::new());
            for gap in gaps {
                // An incomplete placeholder does not match.
                file.extend(MAGIC.bytes().take(1023).cycle().take(gap));
                file.push(b'.');
                wanted.push(file.len() as u64);
                file.extend(MAGIC.bytes());
            }
            file.extend(MAGIC.bytes().take(rest.min(1023)));
            assert_eq!(places(&file[..], chunk).unwrap(), wanted);
        }
    }
}
