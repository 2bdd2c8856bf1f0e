//! Splits an image into data to write and zeros to write or to punch as holes.

use std::ops::Range;

/// Unit of the search for zeros in bytes, 64 KiB.
const GRANULE: usize = 64 << 10;
static ZEROS: [u8; GRANULE] = [0; GRANULE];
/// Minimum length of a hole in bytes; writing fewer zeros is faster than punching.
const HOLE: u64 = 256 << 10;
/// Length in bytes at which a run of zeros is split, so that punching runs while the next bytes are
/// decoded.
const HOLE_MAX: u64 = 16 << 20;

/// Operation on the disk. Steps do not overlap.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Data of the image to write.
    Data {
        /// Range of the data in the inspected buffer.
        range: Range<usize>,
        /// Offset on the disk, in bytes.
        offset: u64,
    },
    /// Zeros to write, shorter than [`HOLE`].
    Zeros {
        /// Offset on the disk, in bytes.
        offset: u64,
        /// Number of zeros, in bytes.
        length: u64,
    },
    /// Zeros to punch as a hole.
    Hole {
        /// Offset on the disk, in bytes.
        offset: u64,
        /// Number of zeros, in bytes.
        length: u64,
    },
}

/// State of the search for zeros in an image.
#[derive(Default)]
pub(super) struct Sparse {
    /// Offset and length of zeros at the end of the inspected data, not in a step yet.
    zeros: Option<(u64, u64)>,
}

impl Sparse {
    /// Returns the steps for the next bytes of the image: `data` from index `skipped`, where `data`
    /// begins at image offset `offset`. A short run of zeros between data is written with the data.
    /// Zeros at the end stay for the next call, because the run may continue.
    pub(super) fn next(&mut self, data: &[u8], skipped: usize, offset: u64) -> Vec<Step> {
        let (mut at, mut unwritten, mut steps) = (skipped, skipped, Vec::new());
        while at < data.len() {
            let zeros = zero_run(&data[at..]);
            if zeros == 0 {
                at = (at + GRANULE).min(data.len());
                continue;
            }
            let end = at + zeros;
            let continues = (at == skipped && self.zeros.is_some()) || end == data.len();
            if continues || zeros as u64 >= HOLE {
                self.data(unwritten..at, offset, &mut steps);
                let (start, known) = self.zeros.unwrap_or((offset + at as u64, 0));
                self.zeros = Some((start, known + zeros as u64));
                if known + zeros as u64 >= HOLE_MAX {
                    steps.extend(self.end());
                }
                unwritten = end;
            }
            at = end;
        }
        self.data(unwritten..data.len(), offset, &mut steps);
        steps
    }

    /// Returns the step for the stored zeros; `None` without any.
    pub(super) fn end(&mut self) -> Option<Step> {
        self.zeros.take().map(|(offset, length)| match length {
            0..HOLE => Step::Zeros { offset, length },
            HOLE.. => Step::Hole { offset, length },
        })
    }

    /// Adds the step for the stored zeros, if any, and a step for the data of `range`.
    fn data(&mut self, range: Range<usize>, offset: u64, steps: &mut Vec<Step>) {
        if !range.is_empty() {
            steps.extend(self.end());
            steps.push(Step::Data { offset: offset + range.start as u64, range });
        }
    }
}

/// Returns the length in bytes of the zeros at the start of `data`, in whole granules.
fn zero_run(data: &[u8]) -> usize {
    // Comparing with zeros is memcmp, which is faster than our own loop in every build.
    data.chunks(GRANULE)
        .take_while(|granule| **granule == ZEROS[..granule.len()])
        .map(<[u8]>::len)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1 << 20;

    /// The steps, in order, must cover each byte of the image exactly once.
    #[test]
    fn steps_make_the_image_again() {
        let mut image = vec![0xff_u8; 40 * SIZE];
        // Runs of zeros: short at an edge, short inside, over an edge, longer than one step, at the
        // end.
        for (from, to) in
            [(0, 65_536), (3 << 19, (3 << 19) + 65_536), (5 * SIZE - 70_000, 6 * SIZE)]
        {
            image[from..to].fill(0);
        }
        image[10 * SIZE..31 * SIZE].fill(0);
        image[39 * SIZE..].fill(0);
        let (mut sparse, mut made, mut zeros) = (Sparse::default(), Vec::new(), 0);
        let mut take = |step, data: &[u8]| match step {
            Step::Data { range, offset } => {
                assert_eq!(offset, made.len() as u64);
                made.extend_from_slice(&data[range]);
            }
            Step::Zeros { offset, length } => {
                assert_eq!(offset, made.len() as u64);
                assert!(length < HOLE, "{length}");
                made.resize(made.len() + usize::try_from(length).unwrap(), 0);
                zeros += length;
            }
            Step::Hole { offset, length } => {
                assert_eq!(offset, made.len() as u64);
                assert!((HOLE..HOLE_MAX + SIZE as u64).contains(&length), "{length}");
                made.resize(made.len() + usize::try_from(length).unwrap(), 0);
                zeros += length;
            }
        };
        for (number, data) in image.chunks(SIZE).enumerate() {
            for step in sparse.next(data, 0, (number * SIZE) as u64) {
                take(step, data);
            }
        }
        if let Some(step) = sparse.end() {
            take(step, &[]);
        }
        assert!(made == image, "another image");
        assert!(zeros >= 23 * SIZE as u64, "{zeros}");
    }

    #[test]
    fn what_is_skipped_is_in_no_step() {
        let mut sparse = Sparse::default();
        let steps = sparse.next(&[0; SIZE], SIZE, 7);
        assert_eq!((steps, sparse.end()), (vec![], None));
        let mut data = vec![1; SIZE];
        data[..SIZE / 2].fill(0);
        let half = SIZE / 2;
        let range = half..SIZE;
        let step = Step::Data { range, offset: (SIZE + half) as u64 };
        assert_eq!(sparse.next(&data, half, SIZE as u64), [step]);
    }
}
